"""Keeps a rating job and what raters say, so that nothing that was acknowledged is ever lost.

`save` returns when the rating is on the disk, and saving the same submission again changes nothing:
a browser that heard no answer sends it again. Any number of processes may use a store at once.

Many submissions are written in one transaction, each of them once. A flush to the disk takes
milliseconds, whatever is flushed. If fifty raters save at the same moment, fifty flushes in a row
would be slow. The first of them commits everything that has arrived, for all; the first of those
who came in the meantime commits next. Nobody gets a result before the flush.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy import and_, exists, func, insert, select, tuple_
from sqlalchemy.exc import IntegrityError

from dialeval.errors import JobError, UsageError
from dialeval.rating import schema
from dialeval.rating.database import Address, reading, writing
from dialeval.rating.design import Assignment
from dialeval.rating.job import Answers, Job, Task, TaskKind
from dialeval.sample import Sample

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


LONGEST_SUBMISSION = 100
LONGEST_COMMENT = 2000
"""Characters that a rater may write beside an answer."""
LAST_POSITION = 2**31 - 1
"""A larger number does not fit into the column of a database."""
MOST_REMEMBERED = 200_000
"""Assignments in memory."""


@dataclass(frozen=True, slots=True)
class Rater:
    """A person, known by number only. `token` is the secret part of the person's link."""

    number: int
    name: str
    token: str


@dataclass(frozen=True, slots=True)
class Showing:
    """What a rater sees at one position."""

    assignment: Assignment
    task: Task
    answers: Answers | None
    """What the rater said here before."""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """The answers of one rater at one position that count: the last ones."""

    number: int
    rater: str
    position: int
    task: int
    is_repeat: bool
    is_flipped: bool
    answers: Answers
    comment: str
    saved_at: str


def usual_name(number: int) -> str:
    """Returns the name of a rater, counted from 1: a database holds no names of people."""
    return f"rater-{number}"


class Store:
    """An opened rating database. `job` holds everything but the tasks, which may be many."""

    def __init__(self, engine: Engine, address: Address, job: Job, facts: dict[str, str]) -> None:
        self.address = address
        self.job = job
        self.organiser = facts["organiser"]
        self.secret = bytes.fromhex(facts["secret"])
        self.digest = json.loads(facts["job"])["digest"]
        self.engine = engine
        self.damaged: dict[str, None] = {}
        """Rows that were met and cannot be read, as messages: they are left out, no others are."""
        self._assignments: dict[tuple[int, int], Assignment] = {}
        self._totals: dict[int, int] = {}
        self._commit = group_commit(engine, address)

    def close(self) -> None:
        self.engine.dispose()

    def raters(self) -> list[Rater]:
        with reading(self.engine, self.address) as connection:
            rows = connection.execute(select(schema.raters).order_by(schema.raters.c.number))
            return [self._rater(row) for row in rows]

    def _rater(self, row: Any) -> Rater:
        return Rater(row.number, self._name(row.number, row.name), str(row.token))

    def _name(self, number: int, name: object) -> str:
        """SQLite keeps any value in any column: what is no name gives way to the usual one."""
        if isinstance(name, str) and name:
            return name
        usual = usual_name(number)
        self.damaged[
            f"{self.address.shown}: the name of rater {number} is damaged, who is called {usual}"
        ] = None
        return usual

    def find_rater(self, token: str) -> Rater | None:
        return self._raters_by_token.get(token) or self._look_up(token)

    @cached_property
    def _raters_by_token(self) -> dict[str, Rater]:
        return {rater.token: rater for rater in self.raters()}

    def _look_up(self, token: str) -> Rater | None:
        """Another process may have added a rater."""
        with reading(self.engine, self.address) as connection:
            query = select(schema.raters).where(schema.raters.c.token == token)
            row = connection.execute(query).first()
        return self._rater(row) if row else None

    def tasks(self, *kinds: TaskKind) -> Iterator[Task]:
        """Yields all tasks of these kinds (without kinds: all), in their order."""
        with reading(self.engine, self.address) as connection:
            yield from read_tasks(connection, *(kinds or ("sample", "check")), damaged=self._lacks)

    def _lacks(self, row: str) -> None:
        self.damaged[f"{self.address.shown}: {row} is damaged and was left out"] = None

    def locate(self, rater: Rater, position: int) -> Assignment | None:
        """Returns what the rater sees at a position. It never changes, so it is looked up once."""
        if position > LAST_POSITION:
            return None
        key = (rater.number, position)
        if key not in self._assignments:
            own = schema.assignments.c
            with reading(self.engine, self.address) as connection:
                row = connection.execute(
                    select(schema.assignments).where(
                        own.rater == rater.number, own.position == position
                    )
                ).first()
            if row is None:
                return None
            if len(self._assignments) > MOST_REMEMBERED:
                self._assignments.clear()
            self._assignments[key] = Assignment(position, row.task, row.is_repeat, row.is_flipped)
        return self._assignments[key]

    def first_open(self, rater: Rater) -> int | None:
        """Returns the first position without a rating; None: all are rated."""
        own, given = schema.assignments.c, schema.ratings.c
        is_rated = exists().where(and_(given.rater == own.rater, given.position == own.position))
        query = (
            select(own.position)
            .where(own.rater == rater.number, ~is_rated)
            .order_by(own.position)
            .limit(1)
        )
        with reading(self.engine, self.address) as connection:
            return connection.scalar(query)

    def total(self, rater: Rater) -> int:
        """Returns how many pages the rater has."""
        if rater.number not in self._totals:
            own = schema.assignments.c
            query = select(func.max(own.position)).where(own.rater == rater.number)
            with reading(self.engine, self.address) as connection:
                self._totals[rater.number] = connection.scalar(query) or 0
        return self._totals[rater.number]

    def done(self, rater: Rater) -> int:
        """Returns how many pages are rated."""
        given = schema.ratings.c
        query = select(func.count(given.position.distinct())).where(given.rater == rater.number)
        with reading(self.engine, self.address) as connection:
            return connection.scalar(query) or 0

    def show(self, rater: Rater, position: int) -> Showing | None:
        """Returns the task at this position; None if there is none."""
        if (assignment := self.locate(rater, position)) is None:
            return None
        given = schema.ratings.c
        with reading(self.engine, self.address) as connection:
            row = connection.execute(
                select(schema.tasks).where(schema.tasks.c.number == assignment.task)
            ).one()
            said = connection.execute(
                select(given.answers, given.comment)
                .where(given.rater == rater.number, given.position == position)
                .order_by(given.number.desc())
                .limit(1)
            ).first()
        if (task := _task(row)) is None:
            raise JobError(
                f"{self.address.shown}: task {row.number} is damaged and cannot be shown. All"
                " ratings are kept; put back a copy of the database to rate this one, too."
            )
        if said is None:
            return Showing(assignment, task, None)
        answers, comment = _answers(said.answers, self.job), _comment(said.comment)
        return Showing(assignment, task, answers, comment or "")

    def save(
        self, rater: Rater, position: int, answers: Answers, submission: str, comment: str = ""
    ) -> Saved:
        """On the disk when it returns. The same submission with the same answers counts once.

        A form that is sent again with other answers (a browser without scripts went back) is a
        changed mind: it gets the next revision.
        """
        if not self.job.allows(answers):
            raise UsageError("these are no complete answers to what is asked here")
        if not 0 < len(submission) <= LONGEST_SUBMISSION or not submission.isascii():
            raise UsageError("the submission has no proper name")
        if len(comment) > LONGEST_COMMENT:
            raise UsageError(f"a comment has at most {LONGEST_COMMENT} characters")
        text = json.dumps({name: float(answers[name]) for name in sorted(answers)})
        said = Submission(rater.number, position, text, json.dumps(comment), submission)
        return self._commit(said)

    def last_number(self) -> int:
        """Returns the number of the last rating; it grows with each of them."""
        with reading(self.engine, self.address) as connection:
            return connection.scalar(select(func.max(schema.ratings.c.number))) or 0

    def counted(self) -> list[Counted]:
        """Returns the last answers of every rater at every position, in the order of raters and
        pages."""
        given, own = schema.ratings.c, schema.assignments.c
        last = select(func.max(given.number)).group_by(given.rater, given.position)
        query = (
            select(
                given.number,
                schema.raters.c.number.label("rater_number"),
                schema.raters.c.name.label("rater"),
                given.position,
                own.task,
                own.is_repeat,
                own.is_flipped,
                given.answers,
                given.comment,
                given.saved_at,
            )
            .join(schema.raters, schema.raters.c.number == given.rater)
            .join(
                schema.assignments,
                and_(own.rater == given.rater, own.position == given.position),
            )
            .where(given.number.in_(last))
            .order_by(given.rater, given.position)
        )
        with reading(self.engine, self.address) as connection:
            rows = connection.execute(query).all()
        found = []
        for row in rows:
            name = self._name(row.rater_number, row.rater)
            if (answers := _answers(row.answers, self.job)) is None:
                self._lacks(f"rating {row.number} of {name}")
                continue
            if (comment := _comment(row.comment)) is None:
                self._lacks(f"the comment of rating {row.number} of {name}")
            record = {**row._mapping, "rater": name, "answers": answers, "comment": comment or ""}
            del record["rater_number"]
            found.append(Counted(**{**record, "saved_at": str(row.saved_at)}))
        return found

    def totals(self) -> dict[str, int]:
        """Rater -> pages to rate."""
        query = (
            select(schema.raters.c.number, schema.raters.c.name, func.count())
            .join(schema.assignments, schema.assignments.c.rater == schema.raters.c.number)
            .group_by(schema.raters.c.number, schema.raters.c.name)
            .order_by(schema.raters.c.number)
        )
        with reading(self.engine, self.address) as connection:
            rows = connection.execute(query).all()
        return {self._name(number, name): pages for number, name, pages in rows}


def read_tasks(
    connection: Connection, *kinds: str, damaged: Callable[[str], None] | None = None
) -> Iterator[Task]:
    """`damaged` hears of tasks that cannot be read; without it they are an error."""
    query = select(schema.tasks).where(schema.tasks.c.kind.in_(kinds))
    for row in connection.execute(query.order_by(schema.tasks.c.number)):
        if (task := _task(row)) is not None:
            yield task
        elif damaged:
            damaged(f"task {row.number}")
        else:
            raise JobError(
                f"task {row.number} of the database is damaged: no raters can be added. Put back a"
                " copy of the database."
            )


def _task(row: Any) -> Task | None:
    """Returns the task of a row; None if its record is damaged."""
    try:
        record = json.loads(row.record)
        task = Task.from_record(row.number, row.kind, record)
        if not task.samples or len(task.scores) != len(task.samples):
            return None
        for sample in record["samples"]:
            Sample.from_doubtful_record(sample)
        numbers = [value for scores in task.scores for value in scores.values()]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return task if all(isinstance(value, int | float | None) for value in numbers) else None


def _answers(text: str, job: Job) -> Answers | None:
    """Returns the answers of a rater; None if they do not answer what the job asks."""
    try:
        answers: Answers = json.loads(text)
        return answers if isinstance(answers, dict) and job.allows(answers) else None
    except (ValueError, TypeError, RecursionError):
        return None


def _comment(text: str) -> str | None:
    """Returns what a rater wrote; None if it is damaged."""
    try:
        comment = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return comment if isinstance(comment, str) and len(comment) <= LONGEST_COMMENT else None
