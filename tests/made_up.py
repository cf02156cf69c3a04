"""Made-up samples, models and metrics: small enough to work out by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dialeval.metric import Metric, Part
from dialeval.metrics.composition import VALUE, Composition, Term, term_signature
from dialeval.options import option
from dialeval.question import Answer, Embed, Inference, Likelihood, Model, Question
from dialeval.registry import make_metric
from dialeval.runs.manifest import sealed
from dialeval.sample import Rating, Sample, Turn
from dialeval.scores import Calibration, CalibrationKind, Score


def edit_manifest(run: Path, old: str, new: str) -> None:
    """A run as somebody else's dialeval might have written it: sealed again after the change."""
    path = run / "manifest.json"
    changed = json.loads(path.read_text("utf-8").replace(old, new))
    path.write_text(json.dumps(sealed(changed)), "utf-8")


def sample(number: int, response: str | None = "fine thanks", system: str = "bot") -> Sample:
    return Sample(
        id=f"s{number}",
        context=(Turn("hello there", "user"), Turn("how are you", "system")),
        response=response,
        references=("fine thank you",),
        system=system,
        ratings={"Overall": Rating((4.0, None, 2.0), (1, 5))},
    )


def samples(count: int) -> list[Sample]:
    return [
        sample(i, " ".join(["word"] * (i % 7 + 1)), system=("a", "b")[i % 2]) for i in range(count)
    ]


@dataclass(frozen=True)
class NumberTold(Metric):
    """Made-up scores: the number that stands in the response."""

    name = "told"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        text = (sample.response or "").split()[0]
        return Score(float(text)) if text != "none" else Score.missing("none told")


@dataclass(frozen=True)
class Wrong(NumberTold):
    """Made-up scores; lower is better."""

    name = "wrong"
    direction = "lower"


@dataclass(frozen=True)
class Size(NumberTold):
    """Made-up scores; neither more nor less is better."""

    name = "size"
    direction = "neither"
    scale: int = option(1, "factor", low=1)

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(self.scale * float((sample.response or "").split()[0]))


ONLY_TOLD = (NumberTold(),)


class LengthModel:
    """Embeds a text as the vector (number of characters)."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def answer(self, questions: Sequence[Question]) -> Iterable[tuple[int, Answer]]:
        self.batches.append(len(questions))
        for position, question in reversed(list(enumerate(questions))):
            assert isinstance(question, Embed)
            yield position, np.array([float(len(question.text))])


class LengthModels:
    """A model source that counts how often it had to load."""

    def __init__(self, fingerprint: str = "f00d" * 16) -> None:
        self.model = LengthModel()
        self.loaded = 0
        self._fingerprint = fingerprint

    def fingerprint(self, name: str) -> str:
        return self._fingerprint

    def load(self, name: str) -> Model:
        self.loaded += 1
        return self.model


class HolisticModels:
    """After a context every token has -1 per word of the text, alone -2; a `no` contradicts all."""

    def fingerprint(self, name: str) -> str:
        return "f00d" * 16

    def load(self, name: str) -> Model:
        return self

    def answer(self, questions: Sequence[Question]) -> Iterable[tuple[int, Answer]]:
        for place, question in enumerate(questions):
            if isinstance(question, Likelihood):
                words = len(question.text.split())
                each = -words if question.turns else -2.0
                yield place, np.array([[0.0, 0.0, 0.0], *([[each, 0.0, 1.0]] * words)])
            else:
                assert isinstance(question, Inference)
                p = 0.75 if "no" in question.hypothesis.split() else 0.25
                yield place, np.array([p, 1 - p, 0.0])


@dataclass(frozen=True)
class Asking(Metric):
    """Number of characters of the response, as a model sees it, times a factor."""

    name = "asking"
    citation = "made up"
    factor: float = option(1.0, "what to multiply by")

    def models(self) -> dict[str, str]:
        return {"lm": "counter"}

    def ask(self, sample: Sample) -> Sequence[Question]:
        return (Embed("counter", sample.response or ""), Embed("counter", "hello"))

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        response, hello = answers
        assert not isinstance(response, str)
        assert not isinstance(hello, str)
        return Score(
            float(response[0]) * self.factor, {"hello": float(hello[0]), "both": (1.0, 2.0)}
        )

    def parts(self) -> tuple[Part, ...]:
        return (Part("hello", "characters of hello"), Part("both", "two numbers", many=True))


@dataclass(frozen=True)
class Floored(Metric):
    """Minus the number of words, calibrated to its 5th percentile."""

    name = "floored"
    citation = "made up"
    calibration = "floor"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(-float(len((sample.response or "").split())))


@dataclass(frozen=True)
class Told(Metric):
    """The number that stands in the response, on a scale that is fitted on the run."""

    name = "told-scaled"
    citation = "made up"
    calibration = "floor"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(float(sample.response or 0))


@dataclass(frozen=True)
class Blended(Told):
    """The mean of two scaled parts, which means nothing before they are scaled."""

    name = "blended"
    calibration = None

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        told = float(sample.response or 0)
        return Score(told, {"told": told, "size": abs(told)})

    def parts(self) -> tuple[Part, ...]:
        return (Part("told", "the number"), Part("size", "without its sign"))

    def scales(self) -> Mapping[str, CalibrationKind]:
        return {"told": "floor", "size": "minmax"}

    def combine(self, scaled: Mapping[str, float]) -> float:
        return (scaled["told"] + scaled["size"]) / 2


def two_bots() -> tuple[list[Sample], list[Sample]]:
    """Log-likelihoods of a good bot, near -1, and of a worse one, near -3 and now and then -6. On
    scales of their own, (x - low) / |low| with the 5th percentile for low, the worse one gets .5
    and the good one .2."""
    draw = np.random.default_rng(1)
    good, bad = draw.normal(-1, 0.1, 40), draw.normal(-3, 0.1, 40)
    bad[::10] = -6.0
    both = ([f"{value:.4f}" for value in bot] for bot in (good, bad))
    first, second = ([sample(n, told) for n, told in enumerate(of_bot)] for of_bot in both)
    return first, second


def term(spec: str, scales: Mapping[str, Calibration] | None = None) -> Term:
    """A term of a composition, with the signature of a metric that no model answers."""
    metric = make_metric(spec)
    return Term(metric.label, term_signature(metric.signature({})), metric.direction, scales or {})


WORDS = {VALUE: Calibration("quartile", 1.0, 5.0, 10)}


def two_terms(weight: float) -> Composition:
    """The words of the response, from 1 to 5, with this weight; BLEU-1 has the rest."""
    return Composition(
        (term("length", WORDS), term("bleu:n=1")), {"overall": (weight, 1.0 - weight)}
    )
