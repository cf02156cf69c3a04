"""Prints agreement, rankings of metrics, relations and raters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.agreement.text_tables import (
    STATISTICS,
    agreement_table,
    ranking_notes,
    ranking_tables,
    rater_remarks,
    rater_table,
    relations_table,
)
from dialeval.cli.terminal import say, screen_width, show_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        say("no two metrics or qualities to relate")
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
