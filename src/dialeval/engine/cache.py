"""Answers that were given once are never computed again.

One SQLite file in WAL mode, so that several processes can share it. Keys are sha256 digests of
(model fingerprint, question); values are raw numbers with their type and shape, or UTF-8 text.
Nothing is ever unpickled. Each row has a checksum. One that does not fit is not an answer: it
counts as damaged, and its question is asked again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.errors import JobError
from dialeval.places import cache_directory
from dialeval.question import Answer

_TEXT = "text"
_TYPES: dict[str, np.dtype[Any]] = {"f4": np.dtype("<f4"), "f8": np.dtype("<f8")}
_LOOKUP = 500
"""Keys per SELECT: below SQLite's historical limit of 999 variables."""


def default_cache_path() -> Path:
    return cache_directory() / "answers.sqlite"


class AnswerCache:
    """A table from keys to answers on disk; also a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        """Rows that were met and did not fit their checksum."""
        with self._clear_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS checked_answers (key BLOB PRIMARY KEY,"
                " form TEXT NOT NULL, value BLOB NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID"
            )
            # Answers of older versions have no checksum, and may be those of damaged weights.
            self._db.execute("DROP TABLE IF EXISTS answers")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """The answers that are there; keys without one are left out."""
        found: dict[bytes, Answer] = {}
        remaining = iter(keys)
        with self._clear_errors():
            while some := list(islice(remaining, _LOOKUP)):
                marks = ",".join("?" * len(some))
                rows = self._db.execute(
                    "SELECT key, form, value, checksum FROM checked_answers"
                    f" WHERE key IN ({marks})",
                    some,
                )
                for key, form, value, checksum in rows:
                    answer = _checked(key, form, value, checksum)
                    if answer is None:
                        self.damaged += 1
                    else:
                        found[key] = answer
        return found

    def put(self, answers: Iterable[tuple[bytes, Answer]]) -> None:
        """Stores all of them in one transaction: they survive a kill together or not at all."""
        encoded = [(key, *_encode(answer)) for key, answer in answers]
        rows = [(*row, _checksum(*row)) for row in encoded]
        with self._clear_errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(
                    "INSERT OR REPLACE INTO checked_answers VALUES (?, ?, ?, ?)", rows
                )
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise

    def __len__(self) -> int:
        with self._clear_errors():
            row = self._db.execute("SELECT COUNT(*) FROM checked_answers").fetchone()
        return int(row[0])

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> AnswerCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise JobError(
                f"the answer cache {self.path} cannot be used ({error})."
                " Delete the file to start afresh, or point DIALEVAL_CACHE elsewhere."
            ) from error


def _checksum(key: bytes, form: str, value: bytes) -> bytes:
    digest = hashlib.blake2b(key, digest_size=8)
    digest.update(form.encode("ascii"))
    digest.update(value)
    return digest.digest()


def _checked(key: bytes, form: Any, value: Any, checksum: Any) -> Answer | None:
    """The answer of a row; None where somebody or something has changed it."""
    try:
        return _decode(form, value) if _checksum(key, form, value) == checksum else None
    except (TypeError, ValueError, AttributeError, LookupError):
        return None


def _encode(answer: Answer) -> tuple[str, bytes]:
    if isinstance(answer, str):
        return _TEXT, answer.encode("utf-8", "surrogatepass")
    kind = "f4" if answer.dtype == np.float32 else "f8"
    shape = ",".join(str(size) for size in answer.shape)
    return f"{kind}:{shape}", np.ascontiguousarray(answer, dtype=_TYPES[kind]).tobytes()


def _decode(form: str, value: bytes) -> Answer:
    if form == _TEXT:
        return value.decode("utf-8", "surrogatepass")
    kind, _, shape = form.partition(":")
    sizes = tuple(int(size) for size in shape.split(",") if size)
    numbers: Answer = np.frombuffer(value, dtype=_TYPES[kind]).reshape(sizes)
    return numbers
