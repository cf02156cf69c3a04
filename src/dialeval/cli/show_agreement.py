"""Prints agreement, rankings of metrics, relations, raters and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.agreement.findings import verdict
from dialeval.agreement.text_tables import (
    STATISTICS,
    agreement_table,
    comparison_table,
    ranking_notes,
    ranking_tables,
    rater_remarks,
    rater_table,
    relations_table,
    standings_table,
)
from dialeval.cli.terminal import passage, say, screen_width, show_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dialeval.agreement.comparison import Comparison
    from dialeval.agreement.findings import Change
    from dialeval.agreement.metric_ranking import MetricRanking
    from dialeval.agreement.raters import QualityRaters
    from dialeval.agreement.relations import Relations
    from dialeval.agreement.table import AgreementRow


def show_agreement(rows: Sequence[AgreementRow]) -> None:
    table = agreement_table(rows)
    if rows:
        show_table(table)
        say()
    for note in table.notes:
        say(note, style="dim" if rows else None)


def show_rankings(rankings: Sequence[MetricRanking]) -> None:
    """Prints the metrics in order with their clusters, and all pairs."""
    for ranking in rankings:
        order, pairs = ranking_tables(ranking)
        say()
        say(order.title, style="bold")
        show_table(order)
        say()
        show_table(pairs)
        for remark in (ranking.remark, ranking.warning):
            if remark:
                say(remark, stderr=True, style="yellow")
    if rankings:
        say()
        for note in ranking_notes(rankings[0]):
            say(note, style="dim")


def show_relations(found: Sequence[Relations]) -> None:
    if not found:
        say("there are no two metrics or qualities to correlate")
    for one in found:
        table = relations_table(one)
        say(table.title)
        show_table(table)
        for note in table.notes:
            say(note, style="yellow" if note == one.note else "dim")
        say()


def show_raters(reports: Sequence[QualityRaters]) -> None:
    """Prints a table for each level; qualities that do not fit on the screen go into another."""
    levels = list(dict.fromkeys(one.level for one in reports))
    for level in levels:
        if len(levels) > 1:
            say(f"{level}s", style="bold")
        for some in _that_fit([one for one in reports if one.level == level], screen_width()):
            show_table(rater_table(some))
            say()
    for remark, is_warning in rater_remarks(reports):
        say(remark, style="yellow" if is_warning else "dim")


def _that_fit(reports: Sequence[QualityRaters], width: int) -> Iterator[list[QualityRaters]]:
    first = max(map(len, STATISTICS))
    some: list[QualityRaters] = []
    used = first
    for one in reports:
        needed = max(len(one.quality), 7) + 2
        if some and used + needed > width:
            yield some
            some, used = [], first
        some.append(one)
        used += needed
    if some:
        yield some


def show_comparison(comparison: Comparison, every_pair: bool) -> None:
    """Prints the comparison with the verdict last; more than two sides get a ranking."""
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
                " them are significant after Holm's correction: --pairs shows which",
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
    """Prints the decisions last, on standard output, so that a build log ends with them."""
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
    """Prints what people would prefer, by `judge`; for two sides also the deciding answers."""
    if comparison.preferences:
        say()
    for one in comparison.preferences:
        say(one.sentence(), style="bold")
    if len(comparison.sides) == 2:
        for one in comparison.preferences:
            for change in one.deciding:
                _show_change(change, (one.first, one.second))


def _show_changes(comparison: Comparison) -> None:
    seen = ""
    for change in comparison.changes:
        names = [side.name for side in comparison.sides]
        title = f"{change.metric}: {_KINDS[change.kind]} in {names[1]} ({change.level}s)"
        if title != seen:
            say()
            say(title, style="bold")
            seen = title
        _show_change(change, names)


_KINDS = {
    "worse": "fell most",
    "better": "rose most",
    "less": "much less",
    "more": "much more",
}


def _show_change(change: Change, names: Sequence[str]) -> None:
    ids = change.ids[0] if change.ids[0] == change.ids[1] else " / ".join(change.ids)
    say(f"  {change.difference:+.4g}  {ids}")
    if change.context:
        say(f"    before: {passage(change.context[-1])}", style="dim")
    for name, score, response in zip(names, change.scores, change.responses, strict=True):
        say(f"    {name} ({score:.4g}): {passage(response)}")
