"""Checks of what records hold: text, names, lists of texts, turns; and of ids over whole files.

Each check takes a value of any type as it came from the file, reports what is wrong with it, and
returns something of the right type all the same: whether the record can be used is decided by
whoever counts the errors. Nothing here raises.

`IdSet` keeps ids in a few bytes each: 64-bit hashes, in one flat array with open addressing. A
Python set of a million ids takes a hundred megabytes or more; this takes sixteen. Two different ids
share a hash with probability 3e-8 in a million ids; Python salts the hashes of each process, so
that nobody can prepare a file of ids that collide.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dialeval.readers.reader import Place
from dialeval.sample import Sample, Turn

SPEAKERS = {
    "user": "user",
    "human": "user",
    "system": "system",
    "system-bot": "system",
    "assistant": "system",
    "model": "system",
    "bot": "system",
}
"""The names of the two sides in data sets -> our names."""

_PREFIX = re.compile(r"(User|System):[ \t]*", re.IGNORECASE)

_NAMES = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def kind(value: object) -> str:
    """Returns what a value is, in words for a message."""
    return _NAMES.get(type(value), type(value).__name__)


def expected(what: str, value: object) -> str:
    return f"expected {what}, not {kind(value)}"


def text(value: object, field: str, place: Place) -> str:
    """Reads a text that must be present."""
    if isinstance(value, str):
        return value
    place.error(field, "missing" if value is None else expected("text", value))
    return ""


def name(value: object, field: str, place: Place) -> str:
    """Reads a text that may be absent; whole numbers are taken too, as ids often are numbers."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        if -(10**18) < value < 10**18:
            return str(value)
        place.error(field, "the number is too long for a name: write it as text")
        return ""
    place.error(field, expected("text", value))
    return ""


def response(value: object, place: Place) -> str:
    spoken = text(value, "response", place)
    if not spoken.strip() and isinstance(value, str):
        place.warning("response", "empty: kept, as a system that says nothing")
    return spoken


def texts(value: object, field: str, place: Place) -> tuple[str, ...]:
    """Reads one text or a list of them, without the empty ones."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, Sequence):
        place.error(field, expected("a text or a list of texts", value))
        return ()
    found = []
    for index, item in enumerate(value):
        if not isinstance(item, str):
            place.error(f"{field}[{index}]", expected("text", item))
        elif item.strip():
            found.append(item)
        else:
            place.warning(f"{field}[{index}]", "empty: left out")
    return tuple(found)


def turns_of_lines(lines: Iterable[str]) -> tuple[Turn, ...]:
    """Returns turns from lines. If every line starts with `User:` or `System:` those name the
    speakers."""
    spoken = [text for line in lines if (text := line.strip())]
    if not spoken or not _PREFIX.match(spoken[0]):
        return tuple([Turn(line) for line in spoken])
    prefixes = [_PREFIX.match(line) for line in spoken]
    if all(prefixes):
        return tuple(
            Turn(line[prefix.end() :], prefix[1].lower())
            for line, prefix in zip(spoken, prefixes, strict=True)
            if prefix
        )
    return tuple(Turn(line) for line in spoken)


def without_prefix(spoken: str, context: Sequence[Turn]) -> str:
    """`System: Hi!` -> `Hi!`, but only after a context whose lines carried such prefixes too."""
    if context and context[0].speaker and (prefix := _PREFIX.match(spoken)):
        return spoken[prefix.end() :]
    return spoken


def turns(value: object, field: str, place: Place) -> tuple[Turn, ...]:
    """Reads a context: text with a line per turn, a list of texts, or a list of {speaker, text}."""
    if type(value) is tuple:  # made by the reader itself
        return value
    if type(value) is list and value and type(value[0]) is dict:
        return tuple(_turn(item, index, field, place) for index, item in enumerate(value))
    if isinstance(value, str):
        return turns_of_lines(value.split("\n"))
    if value is None:
        return ()
    if not isinstance(value, list):
        place.error(field, expected("text, a list of texts or a list of {speaker, text}", value))
        return ()
    for index, item in enumerate(value):
        if not isinstance(item, str):
            place.error(f"{field}[{index}]", expected("text", item))
            return ()
    return turns_of_lines(value)


def _turn(item: object, index: int, field: str, place: Place) -> Turn:
    if not isinstance(item, dict):
        place.error(f"{field}[{index}]", expected("an object with speaker and text", item))
        return Turn("")
    spoken, speaker = item.get("text"), item.get("speaker")
    if type(spoken) is not str or type(speaker) is not str:
        spoken = text(spoken, f"{field}[{index}].text", place)
        speaker = name(speaker, f"{field}[{index}].speaker", place)
    return Turn(spoken, SPEAKERS.get(speaker.lower(), speaker))


def alternating(context: Sequence[Turn]) -> tuple[Turn, ...]:
    """Two people take turns, and the system speaks next: the last turn is the user's."""
    count = len(context)
    return tuple(
        Turn(turn.text, "system" if (count - index) % 2 == 0 else "user")
        for index, turn in enumerate(context)
    )


def record(value: object, place: Place) -> Mapping[str, Any]:
    """Reads a JSON object; anything else is reported and read as an empty one."""
    if isinstance(value, dict):
        return value
    place.error("", expected("an object", value))
    return {}


class Items:
    """Names for contexts, so that the answers of rival systems to one context share an item.

    The name is a digest of the turns. Where one system answers the same context again, its second
    answer belongs to a second item, as each context was judged on its own.
    """

    def __init__(self) -> None:
        self._seen: Counter[tuple[bytes, str]] = Counter()

    def name(self, context: Sequence[Turn], system: str) -> str:
        digest = hashlib.blake2b(
            "\x1e".join(turn.text for turn in context).encode("utf-8", "replace"), digest_size=8
        )
        self._seen[digest.digest(), system] += 1
        times = self._seen[digest.digest(), system]
        return digest.hexdigest() + (f"-{times}" if times > 1 else "")


def usable(samples: Iterable[Sample], place: Place) -> Iterator[Sample]:
    """Yields the samples of one record if making them reports no error; otherwise it counts as
    skipped."""
    errors = place.problems.errors
    made = list(samples)
    if place.problems.errors == errors:
        yield from made
    else:
        place.problems.skipped += 1


class IdSet:
    """Tells whether an id was seen before."""

    def __init__(self) -> None:
        self._mask = (1 << 12) - 1
        self._table = array("q", [0]) * (self._mask + 1)  # 0 is an empty slot
        self._free = self._mask // 2

    def holds_or_adds(self, ident: str) -> bool:
        """True if the id is there; otherwise it is added."""
        value = hash(ident) or 1
        table, mask = self._table, self._mask
        slot = value & mask
        while found := table[slot]:
            if found == value:
                return True
            slot = (slot + 1) & mask
        table[slot] = value
        self._free -= 1
        if not self._free:
            self._grow()
        return False

    def _grow(self) -> None:
        old = self._table
        self._mask = mask = 2 * self._mask + 1
        self._free = (mask + 1) // 2 - (mask + 1) // 4
        table = array("q", [0]) * (mask + 1)
        for value in old:
            if value:
                slot = value & mask
                while table[slot]:
                    slot = (slot + 1) & mask
                table[slot] = value
        self._table = table
