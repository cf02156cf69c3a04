"""The tables of a report: means of systems, and for rated samples metrics against people.

The first table has the mean of each system on each metric, its interval, and significance clusters.
The interval of a mean is Student's, mean -+ t s / sqrt(n): it says how far the mean of other
samples like these could lie, not whether two systems differ. That is what the clusters are for:
they come from paired tests on the samples that the sides share (`agreement/comparison.py`).

If people rated the samples, `people` correlates the metrics with their ratings, and the raters with
each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.arithmetic import Floats, student_quantile
from dialeval.agreement.drawings import draw_scatter
from dialeval.agreement.joining import Side
from dialeval.agreement.rated import RatedLevel, Target, rated_rows, rated_run
from dialeval.agreement.raters import QualityRaters, rater_reports
from dialeval.agreement.table import AgreementRow, ScoredQuality, agreement_rows, scored_qualities
from dialeval.report.look import aligned
from dialeval.report.material import ReportData

if TYPE_CHECKING:
    from dialeval.agreement.comparison import Comparison
    from dialeval.pictures.drawing import Drawing
    from dialeval.progress import Progress
    from dialeval.runs.run import Run
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


MOST_PLOTS = 8
MOST_POINTS = 400
"""The most points of a scatter plot, so that a page with many plots stays small."""
MOST_RATERS = 60
"""The pairs grow with the square of the raters; `dialeval raters` shows those of a crowd."""


@dataclass(frozen=True)
class AgreementTable:
    """Qualities down, metrics across; a cell is None where a metric scored no rated sample."""

    level: Level
    n: int
    metrics: tuple[str, ...]
    rows: tuple[tuple[str, tuple[AgreementRow | None, ...]], ...]


@dataclass(frozen=True)
class People:
    """The results of one run that rest on ratings."""

    run: str
    tables: tuple[AgreementTable, ...]
    plots: tuple[Drawing, ...]
    plots_left_out: int
    raters: tuple[QualityRaters, ...]
    crowd: str
    """The reason why raters are not compared with each other; empty if they are."""


def people(
    name: str,
    run: Run,
    labels: Sequence[str],
    rounds: int,
    seed: int,
    progress: Progress | None = None,
) -> People | None:
    """None where nobody rated anything."""
    levels = [_named(level, name) for level in rated_run(run, Target())]
    levels = [level for level in levels if level.qualities]
    if not levels:
        return None
    tables = []
    correlated: list[tuple[ScoredQuality, AgreementRow]] = []
    for level in levels:
        wanted = [label for label in labels if not np.isnan(level.scores.get(label, np.nan)).all()]
        if not wanted:
            continue
        rows = agreement_rows([level], metrics=wanted, rounds=rounds, seed=seed, progress=progress)
        tables.append(_table(level, wanted, rows))
        found = {(row.metric, row.quality): row for row in rows}
        correlated += [
            (case, row)
            for case in scored_qualities(level, wanted, "turn")
            if (row := found[case.metric, case.quality]).correlations["spearman"].value is not None
        ]
    chosen = sorted(correlated, key=lambda pair: _interest(pair[1]), reverse=True)[:MOST_PLOTS]
    rng = np.random.default_rng(seed)
    raters, crowd = _raters(run)
    return People(
        name,
        tuple(tables),
        tuple(draw_scatter(_thinned(case, rng), row, "turn") for case, row in chosen),
        len(correlated) - len(chosen),
        tuple(raters),
        crowd,
    )


def _named(level: RatedLevel, name: str) -> RatedLevel:
    return replace(level, dataset=name)


def _table(
    level: RatedLevel, labels: Sequence[str], rows: Sequence[AgreementRow]
) -> AgreementTable:
    found = {(row.quality, row.metric): row for row in rows}
    return AgreementTable(
        level.level,
        len(level.systems),
        tuple(labels),
        tuple(
            (quality, tuple(found.get((quality, label)) for label in labels))
            for quality in level.qualities
        ),
    )


def _interest(row: AgreementRow) -> tuple[bool, float]:
    """Returns the key of an order: what is called overall first, then what agrees most."""
    value = row.correlations["spearman"].value
    return row.quality.lower() == "overall", abs(value) if value is not None else -1.0


def _thinned(case: ScoredQuality, rng: np.random.Generator) -> ScoredQuality:
    """Returns some of the points; the numbers beside the plot are those of all."""
    n = len(case.scores)
    if n <= MOST_POINTS:
        return case
    kept = np.sort(rng.choice(n, MOST_POINTS, replace=False))
    named = f"{case.level.dataset} ({MOST_POINTS} of {n:,} points drawn)"
    return replace(
        case,
        level=_named(case.level, named),
        scores=case.scores[kept],
        ratings=case.ratings[kept],
        groups=[case.groups[place] for place in kept.tolist()],
    )


def _raters(run: Run) -> tuple[list[QualityRaters], str]:
    samples = [row for row in rated_rows(run) if row.ratings]
    names = {
        name or str(place)
        for sample in samples
        for rating in sample.ratings.values()
        for place, name in enumerate(rating.raters or [""] * len(rating.values))
    }
    if len(names) < 2:
        return [], "one rating of each sample: raters cannot be compared with each other"
    if len(names) > MOST_RATERS:
        return [], f"{len(names):,} raters: dialeval raters FILE holds them against each other"
    return rater_reports(samples), ""
