"""Prints results that more than one verb shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.cli.terminal import print_table, say, screen_width
from dialeval.errors import ProblemGroup, grouped
from dialeval.runs.table import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dialeval.readers import CheckReport
    from dialeval.readers.reader import Problems
    from dialeval.runs.table import ScoreTable


def show_score_table(table: ScoreTable) -> None:
    header, *rows = table.text(screen_width())
    print_table(header, rows, right=range(1, len(header)))
    say()
    for note in table.notes:
        say(note)
    for signature in table.signatures:
        say(signature, style="dim")


def show_answers(counts: Mapping[str, int]) -> None:
    """Prints how many questions were duplicates, and how many were answered from the cache."""
    if counts.get("asked") and counts.get("distinct"):
        cached = counts.get("cached", 0) / counts["distinct"]
        say(
            f"{counts['asked']:,} questions, {counts['distinct']:,} of them distinct,"
            f" {cached:.0%} answered from the cache"
        )
    if damaged := counts.get("damaged"):
        say(
            f"damaged in the cache and asked again: {count(damaged, 'answer')}",
            stderr=True,
            style="yellow",
        )


def show_workers(workers: Mapping[str, int]) -> None:
    """Prints which workers scored, if any did, and how they ended."""
    if workers:
        lost = workers.get("lost", 0)
        replaced = f"; {count(lost, 'lost worker')} replaced" if lost else ""
        say(f"scored by {count(workers.get('ray', 0), 'worker')} on Ray{replaced}")


def show_warnings(problems: Problems, verbose: bool) -> None:
    """Prints the problems of the input that did not stop the work: their number, or all of them."""
    total = problems.errors + problems.warnings
    if not total:
        return
    if verbose:
        for group in grouped(problems.kept):
            say(str(group), stderr=True, style="yellow")
    else:
        say(f"{count(total, 'problem')} in the input (-v shows them)", stderr=True, style="yellow")


def show_check_report(report: CheckReport, every: bool) -> None:
    """Prints each kind of problem on a line, or every problem, and then what the files contain."""
    problems = report.problems
    groups = [ProblemGroup((one,)) for one in problems] if every else grouped(problems)
    for group in groups:
        say(str(group), style="red" if group.severity == "error" else "yellow")
    if report.hidden:
        say(f"... and {report.hidden:,} more")
    if report.problems:
        say()
    for path, name in report.formats.items():
        say(f"{path}: {name}")
    levels = ", ".join(f"{n:,} {level} level" for level, n in report.levels.items())
    say(count(report.samples, "sample") + (f" ({levels})" if levels else ""))
    if report.systems:
        say("systems: " + ", ".join(f"{name} ({n:,})" for name, n in report.systems.items()))
    if report.qualities:
        say()
        print_table(
            ["quality", "samples", "ratings", "missing", "given", "scale"],
            [
                [
                    quality,
                    f"{found.samples:,}",
                    f"{found.ratings:,}",
                    f"{found.dropped:,}",
                    _span(found.low, found.high),
                    _span(*(found.scale or (None, None))),
                ]
                for quality, found in report.qualities.items()
            ],
            right=[1, 2, 3],
        )
        say()
    verdict = f"{count(report.errors, 'error')}, {count(report.warnings, 'warning')}"
    say(verdict if report.problems else "no problems")


def _span(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:g} to {high:g}"
