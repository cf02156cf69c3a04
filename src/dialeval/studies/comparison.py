"""All metrics on all rated sets: which of them agree with people? (PONE, Tables 2, 3 and 7)

Each metric is correlated with the mean rating of each quality, by turn or by dialogue as the set is
rated; people are correlated with each other: Human(Avg) and Human(Max) are the mean and the largest
correlation of two raters. Beside them stands what DialEvalMetrics printed for the same sets.

The runs are kept in the cache, one for each set and each model, so that a study that was killed
goes on where it stopped, and one that was run before is shown at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.correlation import Name, correlations
from dialeval.agreement.ranks import Floats
from dialeval.agreement.rated import Target, rated_run, ratings_table
from dialeval.agreement.table import scored_qualities
from dialeval.errors import UsageError
from dialeval.metric import Metric
from dialeval.registry import make_metrics
from dialeval.runs.run import Run
from dialeval.sample import Level
from dialeval.studies.comparison_runs import (
    LoadedOnce,
    RatedSet,
    groups_by_model,
    load_rated_sets,
    run_place,
    sampling_notes,
    unusable,
    what_was_learned,
)
from dialeval.studies.comparison_tables import complete_table, overview_tables, quality_tables
from dialeval.studies.study import Data, Findings, Setting, Study

METRICS = (
    "length", "bleu", "rouge", "meteor", "chrf",
    "embedding-average", "vector-extrema", "greedy-matching", "bertscore",
    "ruber", "ruber:blend=unreferenced", "bert-ruber", "pone",
    "coherence", "fluency", "pmi", "full", "fed", "follow-up-contrast",
    "usl-h", "deep-am-fm",
)  # fmt: skip
"""Word overlap, embeddings, learned scorers, likelihoods, compositions."""

HUMAN_AVG, HUMAN_MAX = "Human(Avg)", "Human(Max)"
SHOWN: tuple[Name, ...] = ("pearson", "spearman")
Correlations = Mapping[Name, Coefficient]


@dataclass(frozen=True)
class Cell:
    """One metric on one quality of one set."""

    dataset: str
    level: Level
    quality: str
    metric: str
    found: Correlations


def measure(setting: Setting) -> Findings:
    source = LoadedOnce(setting.source)
    metrics = make_metrics(setting.metrics)
    left_out = {} if setting.source else unusable(metrics)
    usable = [metric for metric in metrics if metric.label not in left_out]
    if not usable:
        raise UsageError("\n".join(["no metric can be asked here:", *left_out.values()]))
    sets = load_rated_sets(setting.sets)
    groups = groups_by_model(usable)
    setting, before = replace(setting, source=source), 0
    total = sum(len(rated.samples) for rated in sets) * len(groups)
    cells: list[Cell] = []
    for rated in sets:
        cells += _people(rated)
        for group in groups:
            place = run_place(rated, group, source)
            run = setting.after(before, total).score(rated.samples, group, place)
            cells += _agreement(rated, run)
            before += len(rated.samples)
    labels = [HUMAN_AVG, HUMAN_MAX, *(metric.label for metric in usable)]
    cells.sort(key=lambda cell: labels.index(cell.metric))  # stable: sets stay in their order
    return Findings(
        (),
        [*sampling_notes(sets), *_notes(usable, left_out, source)],
        [*overview_tables(cells), *quality_tables(cells), complete_table(cells)],
    )


def _people(rated: RatedSet) -> Iterator[Cell]:
    """Human(Avg) and Human(Max) for each quality of each level."""
    for level in dict.fromkeys(sample.level for sample in rated.samples):
        samples = [sample for sample in rated.samples if sample.level == level]
        for quality in dict.fromkeys(name for sample in samples for name in sample.ratings):
            table, _ = ratings_table(samples, quality)
            average, largest = people_among_each_other(table)
            yield Cell(rated.name, level, quality, HUMAN_AVG, average)
            yield Cell(rated.name, level, quality, HUMAN_MAX, largest)


def people_among_each_other(ratings: Floats) -> tuple[Correlations, Correlations]:
    """Returns the mean and the largest correlation of two raters, from items x raters. PONE prints
    the smallest p beside the largest; a mean has none."""
    pairs = [correlations(x, y, names=SHOWN) for x, y in combinations(ratings.T, 2)]
    average: dict[Name, Coefficient] = {}
    largest: dict[Name, Coefficient] = {}
    for name in SHOWN:
        known = [(c.value, c.p) for c in (pair[name] for pair in pairs) if c.value is not None]
        values, ps = [value for value, _ in known], [p for _, p in known if p is not None]
        n, reason = len(ratings), "" if known else "no two raters to compare"
        average[name] = Coefficient(fmean(values) if known else None, n, reason=reason)
        largest[name] = Coefficient(
            max(values, default=None), n, p=min(ps, default=None), reason=reason
        )
    return average, largest


def _agreement(rated: RatedSet, run: Run) -> Iterator[Cell]:
    for level in rated_run(run, Target()):
        for case in scored_qualities(level, (), "turn"):
            found = correlations(case.scores, case.ratings[:, 0], names=SHOWN)
            yield Cell(rated.name, level.level, case.quality, case.metric, found)


def _notes(metrics: Sequence[Metric], left_out: Mapping[str, str], source: LoadedOnce) -> list[str]:
    names = sorted({model for metric in metrics for model in metric.models().values()})
    fingerprints = {name: source.fingerprint(name) for name in names}
    return [
        "* marks p >= .05; - is an undefined number, whose reason is in the JSON and CSV",
        *left_out.values(),
        *what_was_learned(names),
        *(str(metric.signature(fingerprints)) for metric in metrics),
    ]


STUDY = Study(
    name="comparison",
    paper=(
        "Lan, Mao, Wei, Gao, Huang: PONE: A Novel Automatic Evaluation Metric for Open-Domain"
        " Generative Dialogue Systems. TOIS 2020"
    ),
    cited="Lan et al., TOIS 2020",
    repeats="all metrics on all rated sets here, as in PONE, Tables 2, 3 and 7",
    may_use=tuple(
        Data(name)
        for name in ("usr-topical", "grade-dailydialog", "fed", "engage", "holistic", "dstc10")
    ),
    metrics=METRICS,
    takes_sets=True,
    differs=(
        "The ratings that PONE collected are not public: its tables are repeated on other sets.",
        "PONE takes the largest correlation over the annotators for a metric; here it is that with"
        " the mean rating, as in DialEvalMetrics. See: dialeval agree --target max-over-raters.",
        "DialEvalMetrics used other models (BERT-base, GPT-2, DialoGPT), other BLEU and ROUGE"
        " implementations, and for FED the mean of 18 qualities; it does not say whether its rows"
        " for RUBER, BERT-RUBER and PONE are the unreferenced score or the blend.",
        "Its USL-H asks BERT-base, and its Deep AM-FM has numbers for sets with references only, so"
        " it compares with these; here both ask embedded models, and deep-am-fm holds the response"
        " against the turn before it unless it is told referenced=true.",
        "The metrics that learned from DailyDialog are at home on grade-dailydialog, engage and"
        " dailydialog-zhao, whose contexts come from it; dialogues of these sets were left out.",
    ),
    cost="an hour (language models); minutes without",
    measure=measure,
)
