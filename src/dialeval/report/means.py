"""The first table: the mean of each system on each metric, its interval, and significance clusters.

The interval of a mean is Student's, mean -+ t s / sqrt(n): it says how far the mean of other
samples like these could lie, not whether two systems differ. That is what the clusters are for:
they come from paired tests on the samples that the sides share (`agreement/comparison.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.arithmetic import Floats, student_quantile
from dialeval.agreement.joining import Side
from dialeval.report.look import aligned
from dialeval.report.material import ReportData

if TYPE_CHECKING:
    from dialeval.agreement.comparison import Comparison
    from dialeval.sample import Level


@dataclass(frozen=True)
class MeanCell:
    """A mean over `n` of `total` samples. `cluster` is None where nothing was compared, or where
    all sides are in one cluster."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    cluster: int | None = None


@dataclass(frozen=True)
class SummaryRow:
    """A run, or a system; `inner` systems stand under their run."""

    name: str
    total: int
    cells: tuple[MeanCell, ...]
    inner: bool = False


@dataclass(frozen=True)
class Pooled:
    """The own scores of metrics for a whole system, which are no means: corpus BLEU, distinct over
    all. Systems down, metrics across, as they are read."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Summary:
    """The table of one level; `metrics` are records of the manifest."""

    level: Level
    metrics: tuple[Mapping[str, Any], ...]
    rows: tuple[SummaryRow, ...]

    @property
    def largest(self) -> list[float]:
        """The mean of each metric that is farthest from 0."""
        return [
            max((abs(cell.mean) for cell in cells if cell.mean is not None), default=0.0)
            for cells in zip(*(row.cells for row in self.rows), strict=True)
        ]


def summaries(material: ReportData, comparison: Comparison | None) -> list[Summary]:
    clusters = _clusters(comparison)
    found = []
    for entries in material.levels:
        level = entries.level
        metrics = [
            metric
            for metric in material.metrics
            if any(_has(side, level, metric["label"]) for side in material.whole)
        ]
        labels = [metric["label"] for metric in metrics]
        rows = []
        for side in material.sides:
            rows.append(_row(side, level, labels, clusters))
            systems = list(dict.fromkeys(side.systems))
            if material.several and len(systems) > 1:
                rows += [_row(side, level, labels, {}, system) for system in systems]
        kept = tuple(row for row in rows if row.total)
        found.append(Summary(level, tuple(metrics), kept))
    return found


def pooled_scores(material: ReportData) -> Pooled:
    found: dict[str, list[float | None]] = {
        label: [] for label in material.labels if label not in material.grounds.none
    }
    names = []
    for name, run in zip(material.names, material.runs, strict=True):
        for system in run.manifest["systems"]:
            shown = system["name"] or "(unnamed)"
            names.append(f"{name}: {shown}" if material.several else shown)
            for label, values in found.items():
                values.append((system["scores"][label].get("pooled") or {}).get("value"))
    there = {
        label: aligned(values)
        for label, values in found.items()
        if any(value is not None for value in values)
    }
    rows = zip(names, zip(*there.values(), strict=True), strict=True) if there else ()
    return Pooled(tuple(there), tuple(rows))


def mean_interval(values: Floats) -> tuple[float | None, float | None, float | None]:
    """Returns the mean and both ends of its 95 % interval; no ends of fewer than two values."""
    n = len(values)
    if not n:
        return None, None, None
    mean = float(values.mean())
    if n < 2:
        return mean, None, None
    half = student_quantile(0.975, n - 1) * float(values.std(ddof=1)) / n**0.5
    return mean, mean - half, mean + half


def _row(
    side: Side,
    level: Level,
    labels: Sequence[str],
    clusters: Mapping[tuple[str, str, str], int],
    system: str | None = None,
) -> SummaryRow:
    here = np.array(side.levels) == level
    if system is not None:
        here &= np.array(side.systems) == system
    total = int(here.sum())
    cells = []
    for label in labels:
        values = side.scores[label][here]
        values = values[~np.isnan(values)]
        cluster = clusters.get((level, label, side.name)) if system is None else None
        cells.append(MeanCell(*mean_interval(values), len(values), total, cluster))
    name = side.name if system is None else system
    return SummaryRow(name or "(unnamed)", total, tuple(cells), system is not None)


def _has(side: Side, level: Level, label: str) -> bool:
    return bool((~np.isnan(side.scores[label][np.array(side.levels) == level])).any())


def _clusters(comparison: Comparison | None) -> dict[tuple[str, str, str], int]:
    """(level, metric, side) -> cluster, where there is more than one."""
    found: dict[tuple[str, str, str], int] = {}
    for standing in comparison.standings if comparison else ():
        if len({one.cluster for one in standing.sides}) > 1:
            for one in standing.sides:
                found[standing.level, standing.metric, one.name] = one.cluster
    return found
