"""Exchanges: a question to a system with its outcome, and the file that stores them.

    {"query": "chat-1", "what": "variant 2", "messages": [{"role": "user", "content": "Who ..."}],
     "reply": "I am Bob.", "seconds": 0.412, "check": "5f0c1d22"}

Each exchange is a line that is written and flushed when it ends: a process that is killed loses at
most the line that it was writing. A question that failed has an `error` instead of a `reply`; when
it is asked again, the later line counts. A reply that the system calls unfinished has `cut`: true.

`ask_all` asks many questions at once, while the answers come in one by one. Threads ask; the
caller's thread hands out the questions, takes the exchanges and decides what comes next. So
whatever is done with an exchange needs no lock, and Ctrl-C arrives where it can be handled: nothing
new is asked, and what is under way has a moment to end.

The first question goes alone: where it is refused for a reason that holds for all of them, such as
a wrong API key or a server that is not running, it stays the only one.
"""

from __future__ import annotations

import hashlib
import json
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dialeval.chat_http import CutReply, ReplyError
from dialeval.errors import InputError, JobError, Problem
from dialeval.probe.plan import Ask
from dialeval.storage import atomic_path, naming
from dialeval.strict_json import Fields, parse
from dialeval.systems.system import BatchedSystem, System, as_messages, checked

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
        """Reads what `to_record` wrote, for records that a probe wrote; raises ValueError for
        others."""
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
    """Reads the last exchange of each key, in the order in which the keys first occur.

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
    """Writes the whole file again, in this order."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for exchange in exchanges:
            file.write(_line(exchange))


def _line(exchange: Exchange) -> bytes:
    record = exchange.to_record()
    return _bytes({**record, CHECK: _check_of(record)}) + b"\n"


def _bytes(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")


def _check_of(record: Mapping[str, Any]) -> str:
    """Returns the beginning of the sha256 of a line without its check: another letter in a reply is
    damage, too, and no other rule would find it."""
    rest = {name: value for name, value in record.items() if name != CHECK}
    return hashlib.sha256(_bytes(rest)).hexdigest()[:8]


GRACE = 2.0
"""Seconds that questions under way get after Ctrl-C."""

ALONE = 1.0
"""Seconds that the first question has for itself."""

LEAST_FAILURES = 10
"""So many failures in a row that any question would have met, and the system counts as down."""

React = Callable[[Exchange], Iterable[Ask]]
"""Takes an exchange and returns what can be asked now that it is known."""


def ask_all(system: System, asks: Iterable[Ask], react: React) -> None:
    """Asks everything, and everything that `react` adds. Order of the answers: as they come.

    Raises `JobError` where the system is down or refuses everybody; whatever ended until then has
    been reacted to.
    """
    waiting = deque(asks)
    size = system.batch if isinstance(system, BatchedSystem) else 1
    threads = max(1, min(system.concurrency, -(-len(waiting) // size)))
    inbox: queue.SimpleQueue[list[Ask] | None] = queue.SimpleQueue()
    outbox: queue.SimpleQueue[list[Exchange]] = queue.SimpleQueue()
    for _ in range(threads):
        worker = threading.Thread(target=_work, args=(system, inbox, outbox), daemon=True)
        worker.start()
    at_once, under_way, answered, down = 1, 0, 0, 0
    try:
        while waiting or under_way:
            while waiting and under_way < at_once:
                batch = [waiting.popleft() for _ in range(min(size, len(waiting)))]
                inbox.put(batch)
                under_way += 1
            try:
                exchanges = outbox.get(timeout=ALONE if at_once < threads else None)
            except queue.Empty:
                at_once = threads
                continue
            at_once = threads
            under_way -= 1
            for exchange in exchanges:
                # What an answer opens goes first: a query is done before the next is begun.
                waiting.extendleft(reversed(list(react(exchange))))
                answered += exchange.failure is None
                down = down + 1 if exchange.failure and exchange.failure.down else 0
            last = exchanges[-1].failure
            if last and last.advice and not answered:
                raise JobError((_seems_down if last.passing else _refuses)(system, last))
            if last and down >= max(LEAST_FAILURES, 2 * threads):
                raise JobError(_seems_down(system, last))
    except KeyboardInterrupt:
        _let_end(under_way, outbox, react)
        raise
    finally:
        for _ in range(threads):
            inbox.put(None)


def _work(
    system: System,
    inbox: queue.SimpleQueue[list[Ask] | None],
    outbox: queue.SimpleQueue[list[Exchange]],
) -> None:
    while (batch := inbox.get()) is not None:
        outbox.put(exchange_batch(system, batch))


def exchange_batch(system: System, asks: Sequence[Ask]) -> list[Exchange]:
    """Returns one exchange for each question. A batch that fails is asked again one by one."""
    if len(asks) > 1 and isinstance(system, BatchedSystem):
        started = time.monotonic()
        try:
            replies = system.replies([ask.history for ask in asks])
            pairs = list(zip(asks, replies, strict=True))
        except Exception:
            pairs = []
        seconds = (time.monotonic() - started) / len(asks)
        if pairs:
            return [_ended(ask, partial(_taken, text), seconds) for ask, text in pairs]
    return [_ended(ask, partial(system.reply, ask.history)) for ask in asks]


def _taken(reply: object) -> object:
    return reply


def _ended(ask: Ask, reply: Callable[[], object], seconds: float = 0.0) -> Exchange:
    """`seconds` were spent before the reply is taken."""
    started = time.monotonic() - seconds
    try:
        said = reply()
        text, is_cut = checked(said), isinstance(said, CutReply)
        return replied(ask, text, time.monotonic() - started, is_cut)
    except ReplyError as error:
        failure = Failure(error.reason, error.detail, error.down, error.advice, error.passing)
    except Exception as error:  # a system of somebody else: its bug costs this question only
        failure = Failure(type(error).__name__, str(error))
    return failed(ask, failure, time.monotonic() - started)


def _let_end(under_way: int, outbox: queue.SimpleQueue[list[Exchange]], react: React) -> None:
    """Takes what ends within the grace; the rest will be asked by the next probe."""
    until = time.monotonic() + GRACE
    for _ in range(under_way):
        try:
            exchanges = outbox.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return
        for exchange in exchanges:
            react(exchange)


def _refuses(system: System, failure: Failure) -> str:
    detail = f": {failure.detail}" if failure.detail else ""
    return f"{system.name} refuses ({failure.reason}{detail}). {failure.advice}"


def _seems_down(system: System, failure: Failure) -> str:
    detail = f": {failure.detail}" if failure.detail else ""
    advice = f" {failure.advice}" if failure.advice else ""
    return (
        f"{system.name} seems to be down ({failure.reason}{detail}).{advice} The answers so far are"
        " kept; repeat the command to resume."
    )
