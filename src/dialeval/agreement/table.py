"""Every metric of a run against every quality that people rated: the rows of `dialeval agree`.

    by=turn     all samples of a level together (turns and whole dialogues are never mixed)
    by=system   the mean score of each system against its mean rating

The rating of a sample is the mean over the raters who answered. Samples without a score or without
a rating are left out and counted.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.bootstrap import Bootstrap
from dialeval.agreement.correlation import NAMES, Correlation, Name, correlations
from dialeval.errors import InputError, Problem, UsageError

if TYPE_CHECKING:
    from dialeval.run import Run
    from dialeval.sample import Level, Sample

By = Literal["turn", "system"]
Scores = Mapping[str, Mapping[str, float | None]]
"""Metric -> id of the sample -> score."""


@dataclass(frozen=True)
class AgreementRow:
    """One metric, one quality, one level; `n` items had a score and a rating."""

    dataset: str
    metric: str
    quality: str
    level: Level
    by: By
    n: int
    n_missing: int
    correlations: Mapping[Name, Correlation]

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("dataset", "metric", "quality", "level", "by", "n", "n_missing")
        }
        for name, found in self.correlations.items():
            record[name] = {key: getattr(found, key) for key in ("value", "p", "low", "high")}
            if found.reason:
                record[name]["reason"] = found.reason
        return record


def agree_run(run: Run, **options: Any) -> list[AgreementRow]:
    """The metrics of a run against the ratings that it holds; options as in `agree`."""
    samples = list(run.samples())
    ids = [sample.id for sample in samples]
    scores = {label: dict(zip(ids, run.scores(label), strict=True)) for label in run.metrics}
    return agree(samples, scores, dataset=str(run.directory), **options)


def agree(
    samples: Iterable[Sample],
    scores: Scores,
    *,
    dataset: str = "",
    qualities: Sequence[str] = (),
    by: By = "turn",
    rounds: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[AgreementRow]:
    """Rows for each level, quality and metric. `rounds` of bootstrap give the intervals."""
    groups: dict[tuple[Level, str], list[Sample]] = {}
    for sample in samples:
        for quality in sample.ratings:
            if not qualities or quality in qualities:
                groups.setdefault((sample.level, quality), []).append(sample)
    if not groups:
        wanted = f" of {', '.join(qualities)}" if qualities else ""
        raise UsageError(f"{dataset or 'the data'}: no sample has ratings{wanted}")
    rows: list[AgreementRow] = []
    total = len(groups) * len(scores)
    for (level, quality), members in groups.items():
        for metric, of_metric in scores.items():
            x = [of_metric.get(sample.id) for sample in members]
            if any(value is not None for value in x):
                y = [sample.ratings[quality].mean for sample in members]
                if by == "system":
                    x, y = _system_means([sample.system for sample in members], x, y)
                bootstrap = Bootstrap(np.random.default_rng(seed), rounds) if rounds else None
                found = correlations(x, y, bootstrap, NAMES)
                n, n_missing = found["spearman"].n, found["spearman"].n_missing
                row = AgreementRow(dataset, metric, quality, level, by, n, n_missing, found)
                rows.append(row)
            progress(len(rows), total)
    return rows


def _system_means(
    systems: Sequence[str], x: Sequence[float | None], y: Sequence[float | None]
) -> tuple[list[float | None], list[float | None]]:
    """Means over the samples of each system that have both a score and a rating."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for system, score, rating in zip(systems, x, y, strict=True):
        if score is not None and rating is not None:
            pairs.setdefault(system, []).append((score, rating))
    means = [np.mean(of_system, axis=0) for of_system in pairs.values()]
    return [float(score) for score, _ in means], [float(rating) for _, rating in means]


def read_scores(path: Path) -> Scores:
    """Scores from anywhere: a CSV with a column `id` and a column of numbers for each metric."""
    problems: list[Problem] = []
    scores: dict[str, dict[str, float | None]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if "id" not in (rows.fieldnames or ()):
                raise UsageError(f"{path}: a column named 'id' is needed to join the scores")
            for row in rows:
                for name, text in row.items():
                    if name is None or name == "id":
                        continue
                    try:
                        value = float(text) if text else None
                    except (TypeError, ValueError):
                        problems.append(
                            Problem(str(path), rows.line_num, name, f"{text!r} is not a number")
                        )
                        continue
                    scores.setdefault(name, {})[row["id"]] = value
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    if problems:
        raise InputError(problems[:1000], max(0, len(problems) - 1000))
    if not scores:
        raise UsageError(f"{path}: no column of scores beside 'id'")
    return scores


def ratings_table(samples: Iterable[Sample], quality: str) -> tuple[Any, list[str]]:
    """Items x raters of one quality, NaN where nobody answered, and the names of the raters.

    Raters are told apart by name where the data has names, else by their place.
    """
    rows: list[dict[str, float]] = []
    names: dict[str, None] = {}
    for sample in samples:
        if quality not in sample.ratings:
            continue
        rating = sample.ratings[quality]
        raters = rating.raters or [f"rater{i + 1}" for i in range(len(rating.values))]
        row = {n: v for n, v in zip(raters, rating.values, strict=False) if v is not None}
        names.update(dict.fromkeys(raters))
        rows.append(row)
    order = list(names)
    table = np.array([[row.get(name, np.nan) for name in order] for row in rows], dtype=np.float64)
    return table.reshape(len(rows), len(order)), order
