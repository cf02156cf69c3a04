"""Made-up rated runs: answers of different length and wording, rated by rules that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import dialeval
from dialeval.runs.run import Run
from dialeval.sample import Rating, Sample, Turn

METRICS = ("length", "distinct:n=1", "bleu:n=1")
Rule = Callable[[str], float]


def rated_samples(
    name: str, rules: dict[str, Rule], count: int = 60, noise: float = 0.0
) -> list[Sample]:
    """Answers whose words and number of words differ; `rules` say what people think of them."""
    generator = np.random.default_rng(sum(map(ord, name)))
    samples = []
    for number in range(count):
        words = generator.integers(1, 12)
        response = " ".join(f"w{word}" for word in generator.integers(0, 15, words))
        samples.append(
            Sample(
                id=f"{name}-{number}",
                context=(Turn(f"question {number} of {name}", "user"),),
                response=response,
                references=("w1 w2 w3 w4",),
                system="ab"[number % 2],
                ratings={
                    quality: Rating((rule(response) + noise * generator.normal(),), None)
                    for quality, rule in rules.items()
                },
            )
        )
    return samples


def words(text: str) -> float:
    return float(len(text.split()))


def variety(text: str) -> float:
    return len(set(text.split())) / len(text.split())


def run_on(samples: Sequence[Sample], place: Path, metrics: Sequence[str] = METRICS) -> Run:
    return dialeval.score(samples, metrics, out=place)
