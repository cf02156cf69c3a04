"""JSON records one at a time, from JSON Lines or from one big array, in bounded memory.

    {"a": 1}                      [{"a": 1},                 {                  {"data": [{"a": 1},
    {"a": 2}                       {"a": 2}]                   "a": 1                     {"a": 2}]}
                                                             }

Objects may be spread over lines, one after the other. An object that only wraps a list of records
(`data`, `runs`, ...: see `WRAPPERS`), as services answer, stands for these records.

An array is decoded element by element over a window of text. The window doubles whenever it holds
no whole element, so that the work stays linear in the size of the file. A broken element of an
array is reported and reading goes on at the next line that starts like the first element did; where
elements do not start their own lines there is no safe place to go on, and reading stops.

Where a key occurs twice in an object the last one counts, as in every common JSON library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from dialeval.limits import USUAL_LIMITS, Limits
from dialeval.readers.reader import Place, UnreadableError
from dialeval.readers.source import Source

_decoder = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_UNFIT = re.compile(r"[\x00\ud800-\udfff]")
_KEY = re.compile(r'"([^"\\]{1,100})"\s*:')

_MARGIN = 32
"""An error this near to the end of the window may be a token that was cut: read on first."""


def json_records(source: Source, place: Place) -> Iterator[tuple[int, Any]]:
    """(line where it starts, value) of each element or line that is valid JSON."""
    text = source.text_head.lstrip()
    if text.startswith("["):
        return array_elements(source.text(place), place, source.tell_unread, source.limits)
    first_line = text.partition("\n")[0].rstrip()
    if text.startswith("{") and first_line.endswith(("{", "[", ",")):
        values = _spread_values(source, place)
    else:
        values = _line_records(source, place)
    return _without_wrapper(values) if _WRAPPED.search(text) else values


WRAPPERS = (
    "data", "items", "records", "rows", "results", "examples", "samples", "logs", "traces", "runs",
    "spans", "chats", "dialogues", "dialogs", "conversations",
)  # fmt: skip
"""The keys under which services and people store the list of records."""
_WRAPPED = re.compile(r'"(?:' + "|".join(WRAPPERS) + r')"\s*:\s*\[\s*[{\[]')
_TURN = {"from", "role", "value", "speaker", "author", "lc", "message.role"}
"""By these, the elements of a list are turns of one conversation."""


def wrapped_records(value: Any) -> list[Any] | None:
    """Returns the records that an object wraps; None where it is a record itself."""
    if type(value) is not dict:
        return None
    for key in WRAPPERS:
        held = value.get(key)
        if isinstance(held, list) and held and isinstance(held[0], dict | list):
            others = [one for one in value if one not in (key, "meta", "metadata", "pagination")]
            is_turn = isinstance(held[0], dict) and not _TURN.isdisjoint(held[0])
            long = [one for one in others if isinstance(value[one], list | dict)]
            if is_turn or (long and not {"features"} >= set(long)):
                return None
            return [
                one["row"] if isinstance(one, dict) and isinstance(one.get("row"), dict) else one
                for one in held
            ]
    return None


def _without_wrapper(values: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    for line, value in values:
        inner = wrapped_records(value)
        if inner is None:
            yield line, value
        else:
            yield from ((line, one) for one in inner)


def _spread_values(source: Source, place: Place) -> Iterator[tuple[int, Any]]:
    """Objects over several lines, one after the other. After a broken one, reading goes on at the
    next line that starts with a brace."""
    window = _Window(source.text(place), source.tell_unread, source.limits)
    window.skip_space()
    while window.char():
        line = window.line
        try:
            value, text = window.decode()
        except (ValueError, RecursionError) as error:
            place.line = window.line
            place.error("", _json_problem(error, window.text, window.position))
            place.problems.skipped += 1
            try:
                window.position += 1
                window.resume("")
            except UnreadableError:
                return
            continue
        yield line, _fit(value, place, line) if "\\u" in text else value
        window.skip_space()


def _line_records(source: Source, place: Place) -> Iterator[tuple[int, Any]]:
    raw_decode = _decoder.raw_decode
    for number, line in source.lines(place):
        try:
            value, end = raw_decode(line) if line.startswith("{") else (None, -1)
            if end != len(line):  # space around the value, or something wrong
                value = _decoder.decode(line)
            if "\\u" in line:
                value = _fit(value, place, number)
        except (ValueError, RecursionError) as error:
            if line and not line.isspace():
                place.line = number
                place.error("", _json_problem(error))
                place.problems.skipped += 1
            continue
        yield number, value


def first_keys(source: Source) -> set[str]:
    """Returns the keys of the first record, by which formats are told apart; empty if it is no
    JSON."""
    text = source.text_head.lstrip()
    if text.startswith("["):
        text = text[1:].lstrip()
    if not text.startswith("{"):
        return set()
    try:
        record = _decoder.raw_decode(text)[0]
    except (ValueError, RecursionError):  # cut off at the end of the head, or broken
        return all_keys(source)
    inner = wrapped_records(record)
    if inner is not None:
        record = inner[0]
    return set(record) if isinstance(record, dict) else set()


def first_record(source: Source) -> Any:
    """Returns the first record, or None where the start of the file does not hold it whole."""
    text = source.text_head.lstrip().removeprefix("[").lstrip()
    try:
        record = _decoder.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None
    inner = wrapped_records(record)
    return record if inner is None else inner[0]


def all_keys(source: Source) -> set[str]:
    """Returns all keys in the start of the file, at any depth."""
    return set(_KEY.findall(source.text_head))


def array_elements(
    pieces: Iterator[str],
    place: Place,
    tell_unread: Callable[[int], None] = lambda length: None,
    limits: Limits = USUAL_LIMITS,
) -> Iterator[tuple[int, Any]]:
    """(line where it starts, value) of each element of the array that the pieces spell."""
    window = _Window(pieces, tell_unread, limits)
    window.skip_space()
    window.position += 1  # the bracket, which the caller saw
    window.skip_space()
    indent = window.line_start()
    first = True
    while True:
        char = window.char()
        if char == "]":
            break
        if not char:
            raise UnreadableError("the array is not closed: is the file cut off?", window.line)
        if not first:
            if char != ",":
                place.line = window.line
                place.error("", f"invalid JSON: expected ',' or ']', not {char!r}")
                window.resume(indent)
                place.problems.skipped += 1
            else:
                window.position += 1
                window.skip_space()
        first = False
        line = window.line
        try:
            value, text = window.decode()
            if "\\u" in text:
                value = _fit(value, place, line)
        except (ValueError, RecursionError) as error:
            place.line = window.line
            place.error("", _json_problem(error, window.text, window.position))
            place.problems.skipped += 1
            window.position += 1
            window.resume(indent)
            first = True  # we stand on an element again
            continue
        yield line, value
        window.skip_space()
    window.position += 1
    window.skip_space()
    if char := window.char():
        raise UnreadableError(f"invalid JSON: {char!r} after the end of the array", window.line)


def object_members(source: Source, place: Place) -> Iterator[tuple[int, str, Any]]:
    """(line where it starts, key, value) of each member of the one object that the file is.

    Where a member is broken there is no safe place to go on.
    """
    window = _Window(source.text(place), source.tell_unread, source.limits)
    window.skip_space()
    separator, char = "{", ""
    while True:
        if (char := window.char()) != separator:
            break
        window.position += 1
        window.skip_space()
        if separator == "{" and window.char() == "}":
            char = "}"
            break
        line = window.line
        try:
            key, _ = window.decode()
            window.skip_space()
            if not isinstance(key, str) or window.char() != ":":
                raise UnreadableError("invalid JSON: expected a name and ':'", line)
            window.position += 1
            window.skip_space()
            value, text = window.decode()
        except (ValueError, RecursionError) as error:
            problem = _json_problem(error, window.text, window.position)
            raise UnreadableError(problem, window.line) from error
        yield line, _fit(key, place, line), _fit(value, place, line) if "\\u" in text else value
        window.skip_space()
        separator = ","
    if not char:
        raise UnreadableError("the object is not closed: is the file cut off?", window.line)
    if char != "}":
        raise UnreadableError(f"invalid JSON: expected ',' or '}}', not {char!r}", window.line)
    window.position += 1
    window.skip_space()
    if char := window.char():
        raise UnreadableError(f"invalid JSON: {char!r} after the end of the object", window.line)


class _Window:
    """The part of the text that is being decoded, and the line that `position` is on."""

    def __init__(
        self, pieces: Iterator[str], tell_unread: Callable[[int], None], limits: Limits
    ) -> None:
        self.text = ""
        self.position = 0
        self._pieces = pieces
        self._tell_unread = tell_unread
        self._limits = limits
        self._line = 1
        self._counted = 0

    @property
    def line(self) -> int:
        self._line += self.text.count("\n", self._counted, self.position)
        self._counted = self.position
        return self._line

    def grow(self) -> bool:
        """Drop what was decoded, then at least double the rest; False at the end of the text."""
        line = self.line  # also counts the lines that are dropped below
        rest = len(self.text) - self.position
        if rest > self._limits.record:
            raise UnreadableError(self._limits.long_record(), line)
        parts: list[str] = []
        more = 0
        while more <= rest and (piece := next(self._pieces, None)) is not None:
            parts.append(piece)
            more += len(piece)
        if not more:
            return False
        self.text = "".join((self.text[self.position :], *parts))
        self.position = self._counted = 0
        return True

    def skip_space(self) -> None:
        while True:
            match = _SPACE.match(self.text, self.position)
            self.position = match.end() if match else self.position
            if self.position < len(self.text) or not self.grow():
                return

    def char(self) -> str:
        return self.text[self.position : self.position + 1]

    def line_start(self) -> str | None:
        """Returns what stands before `position` on its line, if that is only space; None
        otherwise."""
        before = self.text[: self.position]
        start = before.rfind("\n")
        return before[start + 1 :] if start >= 0 and not before[start:].strip() else None

    def decode(self) -> tuple[Any, str]:
        """Returns the value at `position`, which moves behind it, and how it was written."""
        while True:
            try:
                value, end = _decoder.raw_decode(self.text, self.position)
            except json.JSONDecodeError as error:
                near = error.pos >= len(self.text) - _MARGIN
                if (near or error.msg.startswith("Unterminated")) and self.grow():
                    continue
                raise
            if end > len(self.text) - _MARGIN and self.grow():
                continue
            written = self.text[self.position : end]
            self.position = end
            self._tell_unread(len(self.text) - end)
            return value, written

    def resume(self, indent: str | None) -> None:
        """Move to the next line that starts as the first element did."""
        if indent is not None:
            mark = f"\n{indent}{{"
            while True:
                found = self.text.find(mark, self.position)
                if found >= 0:
                    self.position = found + len(mark) - 1
                    return
                self.position = max(self.position, len(self.text) - len(mark))
                if not self.grow():
                    break
        raise UnreadableError("cannot find the next record after this error", self.line)


def _json_problem(
    error: ValueError | RecursionError, text: str | None = None, start: int = 0
) -> str:
    if isinstance(error, RecursionError):
        return "invalid JSON: nested too deeply"
    if not isinstance(error, json.JSONDecodeError):
        return "invalid JSON: a number has too many digits"
    if text is None:
        return f"invalid JSON: {error.msg} at column {error.colno}"
    below = text.count("\n", start, error.pos)
    where = f"column {error.colno}" if below else f"character {error.pos - start + 1} of the record"
    return f"invalid JSON: {error.msg} at {where}" + (f", {below} lines below" if below else "")


def _fit(value: Any, place: Place, line: int) -> Any:
    """Escapes can spell what is not text: half of a surrogate pair, or NUL. They become U+FFFD."""
    place.line = line
    return without_unfit(value, place, "")


def without_unfit(value: Any, place: Place, field: str) -> Any:
    if isinstance(value, str):
        if _UNFIT.search(value) is None:
            return value
        place.warning(field, "holds NUL or half of a surrogate pair: replaced by U+FFFD")
        return _UNFIT.sub("\ufffd", value)
    if isinstance(value, list):
        return [without_unfit(item, place, field) for item in value]
    if isinstance(value, dict):
        return {
            without_unfit(key, place, field): without_unfit(item, place, field or str(key))
            for key, item in value.items()
        }
    return value
