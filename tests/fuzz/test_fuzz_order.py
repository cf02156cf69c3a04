"""Samples in another order and in other chunks get the same numbers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from made_up import Asking, LengthModels

from dialeval.engine.job import Job
from dialeval.registry import make_metric
from dialeval.runs.run import open_run
from dialeval.sample import Rating, Sample, Turn

WORDS = [
    "the",
    "a",
    "cat",
    "cats",
    "sat",
    "on",
    "mat",
    ",",
    ".",
    "why",
    "not",
    "?",
    "yes",
    "I",
    "do",
    "n't",
    "ünï",
    "你好",
    "😀",
    "=1+1",
]
METRICS = ("length", "distinct", "bleu", "rouge", "meteor", "chrf")


def made_up(rng: random.Random, count: int) -> list[Sample]:
    """Dialogues of any length, some without response, reference or rating; some texts are equal."""

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.choice((1, 1, 2, 5, 12))))

    return [
        Sample(
            id=f"s{number}",
            context=tuple(
                Turn(text(), rng.choice(("user", "system"))) for _ in range(rng.randrange(4))
            ),
            response=text() if rng.random() < 0.9 else None,
            references=tuple(text() for _ in range(rng.randrange(3))),
            system=rng.choice(("a", "b", "c")),
            ratings={"overall": Rating((rng.randrange(1, 6),), (1, 5))}
            if rng.random() < 0.5
            else {},
        )
        for number in range(count)
        if number % 7 or rng.random() < 0.9
    ]


def scored(samples: list[Sample], out: Path, chunk: int, part: int) -> tuple[dict[str, Any], Any]:
    metrics = [*map(make_metric, METRICS), Asking()]
    Job(out, metrics, models=LengthModels(), chunk=chunk, part=part).run(samples)
    run = open_run(out)
    rows = [row for batch in run.batches() for row in batch.to_pylist()]
    assert len(rows) == len(samples)
    return {row["id"]: row for row in rows}, run.manifest["systems"]


def numbers(systems: Any) -> dict[str, float]:
    """Every number of the table, by its place."""
    found: dict[str, float] = {}

    def walk(value: Any, place: str) -> None:
        if isinstance(value, dict):
            for key, one in value.items():
                walk(one, f"{place}.{key}")
        elif isinstance(value, int | float):
            found[place] = value

    for system in systems:
        walk(system, system["name"])
    return found


def test_other_order_and_other_chunks_give_the_same_numbers(tmp_path, request):
    option = request.config.getoption
    for number in range(max(2, option("--fuzz-budget") // 200)):
        rng = random.Random(f"{option('--fuzz-seed')} order {number}")
        samples = made_up(rng, rng.choice((1, 2, 30)))
        rows, systems = scored(samples, tmp_path / f"{number}-as-it-is", 1000, 1000)
        chunk, part = rng.choice((1, 2, 7)), rng.choice((3, 10, 1000))
        others, same = scored(samples, tmp_path / f"{number}-chunks", chunk, part)
        assert others == rows
        assert same == systems
        shuffled = rng.sample(samples, len(samples))
        others, same = scored(shuffled, tmp_path / f"{number}-order", chunk, part)
        assert others == rows
        assert numbers(same) == pytest.approx(numbers(systems), rel=1e-12)
