"""HolisticEval's n-gram entropies over its released groups of paraphrased queries.

The mean over the 100 groups of each file, for n = 1, 2, 3. The paper prints correlations with
ratings that were not released (Table 5); what can be checked are the entropies themselves, whose
means were worked out from the released files apart from dialeval.
"""

from __future__ import annotations

import statistics

import dialeval
from dialeval.metrics.diversity import ngram_entropy
from dialeval.studies.holistic_raters import CITED, PAPER, RECOMPUTED
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study

FOLDER = "augmented_dataset/Response_Diversity"
KNOWN = {
    "WS": ("2.889344", "3.145673", "3.067541"),
    "CTG": ("3.028347", "3.274864", "3.153783"),
}


def measure(setting: Setting) -> Findings:
    measured = []
    for name in KNOWN:
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


STUDY = Study(
    name="ngram-entropy",
    paper=PAPER,
    cited=CITED,
    repeats="HolisticEval: n-gram entropy of the groups WS and CTG",
    needs=(Data("holistic", tuple(f"{FOLDER}/{name}.csv" for name in KNOWN)),),
    published=tuple(
        Published(_what(name, n), number, RECOMPUTED)
        for name, numbers in KNOWN.items()
        for n, number in enumerate(numbers, 1)
    ),
    differs=(
        "Recomputed: from the released files, apart from dialeval.",
        "Table 5 cannot be repeated: its human ratings of diversity were not released.",
    ),
    measure=measure,
)
