"""Which samples changed most between two sides, with their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from dialeval.agreement.ranks import Floats

if TYPE_CHECKING:
    from dialeval.agreement.joining import Joined, Side
    from dialeval.metric import Direction
    from dialeval.sample import Level, Sample


@dataclass(frozen=True)
class Change:
    """One row of a comparison: what was asked, and what each side answered.

    `ids` and `responses` are those of the first sample of each side.
    """

    level: Level
    metric: str
    kind: Literal["worse", "better", "less", "more"]
    difference: float
    scores: tuple[float, float]
    ids: tuple[str, str]
    context: tuple[str, ...]
    responses: tuple[str, str]


def largest_changes(level: Joined, metric: str, direction: Direction, count: int) -> list[Change]:
    """The rows where the second of two sides lost most, then those where it gained most.

    For a metric that calls neither direction better, those with less and with more of it.
    """
    if not count:
        return []
    table = level.scores(metric)
    difference = table[:, 1] - table[:, 0]
    losses, gains = changed_most(difference, direction, count)
    texts = [_samples(side, level, i, [*losses, *gains]) for i, side in enumerate(level.sides)]
    found = []
    for row in [*losses, *gains]:
        lost = row in losses
        first, second = (texts[i][row] for i in range(2))
        kind: Literal["worse", "better", "less", "more"]
        if direction == "neither":
            kind = "less" if lost else "more"
        else:
            kind = "worse" if lost else "better"
        found.append(
            Change(
                level.level,
                metric,
                kind,
                float(difference[row]),
                (float(table[row, 0]), float(table[row, 1])),
                (first.id, second.id),
                tuple(turn.text for turn in second.context),
                (_said(first), _said(second)),
            )
        )
    return found


def changed_most(
    difference: Floats, direction: Direction, count: int
) -> tuple[list[int], list[int]]:
    """The rows that lost most and those that gained most, the largest change first."""
    sign = -1.0 if direction == "lower" else 1.0
    there = np.flatnonzero(~np.isnan(difference) & (difference != 0))
    order = there[np.argsort(sign * difference[there], kind="stable")]
    losses = [int(row) for row in order[:count] if sign * difference[row] < 0]
    gains = [int(row) for row in order[::-1][:count] if sign * difference[row] > 0]
    return losses, gains


def _samples(side: Side, level: Joined, number: int, rows: Sequence[int]) -> dict[int, Sample]:
    """Row -> the side's first sample of it, read from the run."""
    wanted = {level.first_id(number, row): row for row in rows}
    return {wanted[one.id]: one for one in side.run.samples() if one.id in wanted}


def _said(sample: Sample) -> str:
    """The response, or the last turn of a dialogue that is judged as a whole."""
    turns = sample.turns
    return turns[-1].text if turns else ""
