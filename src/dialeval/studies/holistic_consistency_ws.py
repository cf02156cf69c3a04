"""HolisticEval's self-consistency, above all on its WordNet set, from the authors' predictions.

The earlier turns of the same speaker are held against the new answer, pair by pair, and a model
says how likely a contradiction is. The paper (section 3.4) takes the mean over the pairs:
1 - mean p. The released code takes the last pair alone, and only that gives Table 8's row.

`mnli.pred` holds, for each sample and each pair of it, a label and p(contradiction) of
roberta-large-mnli. Which pairs belong to a sample follows from its dialogue: every second turn,
counted back from the answer.

The release has predictions for the other two sets, too, but there a slip of the parser put the line
"YOUR SCORE:" in the place of the answer, and every second turn counted back from *that* line was
held against it. They do not give Table 8's numbers for these sets, so the authors must have had
others.
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
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study

FOLDER = "self_consistency/word_net"
SLIPPED = {"baseline": "self_consistency/baseline", "CTG": "self_consistency/seq2seq"}
"""Sets whose released predictions hold every turn against the line "YOUR SCORE:"."""
TABLE_8 = {"baseline": ("0.26", "0.27"), "WS": ("0.59", "0.64"), "CTG": ("0.65", "0.66")}
"""Set -> Pearson and Spearman, as printed."""
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


STUDY = Study(
    name="holistic-consistency-ws",
    paper=PAPER,
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
    measure=measure,
)
