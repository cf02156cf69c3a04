"""Sets of follow-ups: things that people say after a bad answer, or after a good one.

A set is a JSON file with a version, its source, and the lists `positive` and `negative`. The sets
that ship are named `full`, `full-released`, `fed` and `contrast`; any other name is the path of a
file of one's own, which may also be plain text with one negative follow-up per line.

A file is read when a metric is made, and never again: the metric keeps the `FollowUps`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from dialeval.errors import UsageError
from dialeval.scores import digest_of

_HOME = Path(__file__).parent


@dataclass(frozen=True)
class FollowUps:
    """`name` is that of a shipped set with its version, or of a file without folder and ending."""

    name: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]

    @property
    def identity(self) -> str:
        """What signatures say: the texts count, wherever they lie."""
        return f"{self.name}@{digest_of([self.positive, self.negative])}"

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.positive, *self.negative)


def load_follow_ups(name: str) -> FollowUps:
    """A set that ships, by name, or one from a file, by path."""
    shipped = _HOME / f"{name}.json"
    if name.isidentifier() or shipped.is_file():
        if not shipped.is_file() or name == "fed":
            raise UsageError(
                f"no set of follow-ups {name!r}; there are full, full-released and contrast,"
                " or give the path of a file"
            )
        record = json.loads(shipped.read_text(encoding="utf-8"))
        return _from_json(record, f"{name}-v{record['version']}")
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
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"follow-ups {str(path)!r} cannot be read: {error}") from error
    if path.suffix == ".json":
        try:
            return _from_json(json.loads(text), path.stem)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(
                f"follow-ups {str(path)!r} must be a JSON object with lists of texts 'positive'"
                f" and 'negative': {error}"
            ) from error
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not lines:
        raise UsageError(f"follow-ups {str(path)!r}: the file holds no line")
    return FollowUps(path.stem, (), lines)


def _from_json(record: Mapping[str, Any], name: str) -> FollowUps:
    positive, negative = (tuple(record.get(side, ())) for side in ("positive", "negative"))
    if not all(isinstance(text, str) for text in (*positive, *negative)) or not (
        positive or negative
    ):
        raise ValueError("at least one follow-up is needed, and each must be a text")
    return FollowUps(name, positive, negative)
