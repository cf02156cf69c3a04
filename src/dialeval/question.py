"""The questions that a metric may put to a model, and the answers that come back.

A question is a small frozen value. It names the model that is to answer and everything that can
change the answer, so that equal questions are asked once and an answer can be cached under its
question. New kinds of question arrive together with the model that answers them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from dialeval.errors import UsageError
from dialeval.sample import Turn

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Answer: TypeAlias = "npt.NDArray[np.float64] | npt.NDArray[np.float32] | str"
"""Raw numbers of any shape, or a text: all that a cache needs to store, and no pickle."""


FORM = 3
"""Increment when answers change for unchanged weights: cached answers are then not used."""


def _fields(value: Any) -> dict[str, Any]:
    """Returns what `dataclasses.asdict` gives, but copies nothing."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


_KEYS = json.JSONEncoder(ensure_ascii=False, default=_fields)


@dataclass(frozen=True, slots=True)
class Question:
    """Base of all questions. `model` is a name that `dialeval models` knows, or a path."""

    model: str

    def key(self, fingerprint: str) -> bytes:
        """Returns the cache key: sha256 of `FORM`, the model's fingerprint, the kind of question
        and its fields.

        The model's *name* is left out: the fingerprint says which weights answered.
        """
        fields = _fields(self)
        del fields["model"]
        text = _KEYS.encode([FORM, fingerprint, type(self).__name__, fields])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


Layout = Literal["auto", "native", "plain", "lines", "chat", "eos", "tabs"]
"""How a dialogue is written down for a language model.

auto    tabs for encoder-decoders, lines for other models
native  what the model was made to read: tabs for encoder-decoders, else its chat template if it
        has one, else lines
plain   turns joined by a single space, no speakers (HolisticEval)
lines   `User: ...` and `System: ...`, one line each (FED data, FULL on causal models)
chat    the chat template of the model
eos     turns joined by the model's end-of-text token (DialoGPT, FED)
tabs    each turn after a tab (FULL on BlenderBot)
"""


@dataclass(frozen=True, slots=True)
class Likelihood(Question):
    """How likely is it that `speaker` says `text` next, after `turns`?

    With no turns it is the likelihood of the text on its own. A dialogue that does not fit the
    model loses tokens of its `turns` on the side `truncate`; `text` is never cut.

    start  begin with the model's start-of-text token. Without it, and without turns, nothing
           predicts the first token, and its log-probability is NaN
    end    the model's end-of-text token counts as the last token of `text`
    whole  answer for the tokens of the turns too (FED's released code averages over everything)

    Answer: shape (1 + tokens, 3). The first row holds the number of tokens that were cut; the
    others, token by token, the natural log-probability and where the token starts and ends in
    `text`, in characters (-1 for tokens of the turns and for the end token). `TokenLogProbs.read`
    takes it apart.
    """

    text: str
    turns: tuple[Turn, ...] = ()
    speaker: str = "system"
    layout: Layout = "plain"
    truncate: Literal["left", "right"] = "left"
    start: bool = True
    end: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class TokenLogProbs:
    """The answer to `Likelihood` and `MaskedLikelihood`, with names."""

    log_probs: tuple[float, ...]
    spans: tuple[tuple[int, int], ...]
    cut: int

    def __len__(self) -> int:
        return len(self.log_probs)

    @property
    def mean(self) -> float:
        """Mean log-probability of a token; NaN (a first token that nothing predicts) left out."""
        known = [value for value in self.log_probs if not math.isnan(value)]
        return math.fsum(known) / len(known)

    def split(self) -> tuple[TokenLogProbs, TokenLogProbs]:
        """Returns the tokens of the turns (present with `whole` only), and those of the text."""
        inside = (number for number, (start, _) in enumerate(self.spans) if start >= 0)
        turns = next(inside, len(self.spans))
        return (
            TokenLogProbs(self.log_probs[:turns], self.spans[:turns], self.cut),
            TokenLogProbs(self.log_probs[turns:], self.spans[turns:], self.cut),
        )

    @classmethod
    def read(cls, answer: Answer) -> TokenLogProbs:
        assert not isinstance(answer, str)
        rows = answer[1:].tolist()
        return cls(
            log_probs=tuple(row[0] for row in rows),
            spans=tuple((int(row[1]), int(row[2])) for row in rows),
            cut=int(answer[0, 0]),
        )


@dataclass(frozen=True, slots=True)
class MaskedLikelihood(Question):
    """How likely is each word-piece of `text`, to a masked language model that sees all others?

    masks   0: pieces are hidden one at a time, so that n pieces take n passes, which is exact;
            k: every k-th piece is hidden in the same pass, and k passes are enough. A piece is then
            guessed without its neighbours k places away: an approximation
    tokens  at most this many pieces are read, from the beginning; 0: all that the model can take

    Answer: as that of `Likelihood`, for the pieces of the text.
    """

    text: str
    masks: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Embed(Question):
    """Where does `text` lie? Answer: one vector, the pooled states of the last layer.

    pooling  mean or max over the tokens, cls: the first state, pooler: tanh(W h + b) of the first
             state h, the layer that BERT has on top
    """

    text: str
    pooling: Literal["mean", "cls", "max", "pooler"] = "mean"


@dataclass(frozen=True, slots=True)
class WordVectors(Question):
    """What do these words mean, one by one? Answer: (words, dimensions); unknown words are NaN."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TokenMatch(Question):
    """How well is each token of one text matched by the most similar token of the other?

    Similar is the cosine of the states after `layer` (0: the embeddings, -1: the last layer). The
    marks that a model puts around a text ([CLS], [SEP]) can be matched but are no tokens here.

    Answer: shape (1 + tokens, 2). The first row holds the number of tokens of the candidate and the
    number of tokens of both texts that were cut; the others, first of the candidate, then of the
    reference, the token's number in the vocabulary and its best cosine. `BestMatches.read` takes it
    apart.
    """

    candidate: str
    reference: str
    layer: int = -1


@dataclass(frozen=True, slots=True)
class BestMatches:
    """The answer to `TokenMatch`, with names."""

    candidate_tokens: npt.NDArray[np.int64]
    candidate_cosines: npt.NDArray[np.float64]
    reference_tokens: npt.NDArray[np.int64]
    reference_cosines: npt.NDArray[np.float64]
    cut: int

    @classmethod
    def read(cls, answer: Answer) -> BestMatches:
        assert not isinstance(answer, str)
        candidates = 1 + int(answer[0, 0])
        tokens, cosines = answer[:, 0].astype("int64"), answer[:, 1].astype("float64")
        return cls(
            candidate_tokens=tokens[1:candidates],
            candidate_cosines=cosines[1:candidates],
            reference_tokens=tokens[candidates:],
            reference_cosines=cosines[candidates:],
            cut=int(answer[0, 1]),
        )


@dataclass(frozen=True, slots=True)
class DocumentFrequency(Question):
    """In how many of these texts does each token occur? Answer: one count per number in the
    vocabulary."""

    texts: tuple[str, ...]


NLI_LABELS = ("contradiction", "neutral", "entailment")
"""The order of the answer to `Inference`, whatever the order inside a model is."""


@dataclass(frozen=True, slots=True)
class Inference(Question):
    """Does `hypothesis` follow from `premise`, or contradict it? Answer: the probabilities of
    `NLI_LABELS`, in that order, and behind them a 1 where a text was cut: what does not fit the
    model goes, from the longer text."""

    premise: str
    hypothesis: str


@dataclass(frozen=True, slots=True)
class Judge(Question):
    """How good is `response` after `turns`, to a scorer that learned to tell? Answer: one number,
    from 0 (somebody else's answer) to 1 (one that people would give), and behind it two more where
    the scorer did not read all of it: how many tokens it reads of the turns and of the response, 0
    for the side that it did read. `Judgement` makes and reads them."""

    turns: tuple[str, ...]
    response: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """An answer to `Judge`.

    turns, response  where not all of them was read: how many tokens were
    """

    value: float
    turns: int = 0
    response: int = 0

    @classmethod
    def read(cls, answer: Answer) -> Judgement:
        return cls(float(answer[0]), *(int(limit) for limit in answer[1:]))

    def answer(self) -> Answer:
        import numpy as np

        cut = [self.turns, self.response] if self.turns or self.response else []
        return np.array([self.value, *cut])

    @property
    def note(self) -> str:
        """Returns the note for the score that is made of it: what was cut, and why."""
        sides = {"turns": self.turns, "response": self.response}
        return ", ".join(f"{side} truncated to {n} tokens" for side, n in sides.items() if n)


ASPECTS = (
    "overall",
    "relevance",
    "fluency",
    "engagement",
    "consistency",
    "novelty",
    "politeness",
)
"""The aspects in the order of the answer to `Assess`. All but the first are reasons."""


@dataclass(frozen=True, slots=True)
class Assess(Question):
    """How would people rate `response` after `turns`, from 1 to 5? The speaker of a turn is `me`
    where it is the one who responds, else `you`.

    Answer: shape (2, aspects). The first row holds the rating of each of `ASPECTS`, the second the
    other fields of `Assessment`, which takes it apart.
    """

    turns: tuple[Turn, ...]
    response: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """An answer to `Assess`.

    margin  half the width of the interval that holds nine of ten people's mean ratings of an answer
    doubt   standard error of the difference between two systems' means, however many answers
    cut_    tokens that were not read
    """

    ratings: tuple[float, ...]
    margin: float
    doubt: float
    cut_turns: int = 0
    cut_response: int = 0

    @classmethod
    def read(cls, answer: Answer) -> Assessment:
        assert not isinstance(answer, str)
        ratings, rest = answer.tolist()
        return cls(tuple(ratings), rest[0], rest[1], int(rest[2]), int(rest[3]))

    def answer(self) -> Answer:
        import numpy as np

        rest = [self.margin, self.doubt, self.cut_turns, self.cut_response]
        return np.array([self.ratings, rest + [0.0] * (len(self.ratings) - len(rest))])


@dataclass(frozen=True, slots=True)
class Choose(Question):
    """With which of `choices` does a model begin its reply to a prompt?

    The prompt is `instruction`, `material` and `wanted`, in this order. Questions about the same
    material share its reading. What does not fit the model is cut from the beginning of `material`.
    Material is what strangers wrote: to the model its marks are ordinary characters.

    samples      0: from the probabilities of the next token; n: count n replies instead, for
                 servers that give no probabilities
    temperature  of those replies

    Answer: the probability of each choice (or its share of the replies), then the number of tokens
    that were cut. `Chosen` makes and reads it.
    """

    instruction: str
    material: str
    wanted: str
    choices: tuple[str, ...]
    samples: int = 0
    temperature: float = 1.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """An answer to `Choose`."""

    probabilities: tuple[float, ...]
    cut: int = 0

    @property
    def mass(self) -> float:
        """The probability that the reply is one of the choices at all."""
        return math.fsum(self.probabilities)

    def expected(self, values: Sequence[float]) -> float:
        """Returns the mean of the values of the choices, where the reply is one of them."""
        weighted = (p * value for p, value in zip(self.probabilities, values, strict=True))
        return math.fsum(weighted) / self.mass

    @classmethod
    def read(cls, answer: Answer) -> Chosen:
        assert not isinstance(answer, str)
        *probabilities, cut = answer.tolist()
        return cls(tuple(probabilities), int(cut))

    def answer(self) -> Answer:
        import numpy as np

        return np.array([*self.probabilities, float(self.cut)])


def spellings(choice: str) -> tuple[str, ...]:
    """Returns the ways to begin a reply with a choice: `yes`, `Yes`, and behind a space."""
    forms = dict.fromkeys((choice, choice.capitalize(), choice.upper()))
    return tuple(dict.fromkeys([*forms, *(f" {form}" for form in forms)]))


def cannot_answer(question: Question, kind: str) -> UsageError:
    """Returns what a model says to a question that is not for it; `kind` as in "an encoder"."""
    return UsageError(
        f"model {question.model!r} is {kind} and cannot answer {type(question).__name__} questions"
    )


class Model(Protocol):
    """Answers a batch of questions, nothing else. It never knows which metric asked."""

    def answer(self, questions: Sequence[Question]) -> Iterable[tuple[int, Answer]]:
        """(position of the question, answer), in any order, as soon as each batch is done.

        An answer must not depend on the questions beside it.
        """
        ...


class AskingModel(Model, Protocol):
    """A model that wants to know something from other models first: a scorer asks an encoder.

    The engine puts its questions to them, as it does with those of a metric: what two scorers want
    to know is computed once. No model may end up asking itself.
    """

    def asks(self, questions: Sequence[Question]) -> Sequence[Sequence[Question]]:
        """Returns what it wants to know for each of its own questions."""
        ...

    def answer(
        self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]] = ()
    ) -> Iterable[tuple[int, Answer]]:
        """Answers as `Model.answer` does; `answers` are those to what it asked, in order."""
        ...


class ModelSource(Protocol):
    """The interface that gives the engine its models; `models/source.py` has the built-in one."""

    def fingerprint(self, name: str) -> str:
        """Returns what identifies the weights of this model, found without loading them."""
        ...

    def load(self, name: str) -> Model:
        """Returns the model itself. It is called at most once per run, and only if an answer is
        missing."""
        ...


@runtime_checkable
class TellingSource(ModelSource, Protocol):
    """A model source that also knows what its models can read."""

    def languages(self, name: str) -> frozenset[str]:
        """Returns the languages that a model can read, as in `text.NAMES`; empty where unknown."""
        ...

    def unknown_pieces(self, name: str, text: str) -> float:
        """Returns the share of the word-pieces of a text that the model has none for; 0 for models
        that have one for everything, and for those that do not read pieces."""
        ...
