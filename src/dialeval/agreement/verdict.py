"""A comparison in sentences that need no statistics to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialeval.agreement.comparison import Comparison
    from dialeval.agreement.standings import Compared


def verdict(comparison: Comparison) -> list[str]:
    """For each pair of sides, who is better on what; then where nothing was shown."""
    lines = []
    several = len({row.level for row in comparison.rows}) > 1
    pairs = dict.fromkeys((row.first, row.second) for row in comparison.rows)
    for first, second in pairs:
        rows = [row for row in comparison.rows if (row.first, row.second) == (first, second)]
        lines += _of_pair(first, second, rows, several)
    return lines


def _of_pair(first: str, second: str, rows: Sequence[Compared], several: bool) -> list[str]:
    def name(row: Compared) -> str:
        return f"{row.name} ({row.level}s)" if several else row.name

    sentences = {
        "better": f"{second} is better than {first} on",
        "worse": f"{first} is better than {second} on",
        "differs": f"{second} differs from {first} on",
    }
    lines = [
        f"{sentence} {name(row)}: {_numbers(row)}"
        for outcome, sentence in sentences.items()
        for row in rows
        if row.outcome == outcome
    ]
    quiet = [name(row) for row in rows if row.outcome == "no difference shown"]
    if quiet:
        lines.append(f"no difference shown between {first} and {second} on {', '.join(quiet)}")
    other = [name(row) for row in rows if row.outcome == "not comparable"]
    if other:
        lines.append(f"not comparable between {first} and {second}: {', '.join(other)}")
    untested = [row for row in rows if row.outcome == "untested"]
    if untested:
        why = "; ".join(f"{name(row)} ({row.reason})" for row in untested)
        lines.append(f"not tested between {first} and {second}: {why}")
    return lines


def _numbers(row: Compared) -> str:
    """`+0.041 [0.02, 0.06], p = .002 after Holm`: of the better side over the other."""
    difference, low, high = row.difference, row.low, row.high
    if difference is None or row.p_holm is None:
        return row.reason
    if row.outcome == "worse":
        difference, low, high = (
            -difference,
            None if high is None else -high,
            None if low is None else -low,
        )
    interval = "" if low is None or high is None else f" [{low:.3g}, {high:.3g}]"
    less = ", lower is better" if row.direction == "lower" else ""
    return f"{difference:+.3g}{interval}, {format_p(row.p_holm)} after Holm{less}"


def format_p(p: float) -> str:
    """As journals print it: `p = .002`, `p < .001`."""
    if p < 0.001:
        return "p < .001"
    return "p = 1" if p > 0.9995 else f"p = {p:.3f}".replace("0.", ".")
