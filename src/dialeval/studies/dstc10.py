"""DSTC10 track 5 task 1 with MME-CRS: both protocols, the 37 qualities, published rows beside ours.

    development   each quality by its own weights; mean over the qualities of a set, then over sets
    test          one score for whatever is rated, by the weights of overall; mean over all pairs

Development sets are left out in turn. Files of the folder that are not among the 14 development
sets, such as the test sets for those who have them, are judged with weights from all development
sets that share no conversation with them.

The results table of DSTC10 track 5 task 1: published means, and our metrics in the same form.

MME-CRS prints a row of 11 Spearman correlations (x 100) and their mean for each team. The means
come out by the flat rule. By the two-level rule, which ranked the development phase, the third
team would have won. The test data are not public; where development files are here, metrics are
scored on them and shown in the same form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from dialeval.compose.evidence import Evidence
from dialeval.compose.fitting import DSTC10_QUALITIES, PAPER, compose
from dialeval.compose.gathering import Gathered, are_relatives, find_families
from dialeval.compose.leave_one_out import AVERAGE, CRS, SINGLE, LeaveOneOut, leave_each_out, try_on
from dialeval.metrics.composition import Composition
from dialeval.metrics.mme import MME_CITATION
from dialeval.registry import make_metrics
from dialeval.studies.mme_ablation import percent
from dialeval.studies.rated_runs import ASKED, CITED, SUB_METRICS, score_sets
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


def measure_table(setting: Setting) -> Findings:
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


TABLE = Study(
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
    measure=measure_table,
)


USR = ("Understandable", "Natural", "Maintains Context", "Engaging", "Uses Knowledge", "Overall")
FILES: Mapping[str, tuple[str, ...]] = {
    "dstc6": ("overall",),
    "dstc7": ("relevance", "informativeness", "overall"),
    "dailydialog-gupta": ("overall",),
    "dailydialog-zhao": ("content", "grammar", "overall", "relevance"),
    "humod": ("language_usage", "relevance"),
    "persona-usr": USR,
    "topical-usr": USR,
    "persona-zhao": ("overall",),
    "fed-turn": (
        "Interesting", "Engaging", "Specific", "Relevant", "Correct", "Semantically appropriate",
        "Understandable", "Fluent", "Overall",
    ),
    "fed-dial": (
        "Coherent", "Error recovery", "Consistent", "Diverse", "Depth", "Likeable",
        "Understanding", "Flexible", "Informative", "Inquisitive", "Overall",
    ),
    "convai2-grade": ("relevance",),
    "empathetic-grade": ("relevance",),
    "dailydialog-grade": ("relevance",),
    "persona-see": (
        "enjoy", "interest", "listen", "turing", "avoid_rep", "make_sense", "fluency",
        "inquisitive", "persona_guess",
    ),
}  # fmt: skip
"""Development set -> its qualities, as the organisers' scripts name them."""

ROWS = {"MME-CRS": SINGLE, "MME-Avg": AVERAGE, "Deep AM-FM": "deep-am-fm"}
TEST_MEANS = {
    "MME-CRS": MEANS["Top 1 (MME-CRS)"],
    "MME-Avg": MEANS["MME-Avg"],
    "Deep AM-FM": MEANS["Deep AM-FM"],
}


def measure(setting: Setting) -> Findings:
    scored = score_sets(setting)
    development, test = split(scored.gathered)
    found = leave_each_out(development)
    composition = compose(development, range(len(development.sets)), PAPER)
    measured = protocol_means(found, "development sets here, each left out")
    tables = [_correlations(found, "Development sets, each left out: Spearman x 100")]
    if test:
        tried = on_test(development, test)
        measured += protocol_means(tried, "test sets")
        tables.append(_correlations(tried, "Other sets of the folder: Spearman x 100"))
    tables.append(_qualities(composition))
    return Findings(measured, scored.notes, tables)


def split(gathered: Gathered) -> tuple[Gathered, list[Evidence]]:
    """Returns the development sets, and the others. Where nothing is a development set, as with
    sets of the user's, all are treated as such."""
    inside = [one for one in gathered.sets if one.name.partition(",")[0] in DEVELOPMENT_SETS]
    if not inside:
        return gathered, []
    others = [one for one in gathered.sets if one not in inside]
    return replace(gathered, sets=tuple(inside), families=find_families(inside)), others


def on_test(development: Gathered, test: Sequence[Evidence]) -> LeaveOneOut:
    """Scores each of these sets with weights of all development sets that are not its relatives."""
    trials = []
    for left_out in test:
        kept = [
            place for place, one in enumerate(development.sets) if not are_relatives(one, left_out)
        ]
        composition = compose(development, kept, PAPER)
        trials += try_on(composition, left_out, development.others, PAPER)
    return LeaveOneOut(tuple(trials))


def protocol_means(found: LeaveOneOut, where: str) -> list[Measured]:
    """Flat means of one score beside the published ones, then two-level means by quality."""
    measured = [
        Measured(
            f"{row}: test protocol",
            percent(flat_mean(found.of(rival)).value),
            where,
            flat_mean(found.of(rival)).n,
            comparable=False,
        )
        for row, rival in ROWS.items()
        if rival in found.methods
    ]
    by_quality = {**ROWS, "MME-CRS": CRS}
    return measured + [
        Measured(
            f"{row}: development protocol",
            percent(two_level_mean(found.of(rival)).value),
            where,
            flat_mean(found.of(rival)).n,
        )
        for row, rival in by_quality.items()
        if rival in found.methods
    ]


def _correlations(found: LeaveOneOut, title: str) -> Table:
    rows: list[tuple[str | float | None, ...]] = [
        (
            trial.dataset,
            trial.quality,
            trial.weights,
            *(percent(trial.found[rival].value) for rival in found.methods),
        )
        for trial in found.trials
    ]
    for name, mean in (("two-level mean", two_level_mean), ("flat mean", flat_mean)):
        values = [percent(mean(found.of(rival)).value) for rival in found.methods]
        rows.append((name, "", "", *values))
    defined = [flat_mean(found.of(rival)) for rival in found.methods]
    counts = [f"{one.n} of {one.n + one.n_missing}" for one in defined]
    rows.append(("defined", "", "", *counts))
    return Table(title, ("data set", "quality", "weights of", *found.methods), tuple(rows), 2)


def _qualities(composition: Composition) -> Table:
    """Returns the 37 names and those that only the files here have: where they are rated, and the
    weights from all development sets here."""
    here = {
        (one["name"].partition(",")[0], fitted["quality"])
        for one in composition.provenance["sets"]
        for fitted in one["fitted"]
    }
    names = [*DSTC10_QUALITIES, *(q for q in composition.weights if q not in DSTC10_QUALITIES)]
    rows: list[tuple[str | float | None, ...]] = []
    for quality in names:
        track = [name for name, qualities in FILES.items() if quality in qualities]
        found = [name for name, own in here if own == quality]
        weights: Sequence[float | None] = composition.weights.get(quality, ())
        rows.append(
            (
                quality,
                ", ".join(track) or "not a name of the track",
                ", ".join(sorted(found)) or "-",
                *(weights or [None] * len(composition.terms)),
            )
        )
    header = ("quality", "development sets", "fitted on", *composition.specs)
    return Table("The qualities, and the weights of the sub-metrics", header, tuple(rows))


STUDY = Study(
    name="dstc10",
    paper=MME_CITATION,
    cited=CITED,
    repeats="DSTC10 track 5 task 1: MME-CRS by both protocols, Deep AM-FM and the average beside",
    may_use=(Data("dstc10"),),
    metrics=(*SUB_METRICS, "deep-am-fm", "pone"),
    asks=ASKED,
    takes_sets=True,
    published=tuple(
        Published(f"{row}: test protocol", printed, f"{source}, test sets", must_match=False)
        for row, (printed, source) in TEST_MEANS.items()
    ),
    differs=(
        "The test data are not public: ours are the development sets that are here, each left out"
        " once together with those that share its conversations.",
        "What the organisers' scripts call overall in dailydialog-zhao is called appropriateness in"
        " the file: by literal names it is another quality, and no other development set has it.",
        "The sub-metrics are the embedded ones, and not fine-tuned copies of SimCSE.",
        "Scores to hand in: dialeval export RUN --to dstc10. What format the track asked for is not"
        " public any more; see the help.",
    ),
    cost="minutes",
    measure=measure,
)
