"""One question to a system and what came of it, and the file that holds them.

    {"query": "chat-1", "what": "variant 2", "messages": [{"role": "user", "content": "Who ..."}],
     "reply": "I am Bob.", "seconds": 0.412}

Each exchange is a line that is written and flushed when it ends: a process that is killed loses at
most the line that it was writing. A question that failed has an `error` instead of a `reply`; when
it is asked again, the later line counts. A reply that the system calls unfinished has `cut`: true.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dialeval.errors import InputError, Problem
from dialeval.probe.plan import Ask
from dialeval.storage import atomic_path
from dialeval.systems.system import as_messages

Key = tuple[str, str]
BLOCK = 1 << 16


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
        """The inverse of `to_record`, for records that a probe wrote."""
        error = record.get("error")
        return cls(
            record["query"],
            record["what"],
            tuple(record["messages"]),
            record.get("reply"),
            Failure(error["reason"], error["detail"]) if error else None,
            record["seconds"],
            record.get("cut", False),
        )


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
        self.exchanges = read_exchanges(path)
        """The last exchange of each key."""

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
            self._file.close()

    def add(self, exchange: Exchange) -> None:
        assert self._file is not None, "the recording is not open"
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


def read_exchanges(path: Path) -> dict[Key, Exchange]:
    """The last exchange of each key, in the order in which the keys first occur."""
    found: dict[Key, Exchange] = {}
    if not path.exists():
        return found
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                break
            try:
                exchange = Exchange.from_record(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                problem = "is damaged: remove this line, and it is asked again"
                raise InputError([Problem(str(path), number, "", problem)]) from error
            found[exchange.key] = exchange
    return found


def write_exchanges(path: Path, exchanges: Iterable[Exchange]) -> None:
    """The whole file anew, in this order."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for exchange in exchanges:
            file.write(_line(exchange))


def _line(exchange: Exchange) -> bytes:
    text = json.dumps(exchange.to_record(), ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"
