"""HolisticEval's self-consistency, Table 8, with an inference model of ours or any other.

The answers of the three released sets (no paraphrase, paraphrased by WordNet, by a generator) are
held against what the same speaker said before. Beside the correlations with the mean of ten raters
stands the AUC: how often does an answer that people find inconsistent (mean below 3 of 5) get a
lower score than one that they find consistent? Only with the authors' model must ours match, and
only on the WordNet set. For the other two nobody knows how Table 8 was made: the released
predictions do not give its numbers (`holistic-consistency-ws` shows them).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import dialeval
from dialeval.agreement.correlation import correlations
from dialeval.registry import make_metrics
from dialeval.sample import Sample
from dialeval.studies.full_fed import groups_by_model
from dialeval.studies.holistic_consistency_ws import TABLE_8
from dialeval.studies.holistic_raters import CITED, PAPER
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

MODEL_OF_THE_PAPER = "roberta-large-mnli"
RULE_OF_THE_PAPER = "consistency:pairs=last,lowercase=true"
SETS = {"baseline": "baseline", "WS": "word_net", "CTG": "seq2seq"}
INCONSISTENT_BELOW = 3.0


def measure(setting: Setting) -> Findings:
    samples = {
        name: list(dialeval.load(setting.data["holistic"] / "self_consistency" / folder))
        for name, folder in SETS.items()
    }
    everything = [sample for of_set in samples.values() for sample in of_set]
    measured: list[Measured] = []
    rows: list[tuple[str | float | None, ...]] = []
    notes: list[str] = []
    groups = groups_by_model(setting.metrics, setting.models)
    for part, (model, metrics) in enumerate(groups.items()):
        rest = setting.after(part * len(everything), len(groups) * len(everything))
        run = rest.score(everything, make_metrics(metrics))
        notes += run.table().signatures
        for metric in metrics:
            by = metric.label if not model or model in metric.label else f"{metric.label}, {model}"
            scores = dict(zip((s.id for s in everything), run.scores(metric.label), strict=True))
            for name, of_set in samples.items():
                values = [scores[sample.id] for sample in of_set]
                ratings = [sample.ratings["consistency"].mean for sample in of_set]
                found = correlations(values, ratings, names=("pearson", "spearman"))
                comparable = (model, metric.label) == (MODEL_OF_THE_PAPER, RULE_OF_THE_PAPER)
                measured += [
                    Measured(f"{name}: {kind.capitalize()}", r.value, by, r.n, r.reason, comparable)
                    for kind, r in found.items()
                ]
                rows.append((name, by, area(values, ratings), *_counts(of_set)))
    header = ("set", "by", "AUC", "inconsistent", "consistent")
    return Findings(measured, notes, [Table("AUC for inconsistency", header, tuple(rows))])


def area(scores: Sequence[float | None], ratings: Sequence[float | None]) -> float | None:
    """Returns the share of pairs (inconsistent, consistent) in the right order; ties count half."""
    both = [(s, r) for s, r in zip(scores, ratings, strict=True) if s is not None and r is not None]
    bad = [score for score, rating in both if rating < INCONSISTENT_BELOW]
    good = [score for score, rating in both if rating >= INCONSISTENT_BELOW]
    if not bad or not good:
        return None
    won = sum(
        1.0 if low < high else 0.5 if low == high else 0.0 for low, high in product(bad, good)
    )
    return won / (len(bad) * len(good))


def _counts(samples: Sequence[Sample]) -> tuple[str, str]:
    bad = sum((s.ratings["consistency"].mean or 0) < INCONSISTENT_BELOW for s in samples)
    return str(bad), str(len(samples) - bad)


STUDY = Study(
    name="holistic-consistency",
    paper=PAPER,
    cited=CITED,
    repeats="HolisticEval, Table 8: self-consistency against people, by any inference model",
    needs=(Data("holistic", tuple(f"self_consistency/{folder}" for folder in SETS.values())),),
    models=("minilm-l6-nli",),
    metrics=("consistency", "consistency:pairs=max", RULE_OF_THE_PAPER),
    published=tuple(
        Published(f"{name}: {kind}", number, "Table 8, roberta-large-mnli", must_match=name == "WS")
        for name, numbers in TABLE_8.items()
        for kind, number in zip(("Pearson", "Spearman"), numbers, strict=True)
    ),
    differs=(
        f"The numbers must match with --model {MODEL_OF_THE_PAPER} and {RULE_OF_THE_PAPER} only,"
        " and on the WordNet set only.",
        "How the rows baseline and CTG of Table 8 were made is not known: the released predictions"
        ' of these sets compare every turn with the literal text "YOUR SCORE:" and give .12 / .12'
        " and -.13 / -.14 (dialeval study holistic-consistency-ws).",
    ),
    cost="seconds",
    measure=measure,
)
