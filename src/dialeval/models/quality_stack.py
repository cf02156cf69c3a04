"""The judge that people's ratings have taught: a weighted sum of what several readers say.

    z = w . t,  t = u, products of some u   one row of w for each aspect that people rated
    u = (x - m) / d
    rating = 1 + 4 sigmoid(a z + c)         a, c: `Scale`

x are the `FEATURES` of an answer and its vector. The features are what a quality-judge says of its
aspects, how near the answer is to what was said (cosines of an encoder), what three metrics say
that learned from dialogues (`SCORERS`), and what can be counted. Length is one of them, by name, so
that nobody has to guess whether the judge follows it. The vector is the encoder's, of the answer
alone: how such answers are liked. Products of two features let one count more where another is
high: a long answer is liked if it fits. The sum is linear in its weights on purpose: they can be
read, and they are fitted in a second on ratings of one's own.

It reads nothing itself: it asks its `Readers` through the engine. They have to be the ones that it
was fitted on; their fingerprints stand in `scorer.json`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.errors import UsageError
from dialeval.model_store.scorer_directory import (
    field,
    load_tensors,
    not_these,
    read_scorer,
    save_tensors,
)
from dialeval.models.quality_judge import Scale
from dialeval.question import (
    ASPECTS,
    Answer,
    Assess,
    Assessment,
    Embed,
    Judge,
    Question,
    cannot_answer,
)
from dialeval.text import STOP_WORDS, details, lower_words, words_and_numbers

Floats = npt.NDArray[np.float64]

COUNTED = (
    "log length",
    "log content words",
    "share of content words",
    "share of different words",
    "asks",
    "words of the last turn",
    "same words as the last turn",
    "same words as an own turn",
    "content words, the longer the dialogue the more",
    "length, the longer the dialogue the more",
    "details that were said before",
    "details that are new, where others were said before",
)
COSINES = ("cosine with the last turn", "cosine with all turns", "cosine with the own last turn")
SCORERS = ("mme-relevance", "pone", "predictive-engage")
"""Metrics whose logits are features. Two of them are small heads on vectors of sentences that are
embedded anyway."""
NEAR = (*COSINES, *SCORERS)
FEATURES = (*ASPECTS, *(f"bad {aspect}" for aspect in ASPECTS[1:]), *NEAR, *COUNTED)
"""In the order of the weights. `bad x` is what the judge says of x where that is negative, else 0:
one grave fault counts more than the sum of small ones."""

MULTIPLIED = (
    "overall",
    "engagement",
    "cosine with the last turn",
    "cosine with all turns",
    "mme-relevance",
    "log length",
    "log content words",
    "share of content words",
    "share of different words",
    "asks",
    "words of the last turn",
)
PRODUCTS = tuple(combinations_with_replacement(MULTIPLIED, 2))
"""Pairs of features whose product is a term of the sum."""

FAR = 3.0
"""In products a feature counts as no further from its mean than this many deviations."""

CONTEXT_WORDS = 100
"""Number of the last words of all turns that are embedded."""

CERTAIN = 1e-4
"""Probabilities count as no nearer to 0 and 1: their logits would grow without bound."""


@dataclass(frozen=True)
class Readers:
    """The models that are asked: a quality-judge, an encoder, and one for each of `SCORERS`."""

    judge: str
    encoder: str
    relevance: str
    pone: str
    engagement: str

    def names(self) -> tuple[str, ...]:
        return (self.judge, self.encoder, *self.scorers())

    def scorers(self) -> tuple[str, ...]:
        return (self.relevance, self.pone, self.engagement)


@dataclass(frozen=True)
class StackConfig:
    """`fingerprints` says which models the readers were; `fitted_on` names the rated sets, for
    those who leave one out."""

    readers: Readers
    fingerprints: Mapping[str, str]
    scale: Scale
    fitted_on: tuple[str, ...] = ()
    metric: str = "judge"

    @classmethod
    def read(cls, directory: Path) -> StackConfig:
        record = read_scorer(directory)
        readers = {one.name: field(directory, record, one.name, str) for one in fields(Readers)}
        fingerprints = field(directory, record, "fingerprints", dict)
        return cls(
            Readers(**readers),
            fingerprints={str(name): str(value) for name, value in fingerprints.items()},
            scale=Scale.read(directory, record),
            fitted_on=tuple(map(str, field(directory, record, "fitted_on", list))),
        )

    def to_record(self) -> dict[str, Any]:
        record = asdict(self)
        return {"kind": "quality-stack", **record.pop("readers"), **record}


@dataclass(frozen=True)
class Weights:
    """(aspects, terms) weights, and what x is centred and divided by."""

    weights: Floats
    means: Floats
    deviations: Floats

    def judge(self, features: Floats) -> Floats:
        """(answers, features) to (answers, aspects)."""
        found: Floats = terms_of(features, self.means, self.deviations) @ self.weights.T
        return found


def terms_of(features: Floats, means: Floats, deviations: Floats) -> Floats:
    """(answers, features) to (answers, terms): the features, their products, the vector."""
    standard = (features - means) / deviations
    near = np.clip(standard[:, : len(FEATURES)], -FAR, FAR)
    one, other = ([FEATURES.index(pair[side]) for pair in PRODUCTS] for side in (0, 1))
    named, vector = standard[:, : len(FEATURES)], standard[:, len(FEATURES) :]
    return np.concatenate((named, near[:, one] * near[:, other], vector), axis=1)


def load(directory: Path, *, device: str = "auto") -> QualityStack:
    """Loads the judge in a directory that `dialeval train judge` made."""
    from dialeval.model_store.locate import fingerprint, locate

    config = StackConfig.read(directory)
    for name, wanted in config.fingerprints.items():
        if (found := fingerprint(locate(name))) != wanted:
            raise UsageError(
                f"{directory}: fitted on {name}@{wanted[:8]}, but here that is {name}@{found[:8]}."
                " Fit it again: dialeval train judge"
            )
    return QualityStack(load_weights(directory), config)


def load_weights(directory: Path) -> Weights:
    """Loads what `save_weights` wrote."""
    tensors = load_tensors(directory)
    try:
        weights = Weights(
            *(tensors[name].double().numpy() for name in ("weights", "means", "deviations"))
        )
    except KeyError as error:
        raise not_these(directory, error) from error
    shape = (len(ASPECTS), len(weights.means) + len(PRODUCTS))
    if weights.weights.shape != shape or len(weights.means) <= len(FEATURES):
        raise not_these(directory, ValueError(f"shape {weights.weights.shape}"))
    return weights


def save_weights(directory: Path, config: StackConfig, weights: Weights) -> None:
    import torch

    named = {name: torch.from_numpy(value) for name, value in vars(weights).items()}
    save_tensors(directory, config.to_record(), named)


class QualityStack:
    """Answers `Assess`."""

    def __init__(self, weights: Weights, config: StackConfig) -> None:
        self._weights = weights
        self._config = config

    def asks(self, questions: Sequence[Question]) -> list[list[Question]]:
        return [asked(_assess(question), self._config.readers) for question in questions]

    def answer(
        self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]] = ()
    ) -> Iterator[tuple[int, Answer]]:
        scale = self._config.scale
        for position, question in enumerate(questions):
            features = features_of(_assess(question), answers[position])
            ratings = scale.ratings(self._weights.judge(features[None]))[0]
            read = Assessment.read(answers[position][0])
            cut = (read.cut_turns, read.cut_response)
            yield position, Assessment(tuple(ratings), scale.margin, scale.doubt, *cut).answer()


def _assess(question: Question) -> Assess:
    if not isinstance(question, Assess):
        raise cannot_answer(question, "a judge of quality")
    return question


def asked(question: Assess, readers: Readers) -> list[Question]:
    """Returns what it asks other models: the aspects, what the scorers say, the vectors of the
    answer, of the last turn, of all turns and of the last turn of the one who answers."""
    turns = tuple(turn.text for turn in question.turns)
    own = [turn.text for turn in question.turns if turn.speaker == "me"]
    everything = " ".join(" ".join(turns).split()[-CONTEXT_WORDS:])
    texts = (question.response, turns[-1], everything, *own[-1:])
    return [
        Assess(readers.judge, question.turns, question.response),
        *(Judge(scorer, turns, question.response) for scorer in readers.scorers()),
        *(Embed(readers.encoder, text) for text in texts),
    ]


def features_of(question: Assess, answers: Sequence[Answer]) -> Floats:
    """`FEATURES` of an answer and its vector, from the answers to what is `asked`."""
    shares = (np.array(Assessment.read(answers[0]).ratings) - 1.0) / 4.0
    logits = _logit(shares)
    scores, embedded = answers[1 : 1 + len(SCORERS)], answers[1 + len(SCORERS) :]
    said, *turns = (_unit(np.asarray(one, dtype=np.float64)) for one in embedded)
    cosines = [float(said @ turn) for turn in turns]
    near = [*cosines, *[0.0] * (len(COSINES) - len(cosines))]
    scored = _logit(np.array([float(one[0]) for one in scores]))
    vector = said * math.sqrt(len(said))
    bad = np.minimum(logits[1:], 0.0)
    return np.concatenate((logits, bad, near, scored, _counted(question), vector))


def _logit(share: Floats) -> Floats:
    within = np.clip(share, CERTAIN, 1.0 - CERTAIN)
    found: Floats = np.log(within / (1.0 - within))
    return found


def _counted(question: Assess) -> list[float]:
    said = lower_words(question.response)
    content = set(said) - STOP_WORDS
    last = set(lower_words(question.turns[-1].text)) if question.turns else set()
    own = [set(lower_words(turn.text)) for turn in question.turns if turn.speaker == "me"]
    before = " \n".join(turn.text for turn in question.turns)
    named = details(question.response)
    known = named & words_and_numbers(before)
    return [
        math.log1p(len(said)),
        math.log1p(len(content)),
        len(content) / (1 + len(said)),
        len(set(said)) / max(1, len(said)),
        float("?" in question.response),
        len(content & last) / (1 + len(content)),
        _shared(set(said), last),
        max((_shared(set(said), words) for words in own), default=0.0),
        math.log1p(len(content)) * math.log1p(len(question.turns)),
        math.log1p(len(said)) * math.log1p(len(question.turns)),
        math.log1p(len(known)),
        math.log1p(len(named - known)) if details(before) else 0.0,
    ]


def _shared(one: set[str], other: set[str]) -> float:
    return len(one & other) / (1 + len(one | other))


def _unit(vector: Floats) -> Floats:
    length = math.sqrt(float(vector @ vector))
    return vector / length if length else vector
