"""HolisticEval's released files: agreement of raters, length, entropy, self-consistency.

`holistic-consistency`: self-consistency, Table 8, with an inference model of ours or any other. The
answers of the three released sets (no paraphrase, paraphrased by WordNet, by a generator) are
held against what the same speaker said before. Beside the correlations with the mean of ten raters
stands the AUC: how often does an answer that people find inconsistent (mean below 3 of 5) get a
lower score than one that they find consistent? Only with the authors' model must ours match, and
only on the WordNet set. For the other two nobody knows how Table 8 was made: the released
predictions do not give its numbers (`holistic-consistency-ws` shows them).

`holistic-consistency-ws`: self-consistency, above all on the WordNet set, from the authors'
predictions. The earlier turns of the same speaker are held against the new answer, pair by pair,
and a model says how likely a contradiction is. The paper (section 3.4) takes the mean over the
pairs: 1 - mean p. The released code takes the last pair alone, and only that gives Table 8's row.

`mnli.pred` holds, for each sample and each pair of it, a label and p(contradiction) of
roberta-large-mnli. Which pairs belong to a sample follows from its dialogue: every second turn,
counted back from the answer.

The release has predictions for the other two sets, too, but there a slip of the parser put the line
"YOUR SCORE:" in the place of the answer, and every second turn counted back from *that* line was
held against it. They do not give Table 8's numbers for these sets, so the authors must have had
others.

`holistic-raters`: do the raters agree with each other? Tables 3, 4 and 9, exactly. Each rater is
held against the mean of the other nine; mean and largest over the ten raters. The caption of Table
4 says "pairwise", but its numbers are these (the pairwise mean is .51).

`holistic-length`: how far does the length of the response alone go on these ratings? Minus the
number of words, against the mean of ten raters. No paper prints these numbers; they were worked out
from the released files apart from dialeval. RUBER with BERT, a learned metric, stands in
HolisticEval's Table 3 with .47 and .51 for coherence.

`ngram-entropy`: n-gram entropies over the released groups of paraphrased queries. The mean over the
100 groups of each file, for n = 1, 2, 3. The paper prints correlations with ratings that were not
released (Table 5); what can be checked are the entropies themselves, whose means were worked out
from the released files apart from dialeval.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from itertools import islice, product
from pathlib import Path

import dialeval
from dialeval.agreement.coefficient import largest_of, mean_of
from dialeval.agreement.correlation import Name, correlations
from dialeval.agreement.rated import ratings_table
from dialeval.agreement.raters import leave_one_out
from dialeval.errors import UsageError
from dialeval.metrics.diversity import HOLISTIC_EVAL, ngram_entropy
from dialeval.registry import make_metrics
from dialeval.sample import Sample
from dialeval.studies.full import metrics_by_model
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study, Table

CITED = "Pang et al., ACL 2020"
RECOMPUTED = "recomputed"
"""The source of numbers that no paper prints: worked out from released files, apart from dialeval.
The studies that have such numbers say so under what is known to differ."""
COLUMNS = ("Pearson, mean", "Pearson, max", "Spearman, mean", "Spearman, max")
PRINTED = {
    "coherence": ("Table 3", "context_data_release.csv", "0.61 0.91 0.57 0.87"),
    "fluency": ("Table 4", "fluency_data_release.csv", "0.70 0.88 0.70 0.85"),
    "consistency, baseline": ("Table 9", "self_consistency/baseline", "0.61 0.75 0.62 0.74"),
    "consistency, WS": ("Table 9", "self_consistency/word_net", "0.64 0.80 0.64 0.79"),
    "consistency, CTG": ("Table 9", "self_consistency/seq2seq", "0.65 0.75 0.66 0.76"),
}


def measure_raters(setting: Setting) -> Findings:
    measured = []
    for what, (_, file, _) in PRINTED.items():
        measured += _rows(what, setting.data["holistic"] / file)
    return Findings(measured)


def _rows(what: str, path: Path) -> list[Measured]:
    samples = list(dialeval.load(path))
    (quality,) = {quality for sample in samples for quality in sample.ratings}
    raters = leave_one_out(*ratings_table(samples, quality))
    summaries = [
        summary(found)
        for found in ([r.pearson for r in raters], [r.spearman for r in raters])
        for summary in (mean_of, largest_of)
    ]
    return [
        Measured(f"{what}: {column}", found.value, n=len(samples), reason=found.reason)
        for column, found in zip(COLUMNS, summaries, strict=True)
    ]


RATERS = Study(
    name="holistic-raters",
    paper=HOLISTIC_EVAL,
    cited=CITED,
    repeats="HolisticEval, Tables 3, 4, 9: how well its ten raters agree",
    needs=(Data("holistic", tuple(file for _, file, _ in PRINTED.values())),),
    published=tuple(
        Published(f"{what}: {column}", number, source)
        for what, (source, _, numbers) in PRINTED.items()
        for column, number in zip(COLUMNS, numbers.split(), strict=True)
    ),
    differs=(
        "Tables 5 and 6 cannot be repeated: the ratings of diversity were not released.",
        'Table 4\'s caption says "pairwise"; its numbers are leave-one-out, as in Table 3.',
    ),
    measure=measure_raters,
)


NAMES: tuple[Name, ...] = ("pearson", "spearman")
FILES = {"coherence": "context_data_release.csv", "fluency": "fluency_data_release.csv"}
KNOWN_LENGTH = {"coherence": ("0.448", "0.494"), "fluency": ("0.628", "0.648")}


def measure_length(setting: Setting) -> Findings:
    measured = []
    for quality, file in FILES.items():
        samples = list(dialeval.load(setting.data["holistic"] / file))
        lengths = setting.score(samples, ["length"]).scores("length")
        shortness = [None if length is None else -length for length in lengths]
        ratings = [sample.ratings[quality].mean for sample in samples]
        found = correlations(shortness, ratings, names=NAMES)
        measured += [
            Measured(f"{quality}: {name.capitalize()}", one.value, n=one.n, reason=one.reason)
            for name, one in found.items()
        ]
    return Findings(measured)


LENGTH = Study(
    name="holistic-length",
    paper=HOLISTIC_EVAL,
    cited=CITED,
    repeats="minus the number of words, against HolisticEval's ratings: the baseline to beat",
    needs=(Data("holistic", tuple(FILES.values())),),
    published=tuple(
        Published(f"{quality}: {name.capitalize()}", number, RECOMPUTED)
        for quality, numbers in KNOWN_LENGTH.items()
        for name, number in zip(NAMES, numbers, strict=True)
    ),
    differs=(
        "Recomputed: from the released files, apart from dialeval.",
        "The paper has no length baseline. Its Table 3 has RUBER+BERT with 0.47 / 0.51 and GPT-2"
        " with 0.59 / 0.65 for coherence; its Table 4 GPT-2 with 0.43 / 0.32 for fluency.",
    ),
    measure=measure_length,
)


DIVERSITY_FOLDER = "augmented_dataset/Response_Diversity"
KNOWN_ENTROPY = {
    "WS": ("2.889344", "3.145673", "3.067541"),
    "CTG": ("3.028347", "3.274864", "3.153783"),
}


def measure_entropy(setting: Setting) -> Findings:
    measured = []
    for name in KNOWN_ENTROPY:
        samples = list(dialeval.load(setting.data["holistic"] / DIVERSITY_FOLDER / f"{name}.csv"))
        groups = [[variant.response for variant in sample.variants] for sample in samples]
        for n in (1, 2, 3):
            found = [ngram_entropy(group, n) for group in groups]
            defined = [value for value in found if value is not None]
            measured.append(
                Measured(
                    _what(name, n),
                    statistics.fmean(defined) if defined else None,
                    n=len(defined),
                    reason="" if defined else "no group with words",
                )
            )
    return Findings(measured)


def _what(name: str, n: int) -> str:
    return f"{name}: {n}-gram entropy, mean of the groups"


ENTROPY = Study(
    name="ngram-entropy",
    paper=HOLISTIC_EVAL,
    cited=CITED,
    repeats="HolisticEval: n-gram entropy of the groups WS and CTG",
    needs=(Data("holistic", tuple(f"{DIVERSITY_FOLDER}/{name}.csv" for name in KNOWN_ENTROPY)),),
    published=tuple(
        Published(_what(name, n), number, RECOMPUTED)
        for name, numbers in KNOWN_ENTROPY.items()
        for n, number in enumerate(numbers, 1)
    ),
    differs=(
        "Recomputed: from the released files, apart from dialeval.",
        "Table 5 cannot be repeated: its human ratings of diversity were not released.",
    ),
    measure=measure_entropy,
)


FOLDER = "self_consistency/word_net"
SLIPPED = {"baseline": "self_consistency/baseline", "CTG": "self_consistency/seq2seq"}
"""Sets whose released predictions hold every turn against the line "YOUR SCORE:"."""
TABLE_8 = {"baseline": ("0.26", "0.27"), "WS": ("0.59", "0.64"), "CTG": ("0.65", "0.66")}
"""Set -> Pearson and Spearman, as printed."""
RULES: dict[str, Callable[[Sequence[float]], float]] = {
    "last pair": lambda contradictions: 1 - contradictions[-1],
    "mean of the pairs": lambda contradictions: 1 - statistics.fmean(contradictions),
}
KNOWN = {
    "last pair": ("0.5891", "0.6413", "Table 8: 0.59, 0.64"),
    "mean of the pairs": ("0.4777", "0.5064", RECOMPUTED),
}


def measure_released(setting: Setting) -> Findings:
    folder = setting.data["holistic"] / FOLDER
    samples = list(dialeval.load(folder))
    contradictions = contradictions_of(samples, folder / "mnli.pred")
    measured = []
    for rule, consistency in RULES.items():
        measured += _agreement(rule, samples, [consistency(p) for p in contradictions])
    for name, place in SLIPPED.items():
        folder = setting.data["holistic"] / place
        samples = list(dialeval.load(folder))
        contradictions = contradictions_of(samples, folder / "mnli.pred", slipped=True)
        measured += _agreement(_slipped(name), samples, [1 - p[-1] for p in contradictions])
    return Findings(measured)


def _agreement(
    what: str, samples: Sequence[Sample], consistencies: Sequence[float]
) -> list[Measured]:
    ratings = [sample.ratings["consistency"].mean for sample in samples]
    found = correlations(consistencies, ratings, names=NAMES)
    return [
        Measured(f"{what}: {name.capitalize()}", one.value, n=one.n, reason=one.reason)
        for name, one in found.items()
    ]


def _slipped(name: str) -> str:
    return f'{name}, against "YOUR SCORE:"'


def contradictions_of(
    samples: Sequence[Sample], predictions: Path, slipped: bool = False
) -> list[list[float]]:
    """For each sample, p(contradiction) of each pair, the oldest turn first.

    The earlier turn is one of the answer's speaker; where the parser slipped, of the other one.
    """
    found = _read(predictions)
    last = -1 if slipped else -2
    earlier = [len(sample.context[last::-2]) for sample in samples]
    if sum(earlier) != len(found):
        raise UsageError(
            f"{predictions}: {len(found)} predictions for the {sum(earlier)} pairs of the samples"
        )
    remaining = iter(found)
    return [list(islice(remaining, pairs)) for pairs in earlier]


def _read(path: Path) -> list[float]:
    values = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            _, probability = line.split("\t")
            values.append(float(probability))
        except ValueError:
            raise UsageError(f"{path}:{number}: expected LABEL, a tab, a probability") from None
    return values


RELEASED = Study(
    name="holistic-consistency-ws",
    paper=HOLISTIC_EVAL,
    cited=CITED,
    repeats="HolisticEval, Table 8, from the released predictions: self-consistency against people",
    needs=(Data("holistic", tuple(f"{place}/mnli.pred" for place in (FOLDER, *SLIPPED.values()))),),
    published=(
        *(
            Published(f"{rule}: {name.capitalize()}", number, source)
            for rule, (*numbers, source) in KNOWN.items()
            for name, number in zip(NAMES, numbers, strict=True)
        ),
        *(
            Published(
                f"{_slipped(title)}: {name.capitalize()}", number, "Table 8", must_match=False
            )
            for title in SLIPPED
            for name, number in zip(NAMES, TABLE_8[title], strict=True)
        ),
    ),
    differs=(
        "Table 8 prints two digits; the others, and the mean of the pairs, were recomputed from the"
        " released predictions, apart from dialeval.",
        "The paper describes the mean over all earlier answers; its number is that of the last"
        " pair alone, which is what the released code computes.",
        "The rows baseline and CTG cannot be repeated: the released predictions of these sets hold"
        ' every turn against the literal text "YOUR SCORE:" and give other numbers, so Table 8 was'
        " made with predictions that were not released.",
    ),
    measure=measure_released,
)


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
    groups = metrics_by_model(setting.metrics, setting.models)
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
    paper=HOLISTIC_EVAL,
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
