"""Sets of follow-ups: things that people say after a bad answer, or after a good one.

A set is a JSON file with a version, its source, and the lists `positive` and `negative`. The sets
that ship are named `full`, `full-released`, `fed` and `contrast`; any other name is the path of a
file of one's own, which may also be plain text with one negative follow-up per line.

A file is read when a metric is made, and never again: the metric keeps the `FollowUps`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from dialeval.errors import UsageError
from dialeval.scores import digest_of
from dialeval.strict_json import Fields, read_object, shown

_HOME = Path(__file__).parent
_VERSION = re.compile(r"[\w.-]{1,40}")


@dataclass(frozen=True)
class FollowUps:
    """`name` is that of a shipped set with its version, or of a file without folder and ending."""

    name: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]

    @property
    def identity(self) -> str:
        """Returns the digest for signatures: the texts count, not their place."""
        return f"{self.name}@{digest_of([self.positive, self.negative])}"

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.positive, *self.negative)


def load_follow_ups(name: str) -> FollowUps:
    """Loads a set that ships, by name, or one from a file, by path."""
    shipped = _HOME / f"{name}.json"
    if name.isidentifier() or shipped.is_file():
        if not shipped.is_file() or name == "fed":
            raise UsageError(
                f"no set of follow-ups {name!r}; there are full, full-released and contrast,"
                " or give the path of a file"
            )
        return _from_json(shipped, f"{name}-v{read_object(shipped)['version']}")
    return _from_file(Path(name))


@dataclass(frozen=True)
class FedQuality:
    """One of the 18 qualities of FED with its follow-ups; either side may be empty."""

    name: str
    level: Literal["turn", "dialogue"]
    positive: tuple[str, ...]
    negative: tuple[str, ...]


@cache
def fed_qualities() -> tuple[FedQuality, ...]:
    record = json.loads((_HOME / "fed.json").read_text(encoding="utf-8"))
    return tuple(
        FedQuality(name, entry["level"], tuple(entry["positive"]), tuple(entry["negative"]))
        for name, entry in record["qualities"].items()
    )


def _from_file(path: Path) -> FollowUps:
    if not path.is_file():
        raise UsageError(f"follow-ups {str(path)!r} cannot be read: there is no such file")
    if path.suffix == ".json":
        return _from_json(path, path.stem)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"follow-ups {str(path)!r} cannot be read: {error}") from error
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not lines:
        raise UsageError(f"follow-ups {str(path)!r}: the file holds no line")
    fields = Fields(path)
    _check_apart(fields, lines, "")
    fields.complain()
    return FollowUps(path.stem, (), lines)


def _check_apart(fields: Fields, texts: Sequence[str], field: str) -> None:
    """Each follow-up is a column of a run, beside the column of notes."""
    for text, times in Counter(texts).items():
        if times > 1:
            fields.wrong(field, f"{shown(text)} occurs {times} times")
        elif text == "note":
            fields.wrong(field, "'note' is the name of another column: add a full stop")


def _from_json(path: Path, name: str) -> FollowUps:
    """`version` and `source` are for people: what counts is signed by its digest."""
    record = read_object(path, "a set of follow-ups")
    fields = Fields(path)
    fields.known(record, {"version", "source", "positive", "negative"})
    version = record.get("version", 0)
    if not (isinstance(version, int | str) and _VERSION.fullmatch(str(version))):
        fields.wrong("version", f"is {shown(version)}, not a number or a word such as 2.1-beta")
    fields.text(record.get("source", ""), "source", empty=True)
    positive = fields.texts(record.get("positive", []), "positive")
    negative = fields.texts(record.get("negative", []), "negative")
    _check_apart(fields, positive, "positive")
    _check_apart(fields, negative, "negative")
    if not (positive or negative):
        fields.wrong("", "holds no follow-ups: 'positive' and 'negative' are lists of texts")
    fields.complain()
    return FollowUps(name, positive, negative)
