"""Rubrics: what a language model is asked about an answer, and in which words.

A rubric is a TOML or JSON file:

    version = 1
    source = "ours"
    scale = "1-5"                        # or "yes-no": digits from LOW to HIGH, or a probability
    instruction = "You judge chatbots. ..."

    [[qualities]]
    name = "overall"
    levels = ["turn"]                    # left out: answers and whole dialogues
    question = "How good is the bot's last answer? Rate it from 1 (bad) to 5 (good)."

    [[examples]]                         # shown to the model before the dialogue
    dialogue = ["Hi!"]
    answer = "Hello, how are you?"
    reply = "5"

The score is the mean of the qualities. `overall`, `fed` and `qualities` ship with dialeval; any
other name is the path of a file. It is read when the metric is made, and its digest is signed.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from dialeval.errors import InputError, Problem, UsageError
from dialeval.sample import Level
from dialeval.scores import digest_of
from dialeval.strict_json import LARGEST, Fields, read_object, shown

HOME = Path(__file__).parent
LEVELS: tuple[Level, ...] = ("turn", "dialogue")
YES_NO = "yes-no"
_SCALE = re.compile(r"([0-9])-([0-9])")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_TAKEN = {"note", "mass"}


@dataclass(frozen=True, slots=True)
class Quality:
    """One question about an answer, or about a dialogue."""

    name: str
    question: str
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A judged answer that is shown to the model first."""

    dialogue: tuple[str, ...]
    answer: str
    reply: str


@dataclass(frozen=True)
class Rubric:
    """`name` is that of a shipped rubric with its version, or of a file without folder and
    ending."""

    name: str
    choices: tuple[str, ...]
    instruction: str
    qualities: tuple[Quality, ...]
    examples: tuple[Example, ...] = ()

    @property
    def values(self) -> tuple[float, ...]:
        """What each choice is worth."""
        if self.choices == ("yes", "no"):
            return (1.0, 0.0)
        return tuple(float(digit) for digit in self.choices)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(quality.name for quality in self.qualities))

    @property
    def levels(self) -> frozenset[Level]:
        return frozenset(level for quality in self.qualities for level in quality.levels)

    def at(self, level: Level) -> tuple[Quality, ...]:
        return tuple(quality for quality in self.qualities if level in quality.levels)

    @property
    def identity(self) -> str:
        """What signatures say: the words count, wherever they lie."""
        asked = [(one.name, one.question, one.levels) for one in self.qualities]
        shown_first = [(one.dialogue, one.answer, one.reply) for one in self.examples]
        return f"{self.name}@{digest_of([self.choices, self.instruction, asked, shown_first])}"


def load_rubric(name: str) -> Rubric:
    """A rubric that ships, by name, or one from a file, by path."""
    shipped = HOME / f"{name}.toml"
    if _NAME.fullmatch(name):
        if not shipped.is_file():
            there = ", ".join(sorted(path.stem for path in HOME.glob("*.toml")))
            raise UsageError(f"no rubric {name!r}; there are {there}, or give the path of a file")
        record = _read(shipped)
        return _checked(record, shipped, f"{name}-v{record['version']}")
    path = Path(name).expanduser()
    if not path.is_file():
        raise UsageError(f"rubric {name!r} cannot be read: there is no such file")
    return _checked(_read(path), path, path.stem)


def _read(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return read_object(path, "a rubric")
    try:
        content = path.read_bytes()
        if len(content) > LARGEST:
            raise UsageError(f"{path}: has {len(content):,} bytes; the most is {LARGEST:,}")
        return tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError([Problem(str(path), 0, "", f"is not TOML: {error}")]) from error


def _checked(record: dict[str, Any], path: Path, name: str) -> Rubric:
    fields = Fields(path)
    fields.known(record, {"version", "source", "scale", "instruction", "qualities", "examples"})
    if not isinstance(record.get("version", 0), int):
        fields.wrong("version", f"must be a whole number, not {shown(record['version'])}")
    fields.text(record.get("source", ""), "source", empty=True)
    choices = _choices(fields, record.get("scale"))
    instruction = fields.text(record.get("instruction"), "instruction")
    qualities = tuple(
        _quality(fields, fields.mapping(one, f"qualities[{n}]"), f"qualities[{n}]")
        for n, one in enumerate(fields.records(record.get("qualities", []), "qualities"))
    )
    if not qualities:
        fields.wrong("qualities", "names nothing to ask")
    for level in LEVELS:
        names = [quality.name for quality in qualities if level in quality.levels]
        for twice in {one for one in names if names.count(one) > 1}:
            fields.wrong("qualities", f"{shown(twice)} occurs twice for a {level}")
    examples = tuple(
        _example(fields, fields.mapping(one, f"examples[{n}]"), f"examples[{n}]", choices)
        for n, one in enumerate(fields.records(record.get("examples", []), "examples"))
    )
    fields.complain()
    return Rubric(name, choices, instruction, qualities, examples)


def _choices(fields: Fields, scale: Any) -> tuple[str, ...]:
    if scale == YES_NO:
        return ("yes", "no")
    match = _SCALE.fullmatch(scale) if isinstance(scale, str) else None
    if match is None or int(match[1]) >= int(match[2]):
        fields.wrong("scale", f'is {shown(scale)}, not {YES_NO} or two digits such as "1-5"')
        return ("1", "2")
    return tuple(str(digit) for digit in range(int(match[1]), int(match[2]) + 1))


def _quality(fields: Fields, record: dict[str, Any], place: str) -> Quality:
    fields.known(record, {"name", "question", "levels"}, place)
    name = fields.text(record.get("name"), f"{place}.name")
    if name and (not _NAME.fullmatch(name) or name in _TAKEN):
        fields.wrong(f"{place}.name", f"is {shown(name)}, not small letters, digits and hyphens")
    levels = fields.texts(record.get("levels", list(LEVELS)), f"{place}.levels")
    for level in levels:
        fields.choice(level, f"{place}.levels", LEVELS)
    question = fields.text(record.get("question"), f"{place}.question")
    return Quality(name, question.strip(), cast("tuple[Level, ...]", levels))


def _example(
    fields: Fields, record: dict[str, Any], place: str, choices: tuple[str, ...]
) -> Example:
    fields.known(record, {"dialogue", "answer", "reply"}, place)
    return Example(
        fields.texts(record.get("dialogue", []), f"{place}.dialogue"),
        fields.text(record.get("answer"), f"{place}.answer"),
        fields.choice(record.get("reply"), f"{place}.reply", choices),
    )
