"""Damaged files: no traceback, no exit code but 0, 1 and 2, no hang, no silent wrong number.

    pytest tests/fuzz                                         some hundred, the same ones each time
    pytest tests/fuzz --fuzz-budget 5000 --fuzz-seed 7        many more
    pytest tests/fuzz --fuzz-budget 5000 --fuzz-keep          and what fails is kept in kept/

What is in `kept/TARGET/CASE/` takes the place of sound files, under the same names.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from .mutations import mutate
from .targets import TARGETS, Target
from .trying import Tried

KEPT = Path(__file__).parent / "kept"
SHARES = sum(target.share for target in TARGETS)
SHOWN = 8


def named(target: Target) -> str:
    return target.name.replace(" ", "-")


@dataclass(frozen=True)
class Expected:
    code: int
    said: str
    numbers: Any


class Sound:
    """The sound files of a target, and what comes of them."""

    def __init__(self, target: Target, directory: Path) -> None:
        if target.needs and find_spec(target.needs) is None:
            pytest.skip(f"{target.needs} is not installed")
        self.target = target
        self.directory = directory
        self.files = directory / "sound"
        self.files.mkdir(parents=True)
        target.make(self.files)
        self._expected: dict[int, Expected] = {}

    def copy(self, name: str) -> Path:
        shutil.copytree(self.files, self.directory / name, symlinks=True)
        return self.directory / name

    def expected(self, use: int) -> Expected:
        if use not in self._expected:
            place = self.copy(f"expected-{use}")
            tried, numbers = self.target.uses[use](place)
            assert not tried.complaint, f"{tried.arguments}: {tried.complaint}"
            self._expected[use] = Expected(tried.code, said(tried, place), numbers)
        return self._expected[use]

    def verdict(self, place: Path, use: int) -> str:
        """What is wrong with how the command met the files in `place`; nothing if all is well."""
        expected = self.expected(use)
        tried, found = self.target.uses[use](place)
        if tried.complaint:
            return f"dialeval {' '.join(tried.arguments)}\n{tried.complaint}"
        told = (tried.code, said(tried, place)) != (expected.code, expected.said)
        if self.target.rule == "any" or told or found == expected.numbers:
            return ""
        if self.target.rule == "signed" and found[1] != expected.numbers[1]:
            return ""
        apart = _apart(expected.numbers, found)
        return f"dialeval {' '.join(tried.arguments)}\nsilently gives {apart}"


def said(tried: Tried, place: Path) -> str:
    """Standard error without places and progress."""
    lines = tried.err.replace(str(place), "@").splitlines()
    return "\n".join(line for line in lines if not line.startswith(("scoring:", "wrote ")))


def _apart(expected: Any, found: Any) -> str:
    one, other = str(expected), str(found)
    start = next(
        (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0
    )
    part = slice(max(0, start - 60), start + 60)
    return f"{other[part]!r}\ninstead of {one[part]!r}"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: named(target))
def test_damage_is_met_without_a_crash_and_without_a_wrong_number(target, tmp_path, request):
    option = request.config.getoption
    sound = Sound(target, tmp_path)
    cases = max(1, round(option("--fuzz-budget") * target.share / SHARES))
    failures: dict[str, str] = {}
    for number in range(cases):
        rng = random.Random(f"{option('--fuzz-seed')} {target.name} {number}")
        place = sound.copy(f"case-{number}")
        damaged = rng.choice(target.files(place))
        told = mutate(damaged, rng)
        content = damaged.read_bytes() if damaged.is_file() else None
        use = rng.randrange(len(target.uses))
        if complaint := sound.verdict(place, use):
            kind = complaint.strip().splitlines()[-1][:100]
            failures.setdefault(kind, f"case {number}: {told}\n{complaint}")
            if option("--fuzz-keep") and content is not None:  # as it was before it was used
                kept = KEPT / named(target) / f"{option('--fuzz-seed')}-{number}"
                destination = kept / damaged.relative_to(place)
                destination.parent.mkdir(parents=True, exist_ok=True)
                destination.write_bytes(content)
        shutil.rmtree(place)
    if failures:
        shown = "\n\n".join(list(failures.values())[:SHOWN])
        pytest.fail(f"{len(failures)} kinds of failure in {cases} cases:\n{shown}", pytrace=False)


@pytest.mark.parametrize(
    "case",
    sorted(KEPT.glob("*/*")),
    ids=lambda case: f"{case.parent.name}-{case.name}",
)
def test_what_once_failed_does_not_fail_again(case, tmp_path):
    target = next(one for one in TARGETS if named(one) == case.parent.name)
    sound = Sound(target, tmp_path)
    for use in range(len(target.uses)):
        place = sound.copy(f"use-{use}")
        shutil.copytree(case, place, dirs_exist_ok=True)
        assert sound.verdict(place, use) == ""
