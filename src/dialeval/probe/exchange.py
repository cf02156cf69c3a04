"""One question to a system and what came of it, and the file that holds them.

    {"query": "chat-1", "what": "variant 2", "messages": [{"role": "user", "content": "Who ..."}],
     "reply": "I am Bob.", "seconds": 0.412, "check": "5f0c1d22"}

Each exchange is a line that is written and flushed when it ends: a process that is killed loses at
most the line that it was writing. A question that failed has an `error` instead of a `reply`; when
it is asked again, the later line counts. A reply that the system calls unfinished has `cut`: true.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dialeval.errors import InputError, Problem
from dialeval.probe.plan import Ask
from dialeval.storage import atomic_path, naming
from dialeval.strict_json import Fields, parse
from dialeval.systems.system import as_messages

Key = tuple[str, str]
BLOCK = 1 << 16
CHECK = "check"
DAMAGED = "exchanges.damaged"
"""Lines of the file of exchanges that could not be read any more."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no reply: `reason` is counted, `detail` is what this one looked like.

    `down`, `advice` and `passing` are those of `ReplyError`; they matter while it is asked, and are
    not kept.
    """

    reason: str
    detail: str = ""
    down: bool = False
    advice: str = ""
    passing: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with its reply, or with the reason why there is none."""

    query: str
    what: str
    messages: tuple[Mapping[str, str], ...]
    reply: str | None = None
    failure: Failure | None = None
    seconds: float = 0.0
    cut: bool = False
    """The reply met a limit of tokens, and is not whole."""

    @property
    def key(self) -> Key:
        return self.query, self.what

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "query": self.query,
            "what": self.what,
            "messages": list(self.messages),
        }
        if self.failure is None:
            record["reply"] = self.reply
            if self.cut:
                record["cut"] = True
        else:
            record["error"] = {"reason": self.failure.reason, "detail": self.failure.detail}
        return {**record, "seconds": round(self.seconds, 4)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Exchange:
        """The inverse of `to_record`, for records that a probe wrote. Others are a ValueError."""
        fields = Fields(Path())
        given = fields.mapping(record, "")
        messages = [fields.mapping(m, "") for m in fields.records(given.get("messages"), "")]
        for message in messages:
            for part in ("role", "content"):
                fields.text(message.get(part), part, empty=True)
        failure = reply = None
        if "error" in given:
            error = fields.mapping(given["error"], "error")
            reason, detail = (
                fields.text(error.get(n), n, empty=True) for n in ("reason", "detail")
            )
            failure = Failure(reason, detail)
        else:
            reply = fields.text(given.get("reply"), "reply", empty=True)
        found = cls(
            fields.text(given.get("query"), "query", empty=True),
            fields.text(given.get("what"), "what"),
            tuple(messages),
            reply,
            failure,
            fields.number(given.get("seconds"), "seconds"),
            fields.truth(given.get("cut", False), "cut"),
        )
        if fields.problems:
            raise ValueError(str(fields.problems[0]))
        if CHECK in given and given[CHECK] != _check_of(given):
            raise ValueError("the line is not the one that was written")
        return found


def replied(ask: Ask, reply: str, seconds: float, cut: bool = False) -> Exchange:
    messages = tuple(as_messages(ask.history))
    return Exchange(ask.query, ask.what, messages, reply, None, seconds, cut)


def failed(ask: Ask, failure: Failure, seconds: float) -> Exchange:
    return Exchange(ask.query, ask.what, tuple(as_messages(ask.history)), None, failure, seconds)


class Recording:
    """The file of exchanges, open to be added to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        cut_torn_line(path)
        self.damaged: list[bytes] = []
        """Lines that cannot be read. They are kept apart, and their questions are asked again."""
        self.exchanges = read_exchanges(path, self.damaged)
        """The last exchange of each key."""
        if self.damaged:
            with naming(apart := path.with_name(DAMAGED)), apart.open("ab") as file:
                file.write(b"".join(self.damaged))

    def __enter__(self) -> Recording:
        self._file = self._path.open("ab")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file:
            with naming(self._path):  # what is still to be written fails once more
                self._file.close()

    def add(self, exchange: Exchange) -> None:
        assert self._file is not None, "the recording is not open"
        with naming(self._path):
            self._file.write(_line(exchange))
            self._file.flush()
        self.exchanges[exchange.key] = exchange

    def answer(self, key: Key) -> str | None:
        found = self.exchanges.get(key)
        return found.reply if found else None


def cut_torn_line(path: Path) -> None:
    """Drops what follows the last line end: a line that was being written when the end came."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - BLOCK)
            file.seek(start)
            if (place := file.read(end - start).rfind(b"\n")) >= 0:
                end = start + place + 1
                break
            end = start
        if end < size:
            file.truncate(end)


def read_exchanges(path: Path, damaged: list[bytes] | None = None) -> dict[Key, Exchange]:
    """The last exchange of each key, in the order in which the keys first occur.

    Lines that cannot be read are put into `damaged`; without it they are an error.
    """
    found: dict[Key, Exchange] = {}
    problems = []
    if not path.exists():
        return found
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                exchange = Exchange.from_record(parse(line, path))
            except (InputError, ValueError):
                if damaged is not None:
                    damaged.append(line)
                what = "is damaged. Repeat the `dialeval probe` command: it is asked again"
                problems.append(Problem(str(path), number, "", what))
                continue
            found[exchange.key] = exchange
    if problems and damaged is None:
        raise InputError(problems)
    return found


def write_exchanges(path: Path, exchanges: Iterable[Exchange]) -> None:
    """The whole file anew, in this order."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for exchange in exchanges:
            file.write(_line(exchange))


def _line(exchange: Exchange) -> bytes:
    record = exchange.to_record()
    return _bytes({**record, CHECK: _check_of(record)}) + b"\n"


def _bytes(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")


def _check_of(record: Mapping[str, Any]) -> str:
    """The beginning of the sha256 of a line without its check: another letter in a reply is
    damage, too, and no other rule would find it."""
    rest = {name: value for name, value in record.items() if name != CHECK}
    return hashlib.sha256(_bytes(rest)).hexdigest()[:8]
