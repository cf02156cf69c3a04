"""Prints a comparison of runs or systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.agreement.findings import verdict
from dialeval.agreement.text_tables import comparison_table, standings_table
from dialeval.cli.terminal import say, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval.agreement.comparison import Comparison
    from dialeval.agreement.findings import Change


def show_comparison(comparison: Comparison, every_pair: bool) -> None:
    """The verdict last, where the eye rests. More than two sides: their order, by metric."""
    for warning in comparison.warnings:
        say(warning, stderr=True, style="yellow")
    samples = ", ".join(
        f"{side.name} {side.samples:,}" + (f" ({side.left_out:,} left out)" * bool(side.left_out))
        for side in comparison.sides
    )
    say(f"samples: {samples}; {comparison.joined:,} joined by {comparison.joined_by}")
    _show_preferences(comparison)
    if len(comparison.sides) > 2:
        _show_standings(comparison)
        if not every_pair:
            say()
            say(
                f"{comparison.significant:,} of {comparison.tested:,} differences between two of"
                " them are real after Holm: --pairs shows which",
                style="bold",
            )
            _show_decisions(comparison)
            return
    table = comparison_table(comparison)
    say()
    show_table(table)
    _show_changes(comparison)
    say()
    for note in table.notes:
        say(note, style="dim")
    say()
    for line in verdict(comparison):
        say(line, style="bold")
    _show_decisions(comparison)


def _show_decisions(comparison: Comparison) -> None:
    """Last, and on standard output: what a build log ends with."""
    if comparison.decisions:
        say()
    for decision in comparison.decisions:
        say(decision.sentence(), style=_STYLES[decision.word])


_STYLES = {"FAILED": "bold red", "PASSED": "bold green", "UNDECIDED": "bold yellow"}


def _show_standings(comparison: Comparison) -> None:
    table = standings_table(comparison)
    if table:
        say()
        show_table(table)
        say()
        for note in table.notes:
            say(note, style="dim")


def _show_preferences(comparison: Comparison) -> None:
    """What people would prefer, by `judge`; between two sides also the answers that decide it."""
    if comparison.preferences:
        say()
    for one in comparison.preferences:
        say(one.sentence(), style="bold")
    if len(comparison.sides) == 2:
        for one in comparison.preferences:
            for change in one.deciding:
                # The preferred side comes first here: what it is better by.
                _show_change(change, (one.first, one.second), -change.difference)


def _show_changes(comparison: Comparison) -> None:
    seen = ""
    for change in comparison.changes:
        names = [side.name for side in comparison.sides]
        title = f"{change.metric}: {_KINDS[change.kind]} in {names[1]} ({change.level}s)"
        if title != seen:
            say()
            say(title, style="bold")
            seen = title
        _show_change(change, names, change.difference)


_KINDS = {
    "worse": "fell most",
    "better": "rose most",
    "less": "much less",
    "more": "much more",
}


def _show_change(change: Change, names: Sequence[str], difference: float) -> None:
    ids = change.ids[0] if change.ids[0] == change.ids[1] else " / ".join(change.ids)
    say(f"  {difference:+.4g}  {ids}")
    if change.context:
        say(f"    before: {change.context[-1]}", style="dim")
    for name, score, response in zip(names, change.scores, change.responses, strict=True):
        say(f"    {name} ({score:.4g}): {response}")
