"""One flush to the disk for everybody who waits for one.

A flush takes milliseconds, whatever is flushed. Fifty raters who save at the same moment would wait
for fifty of them in a row. Here whoever comes first commits what has arrived until then for all,
and the first of those who came meanwhile is the next. Nobody's result is known before the flush.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


class GroupCommit(Generic[Request, Result]):
    """Calls `commit` with all requests that wait; it returns a result or an error for each."""

    def __init__(self, commit: Callable[[Sequence[Request]], Sequence[Result | Exception]]) -> None:
        self._commit = commit
        self._lock = threading.Lock()
        self._waiting: list[_Waiting[Request, Result]] = []
        self._is_busy = False

    def __call__(self, request: Request) -> Result:
        own = _Waiting[Request, Result](request)
        with self._lock:
            self._waiting.append(own)
            comes_first, self._is_busy = not self._is_busy, True
        if not comes_first:
            own.woken.wait()
        if own.outcome is None:
            self._commit_for_all()
        assert own.outcome is not None
        if isinstance(own.outcome, Exception):
            raise own.outcome
        return own.outcome

    def _commit_for_all(self) -> None:
        with self._lock:
            batch, self._waiting = self._waiting, []
        try:
            outcomes = self._commit([one.request for one in batch])
        except Exception as error:
            outcomes = [error] * len(batch)
        for one, outcome in zip(batch, outcomes, strict=True):
            one.outcome = outcome
        with self._lock:
            next_to_commit = self._waiting[:1]
            self._is_busy = bool(next_to_commit)
        for one in (*next_to_commit, *batch):
            one.woken.set()


class _Waiting(Generic[Request, Result]):
    """Woken with an outcome, or without one: then it is its turn to commit."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.outcome: Result | Exception | None = None
        self.woken = threading.Event()
