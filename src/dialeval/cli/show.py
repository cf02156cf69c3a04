"""How results look on the screen, where more than one verb shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.table import count
from dialeval.terminal import print_table, say, screen_width

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dialeval.agreement.coefficient import Agreement
    from dialeval.agreement.correlation import Correlation
    from dialeval.agreement.raters import RaterReport
    from dialeval.agreement.table import AgreementRow
    from dialeval.readers import CheckReport
    from dialeval.readers.reader import Problems
    from dialeval.table import ScoreTable


def show_score_table(table: ScoreTable) -> None:
    header, *rows = table.text(screen_width())
    print_table(header, rows, right=range(1, len(header)))
    say()
    for note in table.notes:
        say(note)
    for signature in table.signatures:
        say(signature, style="dim")


def show_answers(counts: Mapping[str, int]) -> None:
    """How much of the models' work was saved: by asking once, and by the cache."""
    if counts.get("asked"):
        cached = counts["cached"] / counts["distinct"]
        say(
            f"{counts['asked']:,} questions, {counts['distinct']:,} of them distinct,"
            f" {cached:.0%} answered from the cache"
        )


def show_warnings(problems: Problems, verbose: bool) -> None:
    """What was odd in the input but did not stop the work: a count, or everything."""
    total = problems.errors + problems.warnings
    if not total:
        return
    if verbose:
        for problem in problems.kept:
            say(str(problem), stderr=True, style="yellow")
    else:
        say(f"{count(total, 'problem')} in the input (-v shows them)", stderr=True, style="yellow")


def show_check_report(report: CheckReport) -> None:
    """Every problem on a line of its own, then what the files hold."""
    for problem in report.problems:
        say(str(problem), style="red" if problem.severity == "error" else "yellow")
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


def show_agreement(rows: Sequence[AgreementRow]) -> None:
    print_table(
        ["level", "quality", "metric", "n", "missing", "Pearson", "Spearman", "Kendall"],
        [
            [
                row.level,
                row.quality,
                row.metric,
                f"{row.n:,}",
                f"{row.n_missing:,}",
                *(_correlation(row.correlations[name]) for name in row.correlations),
            ]
            for row in rows
        ],
        right=[3, 4, 5, 6, 7],
    )
    say("\n[low, high]: 95 % interval; * p < .05, ** p < .01", style="dim")


def _correlation(found: Correlation) -> str:
    if found.value is None:
        return f"- ({found.reason})"
    stars = "" if found.p is None or found.p >= 0.05 else "**" if found.p < 0.01 else "*"
    interval = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.value:.3f}{stars}{interval}"


def show_raters(reports: Mapping[str, RaterReport]) -> None:
    def number(found: Agreement) -> str:
        return "-" if found.value is None else f"{found.value:.3f}"

    lines: dict[str, Callable[[RaterReport], str]] = {
        "items": lambda r: f"{r.n_items:,}",
        "raters": lambda r: f"{r.n_raters:,}",
        "missing ratings": lambda r: f"{r.n_missing:,}",
        "leave one out: Pearson, mean": lambda r: number(r.leave_one_out.pearson_mean),
        "leave one out: Pearson, max": lambda r: number(r.leave_one_out.pearson_max),
        "leave one out: Spearman, mean": lambda r: number(r.leave_one_out.spearman_mean),
        "leave one out: Spearman, max": lambda r: number(r.leave_one_out.spearman_max),
        "pairs: Pearson, mean": lambda r: number(r.pairwise.pearson_mean),
        "pairs: Spearman, mean": lambda r: number(r.pairwise.spearman_mean),
        "Cohen's kappa": lambda r: number(r.cohen_kappa),
        "Cohen's kappa, quadratic": lambda r: number(r.cohen_kappa_quadratic),
        "Fleiss' kappa": lambda r: number(r.fleiss_kappa),
        "Krippendorff's alpha, ordinal": lambda r: number(r.alpha_ordinal),
        "Krippendorff's alpha, interval": lambda r: number(r.alpha_interval),
        "ICC(2,k)": lambda r: number(r.icc_mean),
        "variance": lambda r: number(r.human_variance),
    }
    rows = [
        [title, *(line(report) for report in reports.values())] for title, line in lines.items()
    ]
    print_table(["", *reports], rows, right=range(1, len(reports) + 1))
    for quality, report in reports.items():
        for rater in report.raters:
            if rater.looks_random:
                say(f"{quality}: {rater.name} looks random: {rater.reason}", style="yellow")
