"""Metrics whose parts are known without a model, and runs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dialeval
from dialeval.metric import Metric, Part
from dialeval.metrics.likelihood import TOKEN_PARTS
from dialeval.question import Answer
from dialeval.runs.run import Run
from dialeval.sample import Rating, Sample, Turn, Variant
from dialeval.scores import Score


@dataclass(frozen=True)
class Worded(Metric):
    """Each word has the log-probability minus its number of characters."""

    name = "worded"
    citation = "made up"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        words = (sample.response or "").split()
        starts, place = [], 0
        for word in words:
            place = (sample.response or "").index(word, place)
            starts.append(place)
            place += len(word)
        if not words:
            return Score.missing("empty response")
        values = [-float(len(word)) for word in words]
        return Score(
            sum(values) / len(values),
            {
                "log_probs": tuple(values),
                "starts": tuple(map(float, starts)),
                "ends": tuple(
                    float(start + len(word)) for start, word in zip(starts, words, strict=True)
                ),
            },
        )

    def parts(self) -> tuple[Part, ...]:
        return TOKEN_PARTS


@dataclass(frozen=True)
class Complaints(Metric):
    """Two follow-ups, the second one likelier, and one of them hostile."""

    name = "complaints"
    citation = "made up"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(30.0, {"<b>What?</b>": 20.0, "Go away.": 10.0})

    def parts(self) -> tuple[Part, ...]:
        what = "negative log-likelihood as the next turn"
        return (Part("<b>What?</b>", what), Part("Go away.", what))


@dataclass(frozen=True)
class Contradicts(Metric):
    """The response contradicts the second turn with probability .9."""

    name = "contradicts"
    citation = "made up"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(0.1, {"contradictions": (0.9,), "turns": (2.0,)})

    def parts(self) -> tuple[Part, ...]:
        return (Part("contradictions", "", many=True), Part("turns", "", many=True))


@dataclass(frozen=True)
class Composed(Metric):
    """Two sub-metrics with weights .25 and .75."""

    name = "composed"
    citation = "made up"

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(0.25 * 0.8 + 0.75 * 0.4, {"first": 0.8, "second": 0.4})

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("first", "from 0 to 1", weight=0.25),
            Part("second", "from 0 to 1", weight=0.75),
        )


METRICS = ("length", "distinct", Worded(), Complaints(), Contradicts(), Composed())


def hostile_sample(number: int, text: str, system: str | None = None) -> Sample:
    """The text wherever text can be."""
    return Sample(
        id=f"{number} {text}",
        context=(Turn(text, text), Turn(f"I said {text}", "system"), Turn(text, "user")),
        response=f"{text} and {text}",
        references=(text,),
        facts=(text,),
        system=text if system is None else system,
        dialogue=text,
        item=f"item {number} {text}",
        ratings={text: Rating((1.0 + number % 3, 2.0), (1, 5), (f"a {text}", f"b {text}"))},
        variants=(Variant(text, text), Variant(f"2 {text}", text)),
    )


def plain_sample(number: int, words: int, system: str = "bot") -> Sample:
    said = " ".join(f"w{place}" for place in range(words))
    return Sample(
        id=f"q{number}",
        context=(
            Turn(f"question {number}", "user"),
            Turn("an answer", "system"),
            Turn("and?", "user"),
        ),
        response=said,
        system=system,
        item=f"item{number}",
    )


def plain_run(
    out: Path, lengths: Sequence[int], systems: Sequence[str] = ("bot",), metrics=METRICS
) -> Run:
    """One sample for each length; systems take turns, so that item i is answered by each."""
    samples = [
        Sample(**{**_fields(plain_sample(i // len(systems), n)), "id": f"q{i}", "system": system})
        for i, (n, system) in enumerate(
            (n, systems[i % len(systems)]) for i, n in enumerate(lengths)
        )
    ]
    return dialeval.score(samples, metrics, out=out)


def _fields(sample: Sample) -> dict[str, object]:
    return {name: getattr(sample, name) for name in Sample.__slots__}
