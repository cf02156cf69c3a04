"""JSON files that people write, or that may be damaged: read strictly, complained about precisely.

    record = read_object(Path("mine.json"))
    fields = Fields(Path("mine.json"))
    negative = fields.texts(record.get("negative", []), "negative")
    fields.complain()

`read_object` refuses what Python's reader lets through and nobody means: a key that occurs twice,
NaN, numbers too large for a float, half a character (a lone surrogate), a thousand brackets.
`Fields` is the schema: each method checks one value, notes what is wrong with it, and returns
something of the right type to go on with, so that all problems are told at once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from dialeval.errors import InputError, Problem, UsageError, did_you_mean

LARGEST = 10_000_000
"""Bytes. What people write, and what our programs write of a run, is far below."""

DEEPEST = 32
"""Lists and objects inside each other. Our own files have up to eight."""

_HALF = re.compile("[\ud800-\udfff]")
_SHOWN = 60


def read_object(path: Path, what: str = "a JSON object", largest: int = LARGEST) -> dict[str, Any]:
    """Reads the object in a file, which messages call `what`; an error names its place."""
    record = read_value(path, largest)
    if not isinstance(record, dict):
        raise _problem(path, 0, f"is not {what}: expected an object, found {shown(record)}")
    return record


def read_value(path: Path, largest: int = LARGEST) -> Any:
    try:
        if (size := path.stat().st_size) > largest:
            raise UsageError(f"{path}: has {size:,} bytes; the most that is read is {largest:,}")
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    return parse(content, path)


def parse(content: bytes, path: Path, line: int = 1) -> Any:
    """Parses the value in these bytes, which begin in this line of the file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line += content.count(b"\n", 0, error.start)
        raise _problem(path, line, f"is not UTF-8 text (byte {error.start})") from error
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        where = line + error.lineno - 1
        raise _problem(path, where, f"is not JSON: {error.msg} (column {error.colno})") from error
    except RecursionError as error:
        raise _problem(path, line, f"has more than {DEEPEST} levels") from error
    except ValueError as error:
        raise _problem(path, line, f"is not JSON: {error}") from error
    for field, problem in _oddities(value):
        raise InputError([Problem(str(path), 0, field, problem)])
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{shown(twice)} occurs twice")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _oddities(value: Any) -> Iterator[tuple[str, str]]:
    """(field, problem) of what no later step could use. Without recursion: the depth is hostile."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    while waiting:
        one, path = waiting.pop()
        if len(path) > DEEPEST:
            yield "", f"has more than {DEEPEST} levels"
            return
        if isinstance(one, str) and _HALF.search(one):
            yield _joined(path), f"half a character (a lone surrogate) in {shown(one)}"
        elif isinstance(one, float) and not math.isfinite(one):
            yield _joined(path), "a number that is too large"
        elif isinstance(one, dict):
            for name, inner in one.items():
                if _HALF.search(name):
                    yield _joined(path), f"half a character in the name {shown(name)}"
                waiting.append((inner, (*path, f".{name}")))
        elif isinstance(one, list):
            waiting += [(inner, (*path, f"[{number}]")) for number, inner in enumerate(one)]


def _joined(path: tuple[str, ...]) -> str:
    return "".join(path).removeprefix(".").encode("utf-8", "replace").decode()


def shown(value: Any) -> str:
    """Returns a value in a message: on one line, short, and never half a character."""
    if isinstance(value, dict | list) and len(value) > _SHOWN:
        return "an object" if isinstance(value, dict) else "a list"
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = type(value).__name__
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _problem(path: Path, line: int, problem: str) -> InputError:
    return InputError([Problem(str(path), line, "", problem)])


class Fields:
    """Collects what is wrong with the fields of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []

    def complain(self) -> None:
        """Raises if anything was wrong."""
        if self.problems:
            raise InputError(self.problems)

    def wrong(self, field: str, problem: str) -> None:
        self.problems.append(Problem(str(self.path), 0, field, problem))

    def known(self, record: Mapping[str, Any], names: Collection[str], field: str = "") -> None:
        """Refuses unknown names: nobody reads them, so a misspelt name would change nothing
        silently."""
        for name in record:
            if name not in names:
                place = f"{field}.{name}" if field else name
                there = f"There are: {', '.join(sorted(names))}"
                self.wrong(place, f"no such field.{did_you_mean(name, names)} {there}")

    def records(self, value: Any, field: str) -> list[Any]:
        if isinstance(value, list):
            return value
        self.wrong(field, f"must be a list, not {shown(value)}")
        return []

    def mapping(self, value: Any, field: str) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self.wrong(field, f"must be an object, not {shown(value)}")
        return {}

    def text(self, value: Any, field: str, *, empty: bool = False) -> str:
        if isinstance(value, str) and (value or empty):
            return value
        self.wrong(field, f"must be a text, not {shown(value)}")
        return ""

    def texts(self, value: Any, field: str) -> tuple[str, ...]:
        """Returns a list of texts. A single text is refused: its letters would be taken for
        texts."""
        return tuple(
            self.text(one, f"{field}[{number}]")
            for number, one in enumerate(self.records(value, field))
        )

    def choice(self, value: Any, field: str, choices: Collection[str]) -> str:
        if isinstance(value, str) and value in choices:
            return value
        self.wrong(field, f"is {shown(value)}, not one of {', '.join(choices)}")
        return next(iter(choices))

    def truth(self, value: Any, field: str) -> bool:
        if not isinstance(value, bool):
            self.wrong(field, f"must be true or false, not {shown(value)}")
        return value is True

    def count(self, value: Any, field: str) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.wrong(field, f"must be a whole number from 0, not {shown(value)}")
        return 0

    def number(self, value: Any, field: str) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                if math.isfinite(value):
                    return float(value)
            except OverflowError:
                pass
        self.wrong(field, f"must be a number, not {shown(value)}")
        return 0.0

    def number_or_none(self, value: Any, field: str) -> float | None:
        return None if value is None else self.number(value, field)
