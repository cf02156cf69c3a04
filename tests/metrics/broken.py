"""A sound metric, and for every check of `check_metric` metrics that break it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dialeval.metric import Metric, Part
from dialeval.options import option
from dialeval.question import Answer, Embed, Likelihood, Question
from dialeval.sample import Rating, Sample
from dialeval.scores import Score, Signature


@dataclass(frozen=True)
class Sound(Metric):
    """Number of letters of the response; asks two questions and ignores the answers."""

    name = "sound"
    needs = frozenset({"context"})
    range = (0.0, 1e6)
    citation = "Nobody: Nothing. Nowhere 2024"

    factor: float = option(1.0, "multiplies", low=0)
    shout: bool = option(False, "changes nothing", moves_score=False)

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        return [Embed("vectors", response), Likelihood("lm", response, sample.context)]

    def models(self) -> Mapping[str, str]:
        return {"encoder": "vectors", "lm": "lm"}

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        size = len(sample.response or "")
        return Score(self.factor * size, {"half": size / 2, "both": (1.0, 2.0)})

    def parts(self) -> tuple[Part, ...]:
        return (Part("half", "half of it"), Part("both", "a list", many=True))


@dataclass(frozen=True)
class BadName(Sound):
    """Broken."""

    name = "Bad Name"


@dataclass(frozen=True)
class UnknownNeed(Sound):
    """Broken."""

    needs = frozenset({"telepathy"})


@dataclass(frozen=True)
class UnknownLevel(Sound):
    """Broken."""

    levels = frozenset({"turn", "book"})


@dataclass(frozen=True)
class UnknownDirection(Sound):
    """Broken."""

    direction = "sideways"


@dataclass(frozen=True)
class InvertedRange(Sound):
    """Broken."""

    range = (1.0, 0.0)


@dataclass(frozen=True)
class TwoPartsOneName(Sound):
    """Broken."""

    def parts(self) -> tuple[Part, ...]:
        return (Part("half", "one"), Part("half", "another"))


@dataclass(frozen=True)
class WithoutDocstring(Sound):
    name = "sound"


@dataclass(frozen=True)
class WithoutCitation(Sound):
    """Broken."""

    citation = ""


@dataclass(frozen=True)
class OptionWithoutSummary(Sound):
    """Broken."""

    bare: int = 3


class Undecorated(Sound):
    """Broken."""


@dataclass(frozen=True)
class ChangesItself(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        object.__setattr__(self, "factor", self.factor + 1)
        return super().score(sample, answers)


@dataclass(frozen=True)
class Unhashable(Sound):
    """Broken."""

    words: list = field(default_factory=list, metadata={"summary": "a list"})


@dataclass(frozen=True)
class Unpicklable(Sound):
    """Broken."""

    def __reduce__(self):
        raise TypeError("cannot pickle a model")


@dataclass(frozen=True)
class OtherLabel(Sound):
    """Broken."""

    @property
    def label(self) -> str:
        return "sound"


@dataclass(frozen=True)
class UnreadableSignature(Sound):
    """Broken."""

    def signature_fields(self) -> Mapping[str, str]:
        return {"layers": 12}  # type: ignore[dict-item]


@dataclass(frozen=True)
class SignatureOfAnother(Sound):
    """Broken."""

    def signature(self, fingerprints: Mapping[str, str] | None = None) -> Signature:
        return Signature("other", 1, super().signature(fingerprints).fields)


@dataclass(frozen=True)
class HidesAnOption(Sound):
    """Broken."""

    def signature_fields(self) -> Mapping[str, str]:
        return {"factor": "1"}


@dataclass(frozen=True)
class HiddenOptionMovesTheScore(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(2.0 if self.shout else 1.0)


@dataclass(frozen=True)
class AcceptsAnything(Sound):
    """Broken."""

    def obstacle(self, sample: Sample) -> str:
        return ""


@dataclass(frozen=True)
class AcceptsDialogues(Sound):
    """Broken."""

    needs = frozenset()

    def obstacle(self, sample: Sample) -> str:
        return ""


@dataclass(frozen=True)
class RefusesEverything(Sound):
    """Broken."""

    def obstacle(self, sample: Sample) -> str:
        return "not today"


@dataclass(frozen=True)
class AsksAtRandom(Sound):
    """Broken."""

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [Embed("vectors", str(random.random()))]


@dataclass(frozen=True)
class AsksInStrings(Sound):
    """Broken."""

    def ask(self, sample: Sample) -> Sequence[Question]:
        return ["how are you?"]  # type: ignore[list-item]


@dataclass(frozen=True, slots=True)
class Opinion(Question):
    words: list


@dataclass(frozen=True)
class AsksWithLists(Sound):
    """Broken."""

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [Opinion("lm", ["good"])]


@dataclass(frozen=True)
class AsksAnUndeclaredModel(Sound):
    """Broken."""

    def models(self) -> Mapping[str, str]:
        return {"encoder": "vectors"}


@dataclass(frozen=True)
class Random(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(random.random())


LAST: list[str] = [""]


@dataclass(frozen=True)
class RemembersTheLastSample(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        same = LAST[0] == sample.id
        LAST[0] = sample.id
        return Score(float(same))


@dataclass(frozen=True)
class OutOfRange(Sound):
    """Broken."""

    range = (0.0, 1.0)


@dataclass(frozen=True)
class UndeclaredPart(Sound):
    """Broken."""

    def parts(self) -> tuple[Part, ...]:
        return super().parts()[:1]


@dataclass(frozen=True)
class AbsentPart(Sound):
    """Broken."""

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), Part("third", "never there"))


@dataclass(frozen=True)
class PartIsNotANumber(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(1.0, {"half": float("nan"), "both": (1.0,)})


@dataclass(frozen=True)
class ListWhereANumberIsDeclared(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(1.0, {"half": (1.0,), "both": (1.0,)})


@dataclass(frozen=True)
class ReturnsAFloat(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return 1.0  # type: ignore[return-value]


@dataclass(frozen=True)
class RatesTheSample(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        sample.ratings["Mine"] = Rating((1.0,))  # type: ignore[index]
        return super().score(sample, answers)


@dataclass(frozen=True)
class WritesIntoAnswers(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        np.asarray(answers[0])[0] = 0
        return super().score(sample, answers)


class Sum:
    def __init__(self) -> None:
        self.total = 0.0

    def add(self, score: Score) -> None:
        self.total += score.value or 0.0

    def merge(self, other: Sum) -> None:
        self.total += other.total

    def result(self) -> Score:
        return Score(self.total)


class LastWins(Sum):
    def add(self, score: Score) -> None:
        self.total = score.value or 0.0


class Forgetful(Sum):
    def merge(self, other: Sum) -> None:
        self.total = other.total


class Rooted(Sum):
    def __init__(self) -> None:
        super().__init__()
        self.nothing = lambda: None


@dataclass(frozen=True)
class PoolAsksQuestions(Sound):
    """Broken."""

    def pool(self) -> Sum:
        return Sum()


@dataclass(frozen=True)
class Silent(Sound):
    """Asks nothing, so it may have a pool."""

    def ask(self, sample: Sample) -> Sequence[Question]:
        return ()

    def models(self) -> Mapping[str, str]:
        return {}


@dataclass(frozen=True)
class PoolDependsOnOrder(Silent):
    """Broken."""

    def pool(self) -> Sum:
        return LastWins()


SHARED = Sum()


@dataclass(frozen=True)
class PoolIsShared(Silent):
    """Broken."""

    def pool(self) -> Sum:
        return SHARED


@dataclass(frozen=True)
class PoolForgetsWhenMerged(Silent):
    """Broken."""

    def pool(self) -> Sum:
        return Forgetful()


@dataclass(frozen=True)
class PoolCannotTravel(Silent):
    """Broken."""

    def pool(self) -> Sum:
        return Rooted()


@dataclass(frozen=True)
class DividesByLength(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        words = (sample.response or "").split()
        return Score(1 / len(words), {"half": 1.0, "both": (1.0,)})


@dataclass(frozen=True)
class ReadsAFile(Sound):
    """Broken."""

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        Path(__file__).read_bytes()
        return super().score(sample, answers)


def choke_on(name: str, condition) -> type[Metric]:
    def score(self: Sound, sample: Sample, answers: Sequence[Answer]) -> Score:
        if condition(sample.response or ""):
            raise ValueError("I cannot read this")
        return Sound.score(self, sample, answers)

    return dataclass(frozen=True)(type(name, (Sound,), {"score": score, "__doc__": "Broken."}))


BROKEN = [
    (BadName, "declaration", "use lower case"),
    (UnknownNeed, "declaration", "needs holds 'telepathy'; known are context"),
    (UnknownLevel, "declaration", "levels holds 'book'"),
    (UnknownDirection, "declaration", "direction holds 'sideways'"),
    (InvertedRange, "declaration", "the lowest value comes first"),
    (TwoPartsOneName, "declaration", "two parts share a name"),
    (WithoutDocstring, "documented", "has no docstring"),
    (WithoutCitation, "documented", "citation is empty"),
    (OptionWithoutSummary, "documented", "option 'bare' has no summary"),
    (Undecorated, "frozen", "put @dataclass"),
    (ChangesItself, "frozen", "scoring changed its options"),
    (Unhashable, "frozen", "cannot be hashed"),
    (Unpicklable, "picklable", "cannot pickle a model"),
    (OtherLabel, "label", "the label 'sound' makes"),
    (UnreadableSignature, "signature-parses", "layers is 12; give a string"),
    (SignatureOfAnother, "signature-parses", "name and version"),
    (HidesAnOption, "signature-holds-what-moves-the-score", "Let signature_fields not hide"),
    (HiddenOptionMovesTheScore, "signature-holds-what-moves-the-score", "moves_score=False, but"),
    (AcceptsAnything, "obstacle", "it needs context, but obstacle"),
    (AcceptsDialogues, "obstacle", "does not judge a dialogue"),
    (RefusesEverything, "obstacle", "refuses the ordinary sample 'example-0': not today"),
    (AsksAtRandom, "ask-is-pure", "different questions"),
    (AsksInStrings, "ask-is-pure", "ask returned a str"),
    (AsksWithLists, "ask-is-pure", "cannot be a key"),
    (AsksAnUndeclaredModel, "ask-is-pure", "asks the model 'lm'"),
    (Random, "deterministic", "the second time"),
    (RemembersTheLastSample, "independent-of-neighbours", "Use nothing but the sample"),
    (ReadsAFile, "touches-nothing-outside", "broken.py' (open). Read files when"),
    (OutOfRange, "range-and-parts", "lies outside the declared range 0.0 to 1.0"),
    (UndeclaredPart, "range-and-parts", "the part 'both' is not declared"),
    (AbsentPart, "range-and-parts", "no score carries the declared part 'third'"),
    (PartIsNotANumber, "range-and-parts", "leave out a part that is not a number"),
    (ListWhereANumberIsDeclared, "range-and-parts", "declare many=True"),
    (ReturnsAFloat, "range-and-parts", "score returned float; return a Score"),
    (RatesTheSample, "leaves-its-input-alone", "changes the sample"),
    (WritesIntoAnswers, "leaves-its-input-alone", "changes the answers"),
    (PoolDependsOnOrder, "pool", "reversed"),
    (PoolIsShared, "pool", "Return a fresh accumulator"),
    (PoolForgetsWhenMerged, "pool", "merged of two parts"),
    (PoolCannotTravel, "pool", "sending a pool by pickle"),
    (PoolAsksQuestions, "pool", "can ask nothing"),
    (DividesByLength, "survives-empty", "ZeroDivisionError"),
    (DividesByLength, "survives-blank", "ZeroDivisionError"),
    (choke_on("Short", lambda t: len(t) == 1), "survives-one-letter", "I cannot read this"),
    (choke_on("Dots", lambda t: "." in t[:1]), "survives-only-punctuation", "cannot read this"),
    (choke_on("Long", lambda t: len(t) > 10_000), "survives-very-long", "I cannot read this"),
    (choke_on("Ascii", lambda t: "你" in t), "survives-unicode", "I cannot read this"),
    (choke_on("Nul", lambda t: "\0" in t), "survives-control", "I cannot read this"),
    (choke_on("Utf8", lambda t: "\ud83d" in t), "survives-lone-surrogate", "I cannot read this"),
]
