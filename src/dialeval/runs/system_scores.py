"""One number per system and metric, gathered while scores stream past.

Means are exact: a sum is kept as Shewchuk's non-overlapping partial sums, so the result does not
depend on the order of the samples, on chunks or on how often a run was resumed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dialeval.metric import Metric, Pool
from dialeval.scores import Score


class ExactMean:
    """The mean of a stream of floats, correctly rounded whatever the order."""

    def __init__(self) -> None:
        self.n = 0
        self._partials: list[float] = []

    def add(self, value: float) -> None:
        self.n += 1
        self._add(value)

    def merge(self, other: ExactMean) -> None:
        """Adds everything that another mean was given."""
        self.n += other.n
        for partial in other._partials:
            self._add(partial)

    def _add(self, value: float) -> None:
        kept = 0
        for partial in self._partials:
            if abs(value) < abs(partial):
                value, partial = partial, value
            high = value + partial
            low = partial - (high - value)
            if low:
                self._partials[kept] = low
                kept += 1
            value = high
        self._partials[kept:] = [value]

    @property
    def value(self) -> float | None:
        return math.fsum(self._partials) / self.n if self.n else None


_DETAIL = re.compile(r" \([^()]*\d[^()]*\)$")
"""What a note says of its sample alone: such notes are counted as one."""


@dataclass
class MetricSummary:
    """What one metric said about the samples of one system."""

    mean: ExactMean = field(default_factory=ExactMean)
    parts: dict[str, ExactMean] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    missing: int = 0

    def add(self, score: Score) -> None:
        if score.note:
            self.notes[_DETAIL.sub("", score.note)] += 1
        if score.value is None:
            self.missing += 1
            return
        self.mean.add(score.value)
        for name, part in score.parts.items():
            if not isinstance(part, tuple):
                self.parts.setdefault(name, ExactMean()).add(part)

    def merge(self, other: MetricSummary) -> None:
        """Adds what the metric said about further samples."""
        self.mean.merge(other.mean)
        for name, mean in other.parts.items():
            self.parts.setdefault(name, ExactMean()).merge(mean)
        self.notes.update(other.notes)
        self.missing += other.missing

    def to_record(self, pooled: Score | None) -> dict[str, Any]:
        record: dict[str, Any] = {
            "n": self.mean.n,
            "missing": self.missing,
            "mean": self.mean.value,
            "parts": {name: mean.value for name, mean in sorted(self.parts.items())},
            "notes": dict(sorted(self.notes.items())),
        }
        if pooled is not None:
            record["pooled"] = {
                "value": pooled.value,
                "parts": dict(sorted(pooled.parts.items())),
                "note": pooled.note,
            }
        return record


class PoolResults(Protocol):
    """The system scores of metrics that are not means."""

    def result(self, system: str, label: str) -> Score | None: ...


class Pools:
    """The accumulators of metrics whose system score is not a mean, one per system and metric.

    Each chunk has its own, which may come from another process; those of a run are all merged.
    """

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.pooled = {m.label: m for m in metrics if m.pool() is not None}
        self._pools: dict[tuple[str, str], Pool] = {}

    def add(self, system: str, label: str, score: Score) -> None:
        """Counts a score of a metric in `pooled`."""
        self._pool(system, label).add(score)

    def merge(self, other: Pools) -> None:
        for (system, label), pool in other._pools.items():
            self._pool(system, label).merge(pool)

    def result(self, system: str, label: str) -> Score | None:
        pool = self._pools.get((system, label))
        return pool.result() if pool else None

    def _pool(self, system: str, label: str) -> Pool:
        if (system, label) not in self._pools:
            pool = self.pooled[label].pool()
            assert pool is not None
            self._pools[system, label] = pool
        return self._pools[system, label]
