"""How a comparison of runs or systems looks on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.agreement.findings import verdict
from dialeval.cli.show_agreement import ARROWS, number_text, p_text, star
from dialeval.cli.terminal import print_table, say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dialeval.agreement.comparison import Comparison
    from dialeval.agreement.findings import Change, Compared


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
    _show_pairs(comparison)
    _show_changes(comparison)
    say()
    say(
        "difference: second - first, [95 % interval]; effect: in standard deviations; ↑ higher, ↓"
        " lower is better",
        style="dim",
    )
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


def _show_pairs(comparison: Comparison) -> None:
    say()
    columns: dict[str, Callable[[Compared], str]] = {
        "level": lambda row: row.level,
        "metric": lambda row: row.name + ARROWS[row.direction],
        "first": lambda row: row.first,
        "second": lambda row: row.second,
        "mean": lambda row: number_text(row.mean_first, ".4g"),
        "mean ": lambda row: number_text(row.mean_second, ".4g"),
        "difference": lambda row: _difference(row),
        "effect": lambda row: number_text(row.effect, "+.2f"),
        "p": lambda row: p_text(row.p),
        "after Holm": lambda row: p_text(row.p_holm) + star(row.p_holm, comparison.alpha),
        "n": lambda row: f"{row.n:,}",
    }
    titles = {name: name for name in columns}
    if len(comparison.sides) == 2:
        titles |= {"mean": comparison.sides[0].name, "mean ": comparison.sides[1].name}
        del columns["first"], columns["second"]
    if len({row.level for row in comparison.rows}) == 1:
        del columns["level"]
    print_table(
        [titles[name] for name in columns],
        [[column(row) for column in columns.values()] for row in comparison.rows],
        right=[i for i, name in enumerate(columns) if name not in _WORDS],
    )


_WORDS = ("level", "metric", "first", "second")


def _difference(row: Compared) -> str:
    if row.difference is None:
        return f"- ({row.reason or row.outcome})"
    interval = "" if row.low is None else f" [{row.low:.3g}, {row.high:.3g}]"
    return f"{row.difference:+.3g}{interval}"


def _show_standings(comparison: Comparison) -> None:
    """A row per side, best first by the first metric; each mean with its cluster."""
    if not comparison.standings:
        return
    say()
    cells = [
        {
            side.name: "-" if side.mean is None else f"{side.mean:.4g} ({side.cluster})"
            for side in one.sides
        }
        for one in comparison.standings
    ]
    print_table(
        ["", *(f"{one.name}{ARROWS[one.direction]}" for one in comparison.standings)],
        [[name, *(of_metric.get(name, "-") for of_metric in cells)] for name in cells[0]],
        right=range(1, len(cells) + 1),
    )
    say()
    say(
        "(n): cluster; whoever has a smaller number is better than everybody with a larger one or,"
        " where a metric has no arrow, has more",
        style="dim",
    )


def _show_preferences(comparison: Comparison) -> None:
    """What people would prefer, by `judge`; between two sides also the answers that decide it."""
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
        say(f"    before: {change.context[-1]}", style="dim")
    for name, score, response in zip(names, change.scores, change.responses, strict=True):
        say(f"    {name} ({score:.4g}): {response}")
