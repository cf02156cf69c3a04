"""HolisticEval's self-consistency on its WordNet set, from the authors' own NLI predictions.

The earlier turns of the same speaker are held against the new answer, pair by pair, and a model
says how likely a contradiction is. The paper (section 3.4) takes the mean over the pairs:
1 - mean p. The released code takes the last pair alone, and only that gives Table 8's row.

`mnli.pred` holds, for each sample and each pair of it, a label and p(contradiction) of
roberta-large-mnli. Which pairs belong to a sample follows from its dialogue: every second turn,
counted back from the answer.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import dialeval
from dialeval.agreement.correlation import Name, correlations
from dialeval.errors import UsageError
from dialeval.sample import Sample
from dialeval.studies.holistic_raters import CITED, PAPER, RECOMPUTED
from dialeval.studies.needs import Data
from dialeval.studies.study import Findings, Measured, Published, Setting, Study

FOLDER = "self_consistency/word_net"
RULES: dict[str, Callable[[Sequence[float]], float]] = {
    "last pair": lambda contradictions: 1 - contradictions[-1],
    "mean of the pairs": lambda contradictions: 1 - statistics.fmean(contradictions),
}
NAMES: tuple[Name, ...] = ("pearson", "spearman")
KNOWN = {
    "last pair": ("0.5891", "0.6413", "Table 8: 0.59, 0.64"),
    "mean of the pairs": ("0.4777", "0.5064", RECOMPUTED),
}


def measure(setting: Setting) -> Findings:
    folder = setting.data["holistic"] / FOLDER
    samples = list(dialeval.load(folder))
    contradictions = contradictions_of(samples, folder / "mnli.pred")
    ratings = [sample.ratings["consistency"].mean for sample in samples]
    measured = []
    for rule, consistency in RULES.items():
        found = correlations([consistency(p) for p in contradictions], ratings, names=NAMES)
        measured += [
            Measured(f"{rule}: {name.capitalize()}", one.value, n=one.n, reason=one.reason)
            for name, one in found.items()
        ]
    return Findings(measured)


def contradictions_of(samples: Sequence[Sample], predictions: Path) -> list[list[float]]:
    """For each sample, p(contradiction) of each earlier turn of its speaker, oldest first."""
    found = _read(predictions)
    earlier = [len(sample.context[-2::-2]) for sample in samples]
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


STUDY = Study(
    name="holistic-consistency-ws",
    paper=PAPER,
    cited=CITED,
    repeats="HolisticEval, Table 8, row WS: self-consistency against people",
    needs=(Data("holistic", (FOLDER, f"{FOLDER}/mnli.pred")),),
    published=tuple(
        Published(f"{rule}: {name.capitalize()}", number, source)
        for rule, (*numbers, source) in KNOWN.items()
        for name, number in zip(NAMES, numbers, strict=True)
    ),
    differs=(
        "Table 8 prints two digits; the others, and the mean of the pairs, were recomputed from the"
        " released predictions, apart from dialeval.",
        "The paper describes the mean over all earlier answers; its number is that of the last"
        " pair alone, which is what the released code computes.",
        "The rows baseline (0.26 / 0.27) and CTG (0.65 / 0.66) cannot be repeated: in the released"
        ' predictions every pair compares with the literal text "YOUR SCORE:".',
    ),
    measure=measure,
)
