"""The results table of DSTC10 track 5 task 1: published means, and our metrics in the same form.

MME-CRS prints a row of 11 Spearman correlations (x 100) and their mean for each team. The means
come out by the flat rule. By the two-level rule, which ranked the development phase, the third
team would have won. The test data are not public; where development files are here, metrics are
scored on them and shown in the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import dialeval
from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.dstc10 import (
    DEVELOPMENT_SETS,
    Dstc10Table,
    RhoByQuality,
    ScoredSet,
    dstc10_table,
    flat_mean,
    protocol_sample,
    two_level_mean,
)
from dialeval.registry import make_metrics
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

COLUMNS = (
    ("JSALT", "A"), ("ESL", "A"), ("NCM", "A"),
    ("DSTC10-Topical", "A"), ("DSTC10-Topical", "C"), ("DSTC10-Topical", "G"),
    ("DSTC10-Topical", "R"), ("DSTC10-Persona", "A"), ("DSTC10-Persona", "C"),
    ("DSTC10-Persona", "G"), ("DSTC10-Persona", "R"),
)  # fmt: skip
"""Appropriateness, content, grammar, relevance."""

PRINTED = {
    "Deep AM-FM": (5.09, 32.29, 16.49, 18.23, 8.63, 16.84, 26.21, 21.04, 14.22, 19.08, 24.11),
    "Top 1 (MME-CRS)": (11.66, 41.44, 29.88, 32.64, 17.23, 8.96, 44.76, 45.60, 32.53, 21.98, 54.76),
    "Top 2": (8.52, 38.11, 26.61, 31.78, 17.89, 8.52, 43.81, 45.36, 32.78, 21.47, 54.35),
    "Top 3": (26.15, 47.56, 19.89, 27.66, 15.52, 2.81, 38.31, 41.81, 30.49, 18.08, 49.92),
    "Top 4": (12.73, 32.11, 26.47, 29.97, 15.56, 6.16, 42.47, 43.43, 31.46, 18.85, 53.10),
    "Top 5": (16.42, 43.60, 27.05, 30.75, 12.62, 7.54, 41.86, 39.86, 22.95, 17.42, 47.14),
    "MME-Avg": (8.23, 37.19, 28.88, 30.64, 13.42, 6.67, 41.60, 42.83, 26.59, 19.83, 47.21),
}
MEANS = {
    "Deep AM-FM": ("18.38", "Table 3"),
    "Top 1 (MME-CRS)": ("31.04", "Table 3"),
    "Top 2": ("29.93", "Table 3"),
    "Top 3": ("28.93", "Table 3"),
    "Top 4": ("28.39", "Table 3"),
    "Top 5": ("27.93", "Table 3"),
    "MME-Avg": ("27.55", "Table 6"),
}


def measure(setting: Setting) -> Findings:
    measured = []
    for team, row in PRINTED.items():
        rho = _as_correlations(row)
        measured += [
            Measured(_flat(team), flat_mean(rho).value, n=len(row)),
            Measured(f"{team}: two-level mean", two_level_mean(rho).value, n=len(row)),
        ]
    if "dstc10" not in setting.data:
        return Findings(measured, ["no development files here: dialeval data get dstc10"])
    files = sorted(setting.data["dstc10"].glob("*_eval.json"))
    results, notes = _our_metrics(files, setting)
    return Findings(measured, notes, [_as_table(results)])


def _as_correlations(row: Sequence[float]) -> RhoByQuality:
    rho: dict[str, dict[str, Coefficient]] = {}
    for (dataset, quality), value in zip(COLUMNS, row, strict=True):
        rho.setdefault(dataset, {})[quality] = Coefficient(value, 1)
    return rho


def _our_metrics(files: Sequence[Path], setting: Setting) -> tuple[Dstc10Table, list[str]]:
    """Scores all data sets in one run, so that a model is loaded once, then each on its own."""
    metrics = make_metrics(setting.metrics)
    by_set = {
        path.name.removesuffix("_eval.json"): [protocol_sample(s) for s in dialeval.load(path)]
        for path in files
    }
    run = setting.score([sample for samples in by_set.values() for sample in samples], metrics)
    scores = {metric.label: run.scores(metric.label) for metric in metrics}
    ends = list(accumulate(len(samples) for samples in by_set.values()))
    results = dstc10_table(
        ScoredSet(name, samples, {k: v[end - len(samples) : end] for k, v in scores.items()})
        for (name, samples), end in zip(by_set.items(), ends, strict=True)
    )
    absent = [name for name in DEVELOPMENT_SETS if name not in by_set]
    there = len(DEVELOPMENT_SETS) - len(absent)
    note = f"{there} of the {len(DEVELOPMENT_SETS)} development data sets are here; not here: "
    return results, [
        note + (", ".join(absent) or "none"),
        "a mean is over the correlations that are defined: compare metrics with the same ones only",
        *run.table().notes,
        *run.table().signatures,
    ]


def _as_table(results: Dstc10Table) -> Table:
    """Data sets and qualities down, metrics across; the two means last."""
    by_metric = results.metrics.values()
    rows: list[tuple[str | float | None, ...]] = [
        (dataset, quality, *(_percent(rho[dataset][quality].value) for rho in by_metric))
        for dataset, quality in results.columns
    ]
    for title, mean in (("two-level mean", two_level_mean), ("flat mean", flat_mean)):
        rows.append((title, "", *(_percent(mean(rho).value) for rho in by_metric)))
    defined = [flat_mean(rho) for rho in by_metric]
    rows.append(("defined", "", *(f"{mean.n} of {mean.n + mean.n_missing}" for mean in defined)))
    header = ("data set", "quality", *results.metrics)
    return Table("Development data: Spearman x 100", header, tuple(rows), decimals=2)


def _percent(rho: float | None) -> float | None:
    return None if rho is None else 100 * rho


def _flat(team: str) -> str:
    return f"{team}: flat mean"


STUDY = Study(
    name="dstc10-table",
    paper=(
        "Zhang, Hu, Yu, Wang, Han, Liu, Yuan: MME-CRS: Multi-Metric Evaluation Based on"
        " Correlation Re-Scaling for Evaluating Open-Domain Dialogue. 2022"
    ),
    cited="Zhang et al., 2022",
    repeats="MME-CRS, Tables 3 and 6: means of the DSTC10 rows; our metrics in the same form",
    may_use=(Data("dstc10"),),
    metrics=("length", "distinct", "bleu", "chrf"),
    published=tuple(
        Published(_flat(team), printed, source) for team, (printed, source) in MEANS.items()
    ),
    differs=(
        "The means are computed from the printed rows: the test data and the scores of the teams"
        " are not public.",
        "By the two-level mean of the development phase Top 3 would rank before Top 1.",
    ),
    measure=measure,
)
