"""Fixtures for readers: write a file, read it, look at samples and at problems as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dialeval.readers import load
from dialeval.sample import Sample


@dataclass(frozen=True)
class Reading:
    """What came out of a file: the samples, and the problems without their path."""

    samples: list[Sample]
    problems: list[str]
    skipped: int
    format: str


Read = Callable[..., Reading]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write `content` to a file, load it with bad="skip"."""

    def read(content: str | bytes, name: str = "file.jsonl", **options: Any) -> Reading:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        loaded = load(path, bad="skip", **options)
        samples = list(loaded)
        problems = [str(problem).removeprefix(str(path)) for problem in loaded.problems]
        return Reading(samples, problems, loaded.skipped, loaded.formats[str(path)])

    return read


@pytest.fixture(scope="session")
def rated(datasets: Path) -> Path:
    """The data sets that people have rated."""
    return datasets / "rated"
