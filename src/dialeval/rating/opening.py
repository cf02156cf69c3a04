"""Creates rating databases and opens them. The same command starts a job and resumes it.

A database holds one job. A command that resumes it must fit: the same dialogues, in the same kind
of job. Options that are left out are those of the job.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import func, insert, inspect, select

from dialeval.errors import UsageError
from dialeval.progress import Progress, silent
from dialeval.rating import schema
from dialeval.rating.database import Address, connect, parse_address, reading, writing
from dialeval.rating.design import Design, RatingMaterial, about_groups, assignments, design
from dialeval.rating.job import Job
from dialeval.rating.store import Store, read_tasks, usual_name

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

ROWS_AT_ONCE = 5000
CREATION_LOCK = 0x6469616C65
"""The advisory lock of processes that create the same PostgreSQL job."""


def open_store(place: str, *, read_only: bool = False) -> Store | None:
    """Returns the stored job; None if there is none yet."""
    address = parse_address(place)
    if address.path is not None and (not address.path.exists() or not address.path.stat().st_size):
        return None
    engine = connect(address, read_only=read_only)
    try:
        with reading(engine, address) as connection:
            facts = _facts(connection)
        if facts is None and address.path is None:
            engine.dispose()
            return None
        return Store(engine, address, _job_of(facts, address), facts or {})
    except BaseException:
        engine.dispose()
        raise


def _job_of(facts: dict[str, str] | None, address: Address) -> Job:
    if facts is None:
        raise UsageError(f"{address.shown}: is a database, but not one of dialeval rate")
    version = facts.get("schema_version", "")
    if version != str(schema.SCHEMA_VERSION):
        raise UsageError(
            f"{address.shown}: has rating format {version}; this dialeval reads format"
            f" {schema.SCHEMA_VERSION}. Use the version of dialeval that made it to export it."
        )
    try:
        record = json.loads(facts["job"])
        bytes.fromhex(facts["secret"])
        job = Job.from_record(record, ())
        scales = [(len(quality.name), len(quality.points)) for quality in job.qualities]
        lacking = not (scales and isinstance(record["digest"], str) and facts["organiser"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged_job(address) from error
    if lacking or job.kind not in ("rate", "compare"):
        raise _damaged_job(address)
    return job


def _damaged_job(address: Address) -> UsageError:
    return UsageError(
        f"{address.shown}: what this job asks for is damaged (the row 'job' of the table"
        f" {schema.MARK}). The ratings are kept: put back that row, or a copy of the database."
    )


def create_store(
    place: str,
    job: Job,
    raters: int,
    *,
    organiser: str = "",
    progress: Progress = silent,
) -> Store:
    """Stores a new job, whole or not at all; if another process was faster, opens its job."""
    address = parse_address(place)
    if raters < 1:
        raise UsageError("at least one rater is needed")
    engine = connect(address)
    facts = {
        "schema_version": str(schema.SCHEMA_VERSION),
        "job": json.dumps(job.to_record()),
        "organiser": organiser or secrets.token_urlsafe(16),
        "secret": secrets.token_hex(32),
    }
    try:
        with writing(engine, address) as connection:
            if engine.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(CREATION_LOCK)))
            if _facts(connection) is None:
                schema.create_tables(connection)
                connection.execute(
                    insert(schema.facts), [{"name": name, "value": facts[name]} for name in facts]
                )
                rows = [
                    {"number": t.number, "kind": t.kind, "record": json.dumps(t.to_record())}
                    for t in job.tasks
                ]
                for start in range(0, len(rows), ROWS_AT_ONCE):
                    connection.execute(insert(schema.tasks), rows[start : start + ROWS_AT_ONCE])
                _add_raters(connection, job, 0, raters, progress)
    finally:
        engine.dispose()
    store = open_store(place)
    assert store is not None
    return store


def add_raters(store: Store, total: int) -> None:
    """Adds raters up to this total. They get the same tasks in an order of their own."""
    with writing(store.engine, store.address) as connection:
        known = connection.scalar(select(func.count()).select_from(schema.raters)) or 0
        if known < total and store.job.per_item:
            raise UsageError(
                f"{store.address.shown}: raters cannot be added where each dialogue goes to"
                f" {store.job.per_item} of them: the shares are given out. It has {known} raters."
            )
        job = replace(store.job, tasks=tuple(read_tasks(connection, "sample", "check")))
        _add_raters(connection, job, known, total, lambda done, of: None)


def _facts(connection: Connection) -> dict[str, str] | None:
    if not inspect(connection).has_table(schema.MARK):
        return None
    return {row[0]: row[1] for row in connection.execute(select(schema.facts))}


def _add_raters(
    connection: Connection, job: Job, known: int, total: int, progress: Progress
) -> None:
    for number in range(known + 1, total + 1):
        rater = {"number": number, "name": usual_name(number), "token": secrets.token_urlsafe(16)}
        connection.execute(insert(schema.raters), rater)
        rows = [
            {
                "rater": number,
                "position": one.position,
                "task": one.task,
                "is_repeat": one.repeat,
                "is_flipped": one.flipped,
            }
            for one in assignments(job, number, total)
        ]
        for start in range(0, len(rows), ROWS_AT_ONCE):
            connection.execute(insert(schema.assignments), rows[start : start + ROWS_AT_ONCE])
        progress(number - known, total - known)


USUAL_RATERS = 3


@dataclass(frozen=True)
class Started:
    """`is_new` says that the job was created now; `remarks` say what was left out of it."""

    store: Store
    is_new: bool
    remarks: tuple[str, ...] = ()


def start(
    place: str,
    material: Sequence[RatingMaterial],
    job: Job,
    *,
    raters: int | None = None,
    organiser: str = "",
    given: Sequence[str] = (),
    most_pairs: int | None = None,
    progress: Progress = silent,
) -> Started:
    """Creates the job of this material in the database, or resumes the stored one.

    `given` names the fields of `job` that were set explicitly; the others follow the stored job.
    """
    store = open_store(place)
    if store is not None:
        try:
            _check_same(store, material, job, given, most_pairs)
            _check_organiser(store, organiser)
            if raters is not None:
                _fit_raters(store, raters)
        except BaseException:
            store.close()
            raise
        return Started(store, is_new=False)
    if not material:
        raise UsageError(f"{place} holds no rating job yet: name the dialogues to rate")
    designed = design(material, job, most_pairs)
    _check_shares(designed.job, raters or USUAL_RATERS)
    store = create_store(
        place, designed.job, raters or USUAL_RATERS, organiser=organiser, progress=progress
    )
    if store.digest != designed.job.digest():
        raise UsageError(f"{store.address.shown} was filled with another job at the same moment")
    return Started(store, is_new=True, remarks=designed.remarks)


def _check_same(
    store: Store,
    material: Sequence[RatingMaterial],
    job: Job,
    given: Sequence[str],
    most_pairs: int | None,
) -> None:
    stored, place = store.job, store.address.shown
    for name in given:
        if name == "qualities" and about_groups(job.qualities) == stored.qualities:
            continue
        if getattr(job, name) != getattr(stored, name):
            option = {"kind": "compare", "per_item": "per-item"}.get(name, name)
            raise UsageError(
                f"{place} holds a job with another --{option}. A job never changes once raters may"
                " have begun: leave the option out, or choose another --db."
            )
    if material and _again(material, stored, most_pairs).job.digest() != store.digest:
        raise UsageError(
            f"{place} holds a job about other dialogues. Choose another --db; or, to go on with"
            " that job, leave out the files."
        )


def _again(material: Sequence[RatingMaterial], stored: Job, most_pairs: int | None) -> Design:
    return design(material, replace(stored, sources=(), directions={}), most_pairs)


def _check_organiser(store: Store, organiser: str) -> None:
    if organiser and organiser != store.organiser:
        raise UsageError(f"{store.address.shown} has another --token: leave the option out")


def _fit_raters(store: Store, raters: int) -> None:
    known = len(store.raters())
    if raters < known:
        raise UsageError(
            f"{store.address.shown} has {known} raters, and none can be taken away. Their links"
            " are printed when --raters is left out."
        )
    if raters > known:
        add_raters(store, raters)


def _check_shares(job: Job, raters: int) -> None:
    if job.per_item > raters:
        raise UsageError(f"--per-item {job.per_item}: there are only {raters} raters (--raters)")
