"""The material that a metric is checked with: ordinary samples, hostile texts, made-up answers."""

from __future__ import annotations

import copy
import dataclasses
import re
import typing
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dialeval.errors import DialevalError, UsageError
from dialeval.metric import Metric, option_fields
from dialeval.options import build
from dialeval.question import (
    ASPECTS,
    Answer,
    Assess,
    Assessment,
    Choose,
    Chosen,
    DocumentFrequency,
    Embed,
    Inference,
    Judge,
    Likelihood,
    MaskedLikelihood,
    Question,
    TokenMatch,
    WordVectors,
)
from dialeval.sample import Rating, Sample, Turn, Variant
from dialeval.scores import Score

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

AnswerQuestion = Callable[[Question], Answer]


class MetricCheckError(DialevalError):
    """The metric breaks a claim; the message says which, and what to do."""


def require(claim: bool, otherwise: str) -> None:
    if not claim:
        raise MetricCheckError(otherwise)


@dataclass(frozen=True)
class Bench:
    """The metric under test and what it is tested with."""

    metric: Metric
    originals: tuple[Sample, ...]
    answer: AnswerQuestion

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Fresh copies: what a metric does to its input must not hide what it does next."""
        return copy.deepcopy(self.originals)

    def scored(self, samples: Sequence[Sample], metric: Metric | None = None) -> list[Score]:
        return [self.score(sample, metric) for sample in samples]

    def score(self, sample: Sample, metric: Metric | None = None) -> Score:
        """Scores as the engine does. What the metric raises becomes a failed check."""
        metric = metric or self.metric
        try:
            if metric.obstacle(sample):
                return Score.missing(metric.obstacle(sample))
            score = metric.score(sample, [self.answer(question) for question in metric.ask(sample)])
        except MetricCheckError:
            raise
        except Exception as error:
            raise MetricCheckError(
                f"sample {sample.id!r} makes it raise {type(error).__name__}: {error}."
                " Return Score.missing(why) where there is nothing to score."
            ) from error
        require(isinstance(score, Score), f"score returned {type(score).__name__}; return a Score.")
        return score

    def all_alternatives(self) -> Iterator[Metric]:
        for field in option_fields(self.metric):
            yield from self.alternatives(field)

    def alternatives(self, field: dataclasses.Field[Any]) -> Iterator[Metric]:
        """Yields the metric with another legal value of one option."""
        metric = self.metric
        hint = typing.get_type_hints(type(metric))[field.name]
        for value in _other_values(hint, getattr(metric, field.name), field.metadata):
            try:
                other = build(type(metric), metric.options() | {field.name: value}, metric.name)
                other.signature()
            except UsageError:
                continue  # no file of that name, or not legal together with the other options
            yield other


def _other_values(hint: object, value: Any, metadata: Mapping[str, Any]) -> list[Any]:
    if typing.get_origin(hint) is Literal:
        return [choice for choice in typing.get_args(hint) if choice != value]
    if hint is bool:
        return [not value]
    if hint in (int, float):
        bounds = [metadata.get("low"), metadata.get("high")]
        candidates = [value + 1, value - 1, value / 2, *bounds]
        fitting = [c for c in candidates if c is not None and (hint is float or c == int(c))]
        return [hint(c) for c in fitting if c != value]
    return [f"{value}-other"] if hint is str else []


def example_samples(metric: Metric) -> tuple[Sample, ...]:
    """Returns a few ordinary samples with everything in them that a metric may need."""
    texts = (
        ("I adopted a dog last week .", "That is great ! What is its name ?"),
        ("What do you do for a living?", "I teach maths at a small school by the sea."),
        ("Did you see the game?", "No no no, I was at work."),
        ("How do I get to the station?", "Walk two blocks, turn left, and you will see it."),
        ("I lost my job.", "I am so sorry to hear that. Do you want to talk about it?"),
    )
    return tuple(
        Sample(
            id=f"example-{number}",
            context=(
                Turn("Hello!", "user"),
                Turn("Hi, how are you?", "system"),
                Turn(query, "user"),
            ),
            response=response if "turn" in metric.levels else None,
            references=(response[::2], f"Well, {response}", texts[number - 1][1]),
            facts=("I like the sea.", "I have two dogs."),
            system=f"bot-{number % 2}",
            dialogue=f"dialogue-{number}",
            item=f"item-{number}",
            ratings={"Overall": Rating((3.0, 4.0, None), (1.0, 5.0))},
            variants=(Variant(f"So, {query}", response), Variant(query, "I do not know.")),
        )
        for number, (query, response) in enumerate(texts)
    )


def hostile_texts() -> dict[str, str]:
    """Returns what people, chatbots and broken files put where an answer should be."""
    return {
        "empty": "",
        "blank": " \t\n\u00a0\u3000 ",
        "one-letter": "a",
        "only-punctuation": ". . .",
        "very-long": " ".join(f"word{number % 5000}" for number in range(20_000)),
        "unicode": "hé 😀 👩\u200d👧 你好 世界 שלום مرحبا e\u0301\u0323 \u202eabc\u202c ½ ß İ",
        "control": "a\x00b \x1b[31mred\x1b[0m \r\n \x07 \u2028 \u200b \ufeff \ufffe",
        "lone-surrogate": "broken \ud83d emoji",
    }


def made_up_answer(question: Question) -> Answer:
    """Returns an answer of the documented shape that depends on the question alone. Tokens are
    words."""
    import numpy as np

    draw = np.random.default_rng(list(question.key(question.model)))
    match question:
        case Likelihood():
            words = [found.span() for found in re.finditer(r"\S+", question.text)]
            before = [word for turn in question.turns for word in turn.text.split()]
            spans = [(-1, -1)] * len(before) * question.whole + words + [(-1, -1)] * question.end
            rows = [(-draw.exponential(3.0), *span) for span in spans]
            if rows and not question.start and (question.whole or not before):
                rows[0] = (np.nan, *rows[0][1:])
            return np.array([(0, 0, 0), *rows], dtype=np.float64)
        case MaskedLikelihood():
            words = [found.span() for found in re.finditer(r"\S+", question.text)]
            kept = words[: question.tokens or None]
            rows = [(-draw.exponential(3.0), *span) for span in kept]
            return np.array([(len(words) - len(kept), 0, 0), *rows], dtype=np.float64)
        case Embed():
            return draw.standard_normal(16)
        case WordVectors():
            vectors = [_word_vector(word) for word in question.words]
            return np.array(vectors, dtype=np.float64).reshape(len(vectors), 16)
        case TokenMatch():
            candidate, reference = question.candidate.split(), question.reference.split()
            matches = [(_token(word), draw.uniform(-1, 1)) for word in (*candidate, *reference)]
            return np.array([(len(candidate), 0), *matches], dtype=np.float64)
        case Inference():
            return draw.dirichlet((1, 1, 1))
        case Judge():
            return draw.uniform(0, 1, 1)
        case Assess():
            return Assessment(tuple(draw.uniform(1, 5, len(ASPECTS)).tolist()), 1.5, 0.7).answer()
        case Choose():
            shares = draw.dirichlet([1.0] * (len(question.choices) + 1))
            return Chosen(tuple(shares.tolist()[:-1])).answer()
        case DocumentFrequency():
            tokens = [_token(word) for text in question.texts for word in set(text.split())]
            return np.bincount(tokens, minlength=VOCABULARY).astype(np.float64)
    raise MetricCheckError(
        f"there is no made-up answer to {type(question).__name__} questions."
        " Pass answer=, a function from a question to its answer."
    )


VOCABULARY = 1000


def _token(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % VOCABULARY


def _word_vector(word: str) -> npt.NDArray[np.float64]:
    """Words without a letter are unknown."""
    import numpy as np

    if not any(char.isalpha() for char in word):
        return np.full(16, np.nan)
    return np.random.default_rng(_token(word)).standard_normal(16)
