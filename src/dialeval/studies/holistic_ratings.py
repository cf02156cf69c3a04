"""Do HolisticEval's raters agree with each other? Its Tables 3, 4 and 9, exactly.

Each rater is held against the mean of the other nine; mean and largest over the ten raters. The
caption of Table 4 says "pairwise", but its numbers are these (the pairwise mean is .51).

How far does the length of the response alone go on HolisticEval's ratings?

Minus the number of words, against the mean of ten raters. No paper prints these numbers; they were
worked out from the released files apart from dialeval. RUBER with BERT, a learned metric, stands in
HolisticEval's Table 3 with .47 and .51 for coherence.

HolisticEval's n-gram entropies over its released groups of paraphrased queries.

The mean over the 100 groups of each file, for n = 1, 2, 3. The paper prints correlations with
ratings that were not released (Table 5); what can be checked are the entropies themselves, whose
means were worked out from the released files apart from dialeval.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import dialeval
from dialeval.agreement.coefficient import largest_of, mean_of
from dialeval.agreement.correlation import Name, correlations
from dialeval.agreement.rated import ratings_table
from dialeval.agreement.raters import leave_one_out
from dialeval.metrics.diversity import HOLISTIC_EVAL, ngram_entropy
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study

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


FILES = {"coherence": "context_data_release.csv", "fluency": "fluency_data_release.csv"}
KNOWN_LENGTH = {"coherence": ("0.448", "0.494"), "fluency": ("0.628", "0.648")}
NAMES: tuple[Name, ...] = ("pearson", "spearman")


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


FOLDER = "augmented_dataset/Response_Diversity"
KNOWN_ENTROPY = {
    "WS": ("2.889344", "3.145673", "3.067541"),
    "CTG": ("3.028347", "3.274864", "3.153783"),
}


def measure_entropy(setting: Setting) -> Findings:
    measured = []
    for name in KNOWN_ENTROPY:
        samples = list(dialeval.load(setting.data["holistic"] / FOLDER / f"{name}.csv"))
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
    needs=(Data("holistic", tuple(f"{FOLDER}/{name}.csv" for name in KNOWN_ENTROPY)),),
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
