"""The verdict of `judge`: which side people would prefer, by how much, and how sure that is.

    d = mean of the differences of the rows that both sides have
    P(people prefer the first) = Phi(d / sqrt(s^2 + doubt^2)),    s: standard error of d over rows

s shrinks with the number of rows. `doubt` does not: it is how far the judged difference of two
systems lay from that of people's mean ratings on rated sets that the judge had not seen
(`training/judge_left_out`). So a thousand answers do not make a small difference sure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from dialeval.agreement.findings import Change, largest_changes
from dialeval.agreement.joining import Joined, Side
from dialeval.sample import Level
from dialeval.scores import Signature

HARDLY = 0.6
"""A preference that is less probable is none."""

DECIDING = 3
"""Answers that are shown for a preference."""

INTERVAL = 1.645
"""Standard errors on either side of the difference: nine of ten."""


@dataclass(frozen=True)
class Preference:
    """Two sides, the preferred one first. `deciding` are the rows that speak most for it."""

    level: Level
    metric: str
    first: str
    second: str
    mean_first: float
    mean_second: float
    difference: float
    low: float
    high: float
    probability: float
    n: int
    deciding: tuple[Change, ...]

    def sentence(self) -> str:
        means = f"{self.mean_first:.1f} against {self.mean_second:.1f} of 5"
        interval = f"{self.difference:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"
        rows = f"{self.n:,} {'dialogues' if self.level == 'dialogue' else 'answers'}"
        if self.probability < HARDLY:
            return f"People would hardly prefer {self.first} or {self.second}: {means}, {rows}."
        sure = math.floor(100 * min(self.probability, 0.99))
        return (
            f"People would prefer {self.first} to {self.second}: {means}, {interval}, {rows};"
            f" {sure} % sure."
        )


def preferences(levels: Sequence[Joined]) -> list[Preference]:
    """Compares, by level and judge, each side against the next one in the order of their means."""
    found = []
    for level in levels:
        for label in _judges(level.sides):
            means = [float(column[~np.isnan(column)].mean()) for column in level.scores(label).T]
            order = sorted(range(len(means)), key=lambda place: -means[place])
            found += [_preference(level, label, pair) for pair in pairwise(order)]
    return [one for one in found if one is not None]


def _judges(sides: Sequence[Side]) -> list[str]:
    """Labels of the judge that all sides share, rated in the same way."""
    records = [{m["label"]: m for m in side.run.manifest["metrics"]} for side in sides]
    return [
        label
        for label, metric in records[0].items()
        if metric["name"] == "judge"
        and all(label in other and _short(other[label]) == _short(metric) for other in records)
    ]


def _preference(level: Joined, label: str, pair: tuple[int, int]) -> Preference | None:
    """None where fewer than two rows have both."""
    sides = tuple(level.sides[place] for place in pair)
    table = level.scores(label)[:, list(pair)]
    there = ~np.isnan(table).any(axis=1)
    n = int(there.sum())
    doubts = [doubt for side in sides if (doubt := _doubt(side, label)) is not None]
    if n < 2 or not doubts:
        return None
    if table[there, 0].mean() < table[there, 1].mean():  # other rows than those of all the means
        return _preference(level, label, (pair[1], pair[0]))
    differences = table[there, 0] - table[there, 1]
    difference = float(differences.mean())
    error = math.sqrt(float(differences.var(ddof=1)) / n + max(doubts) ** 2)
    joined = Joined(
        level.level,
        sides,
        level.n_rows,
        tuple(level.rows[place] for place in pair),
        tuple(level.places[place] for place in pair),
    )
    changes = largest_changes(joined, label, "higher", DECIDING)
    return Preference(
        level.level,
        label,
        sides[0].name,
        sides[1].name,
        float(table[there, 0].mean()),
        float(table[there, 1].mean()),
        difference,
        difference - INTERVAL * error,
        difference + INTERVAL * error,
        0.5 * (1.0 + math.erf(difference / error / math.sqrt(2.0))),
        n,
        # Where the second lost most: told as what the first has more, like the mean difference.
        tuple(
            replace(change, kind="better", difference=-change.difference)
            for change in changes
            if change.kind == "worse"
        ),
    )


def _short(metric: Mapping[str, Any]) -> str:
    """Without versions of dialeval and libraries: what decides a score has fields of its own."""
    return Signature.parse(metric["signature"]).short()


def _doubt(side: Side, label: str) -> float | None:
    """Returns the doubt that the judge gave with each rating; it is the same for all."""
    for system in side.run.manifest["systems"]:
        doubt = (system["scores"][label].get("parts") or {}).get("doubt")
        if doubt is not None:
            return float(doubt)
    return None
