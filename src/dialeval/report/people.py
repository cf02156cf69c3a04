"""Metrics against people, and people against each other, for runs whose samples have ratings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dialeval.agreement.drawings import draw_scatter
from dialeval.agreement.rated import RatedLevel, Target, rated_rows, rated_run
from dialeval.agreement.raters import QualityRaters, rater_reports
from dialeval.agreement.table import (
    AgreementRow,
    ScoredQuality,
    agreement_rows,
    scored_qualities,
)

if TYPE_CHECKING:
    from dialeval.pictures.drawing import Drawing
    from dialeval.progress import Progress
    from dialeval.runs.run import Run
    from dialeval.sample import Level

MOST_PLOTS = 8
MOST_POINTS = 400
"""In a scatter plot, so that a page with many stays small."""
MOST_RATERS = 60
"""Pairs of raters grow with the square; of a crowd, `dialeval raters` says it in its own time."""


@dataclass(frozen=True)
class AgreementTable:
    """Qualities down, metrics across; a cell is None where a metric scored no rated sample."""

    level: Level
    n: int
    metrics: tuple[str, ...]
    rows: tuple[tuple[str, tuple[AgreementRow | None, ...]], ...]


@dataclass(frozen=True)
class People:
    """What one run has to say about ratings."""

    run: str
    tables: tuple[AgreementTable, ...]
    plots: tuple[Drawing, ...]
    plots_left_out: int
    raters: tuple[QualityRaters, ...]
    crowd: str
    """Why raters are not held against each other, where they are not."""


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
    """Some of the points; the numbers beside the plot are those of all."""
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
        return [], "one rating of each sample: raters cannot be held against each other"
    if len(names) > MOST_RATERS:
        return [], f"{len(names):,} raters: dialeval raters FILE holds them against each other"
    return rater_reports(samples), ""
