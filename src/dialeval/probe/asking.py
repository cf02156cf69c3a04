"""Asking many questions at once, while the answers come in one by one.

Threads ask; the caller's thread hands out the questions, takes the exchanges and decides what comes
next. So whatever is done with an exchange needs no lock, and Ctrl-C arrives where it can be
handled: nothing new is asked, and what is under way has a moment to end.

The first question goes alone: where it is refused for a reason that holds for all of them, such as
a wrong API key or a server that is not running, it stays the only one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from dialeval.errors import JobError
from dialeval.probe.exchange import Exchange, Failure, failed, replied
from dialeval.probe.plan import Ask
from dialeval.systems.system import BatchedSystem, CutReply, ReplyError, System, checked

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
    """One exchange for each question. A batch that fails is asked again one by one."""
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
        f"{system.name} seems to be down ({failure.reason}{detail}).{advice} What was answered is"
        " kept; when it is back, the same command goes on."
    )
