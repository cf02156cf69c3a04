"""What a comparison found on each metric: who is better, and in which order the sides stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from dialeval.agreement.clusters import Placed, draw_lines
from dialeval.agreement.comparable import raw_name
from dialeval.agreement.joining import Joined

if TYPE_CHECKING:
    from dialeval.metric import Direction
    from dialeval.sample import Level

Outcome = Literal["better", "worse", "differs", "no difference shown", "not comparable", "untested"]


@dataclass(frozen=True)
class Compared:
    """One metric on two sides. `difference` is second - first; `n` rows have both scores.

    `outcome` is that of the second side, after the correction; `differs` where the metric says
    neither that more is better nor that less is.
    """

    level: Level
    metric: str
    direction: Direction
    first: str
    second: str
    mean_first: float | None
    mean_second: float | None
    difference: float | None
    low: float | None
    high: float | None
    effect: float | None
    p: float | None
    p_holm: float | None
    n: int
    n_missing: int
    outcome: Outcome
    reason: str = ""
    raw: bool = False
    """The values before they were put on a scale were compared (`comparable.py`)."""

    @property
    def name(self) -> str:
        return raw_name(self.metric) if self.raw else self.metric


@dataclass(frozen=True)
class Standing:
    """The sides in order on one metric, best first (highest first where none is better)."""

    level: Level
    metric: str
    direction: Direction
    sides: tuple[Placed, ...]
    raw: bool = False

    @property
    def name(self) -> str:
        return raw_name(self.metric) if self.raw else self.metric


def outcome_of(
    difference: float | None,
    p_holm: float | None,
    direction: Direction,
    alpha: float,
) -> Outcome:
    """Of the second side over the first, `difference` being second - first."""
    if difference is None or p_holm is None:
        return "untested"
    if p_holm > alpha:
        return "no difference shown"
    if direction == "neither":
        return "differs"
    return "better" if (difference > 0) == (direction == "higher") else "worse"


def standings(levels: Sequence[Joined], found: Sequence[Compared], alpha: float) -> list[Standing]:
    """The order on each metric that can be compared, with lines where every difference is real."""
    placed = []
    for level in levels:
        here = [one for one in found if one.level == level.level]
        for label in dict.fromkeys(one.metric for one in here):
            pairs = [one for one in here if one.metric == label]
            if all(one.outcome != "not comparable" for one in pairs):
                placed.append(_standing(level, label, pairs, alpha))
    return placed


def _standing(level: Joined, label: str, pairs: Sequence[Compared], alpha: float) -> Standing:
    table, direction = level.scores(label), pairs[0].direction
    counts = (~np.isnan(table)).sum(axis=0)
    sign = -1.0 if direction == "lower" else 1.0
    means = {
        side.name: float(np.nanmean(column)) if n else None
        for side, column, n in zip(level.sides, table.T, counts, strict=True)
    }
    order = sorted(
        means, key=lambda name: (np.inf if (m := means[name]) is None else -sign * m, name)
    )
    better = np.zeros((len(order), len(order)), dtype=bool)
    for one in pairs:
        if one.difference is None or one.p_holm is None or one.p_holm > alpha:
            continue
        ahead = one.second if sign * one.difference > 0 else one.first
        behind = one.first if ahead == one.second else one.second
        better[order.index(ahead), order.index(behind)] = True
    n = {side.name: int(count) for side, count in zip(level.sides, counts, strict=True)}
    placed = [
        Placed(name, cluster, means[name], n[name])
        for name, cluster in zip(order, draw_lines(better), strict=True)
    ]
    return Standing(level.level, label, direction, tuple(placed), pairs[0].raw)
