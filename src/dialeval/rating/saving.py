"""Writes ratings: many submissions in one transaction, each of them once.

A flush to the disk takes milliseconds, whatever is flushed. If fifty raters save at the same
moment, fifty flushes in a row would be slow. The first of them commits everything that has arrived,
for all; the first of those who came in the meantime commits next. Nobody gets a result before the
flush.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from sqlalchemy import insert, select, tuple_
from sqlalchemy.exc import IntegrityError

from dialeval.errors import UsageError
from dialeval.rating import schema
from dialeval.rating.database import Address, writing

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

Request = TypeVar("Request")
Result = TypeVar("Result")


class GroupCommit(Generic[Request, Result]):
    """Calls `commit` with all waiting requests; it returns a result or an error for each."""

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
    """A waiting request. If it is woken without an outcome, it is its turn to commit."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.outcome: Result | Exception | None = None
        self.woken = threading.Event()


MOST_TRIES = 5
"""The number of tries if another process saves the same submission."""


@dataclass(frozen=True, slots=True)
class Submission:
    """`answers` and `comment` are JSON; `name` is the browser's name for this submission."""

    rater: int
    position: int
    answers: str
    comment: str
    name: str

    @property
    def key(self) -> tuple[int, int, str]:
        return self.rater, self.position, self.name


@dataclass(frozen=True, slots=True)
class Saved:
    """`is_repeat`: the same submission was here already, and nothing was added."""

    is_repeat: bool


def group_commit(engine: Engine, address: Address) -> GroupCommit[Submission, Saved]:
    """Saves that come at the same time share a commit."""

    def save_all(batch: Sequence[Submission]) -> list[Saved | Exception]:
        """Saves in one transaction; if that fails, each in its own, to find the culprit."""
        try:
            with writing(engine, address) as connection:
                return [*_save(connection, batch)]
        except IntegrityError:
            return [save_alone(one) for one in batch]

    def save_alone(one: Submission) -> Saved | Exception:
        for _ in range(MOST_TRIES):
            try:
                with writing(engine, address) as connection:
                    return _save(connection, [one])[0]
            except IntegrityError:
                continue  # another process was faster with the same submission
        return UsageError("this rating cannot be saved: there is nothing to rate at this position")

    return GroupCommit(save_all)


def _save(connection: Connection, batch: Sequence[Submission]) -> list[Saved]:
    """Saves any number of submissions with two statements: read the known ones, insert the new
    ones."""
    given = schema.ratings.c
    known: dict[tuple[int, int, str], tuple[int, tuple[str, str]]] = {}
    for row in connection.execute(
        select(
            given.rater,
            given.position,
            given.submission,
            given.revision,
            given.answers,
            given.comment,
        )
        .where(tuple_(given.rater, given.position, given.submission).in_([o.key for o in batch]))
        .order_by(given.number)
    ):
        said = (row.answers, row.comment)
        known[row.rater, row.position, row.submission] = (row.revision, said)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    new, saved = [], []
    for one in batch:
        revision, said = known.get(one.key, (-1, ("", "")))
        says = (one.answers, one.comment)
        saved.append(Saved(is_repeat=said == says))
        if said != says:
            known[one.key] = (revision + 1, says)
            new.append(
                {
                    "rater": one.rater,
                    "position": one.position,
                    "submission": one.name,
                    "revision": revision + 1,
                    "answers": one.answers,
                    "comment": one.comment,
                    "saved_at": now,
                }
            )
    if new:
        connection.execute(insert(schema.ratings), new)
    return saved
