"""Which dialogues a report shows: all of a small run; of a large one the best, the worst, those
that changed most, and a random part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dialeval.agreement.findings import changed_most
from dialeval.report.material import Entries, Material

SHOWN_EXTREMES = 3
"""Of each end of each metric, in the section of the best and the worst."""

SHARE_OF_EXTREMES = 0.4
"""Of a sample; the rest is random, so that it also shows what is usual."""


@dataclass(frozen=True)
class Extremes:
    """The ends of one metric: numbers of entries, the most extreme first. Of several runs the ends
    are those of the change from the first run to the run number `run`."""

    level: int
    label: str
    direction: str
    run: int
    best: tuple[int, ...]
    worst: tuple[int, ...]


@dataclass(frozen=True)
class Selection:
    """For each level the numbers of the entries that are shown, in the order of the file.
    `first` are those (level, entry) that matter most, for when there is no room for all."""

    shown: tuple[tuple[int, ...], ...]
    first: tuple[tuple[int, int], ...]
    of: int

    @property
    def size(self) -> int:
        return sum(map(len, self.shown))


def extremes(material: Material, count: int) -> list[Extremes]:
    """Of each level and metric, `count` entries of either end."""
    found = []
    for number, level in enumerate(material.levels):
        for metric in material.metrics:
            table = level.scores[metric["label"]]
            runs = range(1, table.shape[1]) if material.several else [0]
            for run in runs:
                values = table[:, run] - table[:, 0] if material.several else table[:, 0]
                if material.several:
                    worst, best = changed_most(values, metric["direction"], count)
                else:
                    worst, best = _ends(values, metric["direction"], count)
                if best or worst:
                    found.append(
                        Extremes(
                            number,
                            metric["label"],
                            metric["direction"],
                            run,
                            tuple(best),
                            tuple(worst),
                        )
                    )
    return found


def _ends(values: np.ndarray, direction: str, count: int) -> tuple[list[int], list[int]]:
    """The worst and the best; an entry that is in both, of a short list, is among the best."""
    sign = -1.0 if direction == "lower" else 1.0
    there = np.flatnonzero(~np.isnan(values))
    order = there[np.argsort(sign * values[there], kind="stable")].tolist()
    best = order[::-1][:count]
    return [row for row in order[:count] if row not in best], best


def select(material: Material, size: int, seed: int) -> Selection:
    """All entries, or `size` of them."""
    levels = material.levels
    total = sum(map(len, levels))
    lists = len(material.metrics) * max(1, len(levels)) * max(1, len(material.runs) - 1)
    deep = max(1, int(SHARE_OF_EXTREMES * min(size, total) / (2 * lists)))
    first = list(dict.fromkeys(_in_turn(extremes(material, deep))))[:size]
    if total <= size:
        everything = tuple(tuple(range(len(level))) for level in levels)
        return Selection(everything, tuple(first), total)
    chosen: list[set[int]] = [set() for _ in levels]
    for number, entry in first:
        chosen[number].add(entry)
    for number, entry in _random(levels, chosen, size - len(first), np.random.default_rng(seed)):
        chosen[number].add(entry)
    return Selection(tuple(tuple(sorted(own)) for own in chosen), tuple(first), total)


def _in_turn(found: Sequence[Extremes]) -> list[tuple[int, int]]:
    """The most extreme of all metrics first, then the second of all, and so on."""
    depth = max((max(len(one.best), len(one.worst)) for one in found), default=0)
    return [
        (one.level, end[place])
        for place in range(depth)
        for one in found
        for end in (one.worst, one.best)
        if place < len(end)
    ]


def _random(
    levels: Sequence[Entries], taken: Sequence[set[int]], count: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    left = [
        (number, entry)
        for number, level in enumerate(levels)
        for entry in range(len(level))
        if entry not in taken[number]
    ]
    places = rng.choice(len(left), size=min(count, len(left)), replace=False)
    return [left[place] for place in places.tolist()]
