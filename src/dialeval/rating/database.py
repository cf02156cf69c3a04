"""The database of ratings: a file (SQLite), or a server that a team shares (PostgreSQL).

    ratings.db                                   a file
    postgresql+psycopg://user:password@host/name an empty database, or a schema of one:
                                                 ...?options=-csearch_path%3Dmy_schema

A commit returns when the rating is on the disk: SQLite with a write-ahead log and `synchronous`
FULL, PostgreSQL as its server is set up (`synchronous_commit` is set to `on`). Passwords and user
names never reach a message.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import JobError, UsageError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection, Engine

BUSY_SECONDS = 30.0
"""How long a writer waits for another process to finish its write."""


@dataclass(frozen=True)
class Address:
    """Where a database is. `shown` is what people may read of it."""

    path: Path | None
    url: str
    shown: str

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def is_url(text: str) -> bool:
    return "://" in text


def parse_address(text: str) -> Address:
    """Returns a path, or the URL of a PostgreSQL database."""
    if not is_url(text):
        return Address(Path(text), "", text)
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise UsageError(
            "--db: this is no address of a database. Expected a file such as ratings.db, or"
            " postgresql+psycopg://USER:PASSWORD@HOST/NAME"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername != "postgresql+psycopg":
        raise UsageError(
            f"--db: ratings are kept in a file (SQLite) or by postgresql+psycopg://, not by"
            f" {url.drivername}://"
        )
    return Address(None, url.render_as_string(hide_password=False), _shown(url))


def _shown(url: URL) -> str:
    place = url.host or "localhost"
    return f"postgresql://{place}{f':{url.port}' if url.port else ''}/{url.database or ''}"


def connect(address: Address, *, read_only: bool = False) -> Engine:
    """Returns an engine whose connections behave alike in all processes."""
    return _postgres(address) if address.path is None else _sqlite(address.path, read_only)


@contextmanager
def reading(engine: Engine, address: Address) -> Iterator[Connection]:
    """Yields a consistent view of the database, whatever others write meanwhile."""
    with told_plainly(address), engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")
        else:
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


@contextmanager
def writing(engine: Engine, address: Address) -> Iterator[Connection]:
    """Yields a transaction that is on disk when the block ends; if it raises, nothing is."""
    with told_plainly(address), engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            # A lock at once: one that is wanted after reading may be refused, whatever the patience
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        yield connection
        connection.commit()


@contextmanager
def told_plainly(address: Address) -> Iterator[None]:
    """Rephrases complaints of the database, without statements, values and credentials."""
    from sqlalchemy.exc import DBAPIError, IntegrityError

    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        reason = _first_line(error.orig)
        raise JobError(f"{address.shown}: {_without_credentials(reason, address)}") from None
    except UnicodeDecodeError as error:  # names of tables and messages about them
        raise JobError(f"{address.shown} is damaged: {error.reason}. Take a good copy.") from None


def _sqlite(path: Path, read_only: bool) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import QueuePool

    if not read_only and not path.exists():
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no directory {path.parent}")
        # The file holds the codes of the raters' links: for nobody else's eyes.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    mode = "ro" if read_only else "rw"
    if read_only and not _is_writable(path) and not path.with_name(f"{path.name}-wal").exists():
        mode = "ro&immutable=1"
    engine = create_engine(
        f"sqlite:///file:{_quoted(path)}?mode={mode}&uri=true",
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
        poolclass=QueuePool,
        pool_size=8,
        max_overflow=64,
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # `reading` and `writing` begin transactions themselves
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys=ON")
        if not read_only:
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    return engine


def _postgres(address: Address) -> Engine:
    from sqlalchemy import create_engine, event

    try:
        engine = create_engine(
            address.url, pool_size=8, max_overflow=24, pool_pre_ping=True, hide_parameters=True
        )
    except ImportError as error:
        raise UsageError("PostgreSQL needs its driver: pip install 'dialeval[postgres]'") from error

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET synchronous_commit = on")
        connection.commit()

    return engine


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path.absolute()))


def _is_writable(path: Path) -> bool:
    return os.access(path.absolute().parent, os.W_OK)


def _first_line(error: BaseException | None) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


def _without_credentials(text: str, address: Address) -> str:
    if address.path is not None:
        return text
    from sqlalchemy.engine import make_url

    url = make_url(address.url)
    for secret in (url.password, url.username):
        if secret:
            text = re.sub(rf"(?<!\w){re.escape(str(secret))}(?!\w)", "***", text)
    return text
