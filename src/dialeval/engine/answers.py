"""Answers questions: drops duplicates, asks the cache first, and loads models last.

A model may need answers of other models before it can give its own: the scorer of PONE reads
vectors of an encoder. Its questions go the same way as those of metrics, through the same cache, so
that a vector is computed once however many scorers and metrics want it.

The cache is one SQLite file in WAL mode, so that several processes can share it. Keys are sha256
digests of (model fingerprint, question); values are raw numbers with their type and shape, or UTF-8
text. Nothing is ever unpickled. Each row has a checksum; a row that does not fit it counts
as damaged, and its question is asked again.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, cast

import numpy as np

from dialeval.errors import DialevalError, JobError, UsageError, is_panic
from dialeval.progress import Progress, silent
from dialeval.question import Answer, AskingModel, Model, ModelSource, Question, TellingSource
from dialeval.storage import cache_directory

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
        """Returns the cached answers; keys without one are left out."""
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
    """Returns the answer of a row; None where somebody or something has changed it."""
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


STORED_AT_ONCE = 256
"""Answers per cache transaction: what a killed run can lose of a batch."""

STORED_AFTER = 2.0
"""Seconds after which fewer are stored: an answer of a large model takes long, or costs money."""

ASKED_AT_ONCE = 1024
"""Questions for whose answers a model may ask others at the same time. All of those answers are
held in memory: with two texts each, and vectors of 768 numbers, 6 MB."""


@dataclass(slots=True)
class AnswerCounts:
    """Counts of questions by how they were answered; the differences are work saved."""

    asked: int = 0
    distinct: int = 0
    cached: int = 0
    damaged: int = 0
    """Rows of the cache that did not fit their checksum; their questions were asked again."""

    def add(self, more: AnswerCounts) -> None:
        self.asked += more.asked
        self.distinct += more.distinct
        self.cached += more.cached
        self.damaged += more.damaged

    def to_record(self) -> dict[str, int]:
        record = {"asked": self.asked, "distinct": self.distinct, "cached": self.cached}
        return record | ({"damaged": self.damaged} if self.damaged else {})


class NoModels:
    """The model source of a run whose metrics ask nothing."""

    def fingerprint(self, name: str) -> str:
        raise UsageError(f"this run needs the model {name!r}, but no models were given")

    def load(self, name: str) -> Model:
        raise UsageError(f"this run needs the model {name!r}, but no models were given")


class LoadedOnce:
    """A model source that asks the other one for each model once; models stay loaded from one run
    to the next."""

    def __init__(self, source: ModelSource) -> None:
        self._source = source
        self._fingerprints: dict[str, str] = {}
        self._models: dict[str, Model] = {}

    def fingerprint(self, name: str) -> str:
        if name not in self._fingerprints:
            self._fingerprints[name] = self._source.fingerprint(name)
        return self._fingerprints[name]

    def languages(self, name: str) -> frozenset[str]:
        source = self._source
        return source.languages(name) if isinstance(source, TellingSource) else frozenset()

    def unknown_pieces(self, name: str, text: str) -> float:
        source = self._source
        return source.unknown_pieces(name, text) if isinstance(source, TellingSource) else 0.0

    def load(self, name: str) -> Model:
        if name not in self._models:
            self._models[name] = self._source.load(name)
        return self._models[name]


class Answerer:
    """Answers any mixture of questions; keeps the loaded models and the cache open for a run."""

    def __init__(self, source: ModelSource, cache: AnswerCache | None) -> None:
        self.counts = AnswerCounts()
        self.source = source
        self._cache = cache
        self._models: dict[str, Model] = {}

    def answer(
        self,
        questions: Iterable[Question],
        advance: Progress = silent,
    ) -> dict[Question, Answer]:
        """Returns an answer for every distinct question; `advance` hears how many of how many are
        known."""
        return self._answer(questions, advance, ())

    def _answer(
        self,
        questions: Iterable[Question],
        advance: Progress,
        askers: tuple[str, ...],
    ) -> dict[Question, Answer]:
        """`askers` are the models on whose behalf these questions are put, the first one first."""
        by_model: dict[str, dict[Question, None]] = {}
        for question in questions:
            self.counts.asked += 1
            by_model.setdefault(question.model, {})[question] = None
        answers: dict[Question, Answer] = {}
        total = sum(len(distinct) for distinct in by_model.values())
        self.counts.distinct += total
        for name, distinct in by_model.items():
            for question, answer in self._answer_one_model(name, list(distinct), askers):
                answers[question] = answer
                advance(len(answers), total)
        return answers

    def _answer_one_model(
        self, name: str, questions: list[Question], askers: tuple[str, ...]
    ) -> Iterator[tuple[Question, Answer]]:
        """Distinct questions with their answers: what is cached at once, the rest as it comes."""
        fingerprint = self.source.fingerprint(name)
        keys = [question.key(fingerprint) for question in questions]
        known = {} if self._cache is None else self._cached(self._cache, keys)
        missing = []
        for question, key in zip(questions, keys, strict=True):
            if key in known:
                self.counts.cached += 1
                yield question, known[key]
            else:
                missing.append((question, key))
        if not missing:
            return
        fresh: list[tuple[bytes, Answer]] = []
        answered, stored = 0, monotonic()
        for position, answer in self._ask(name, [question for question, _ in missing], askers):
            question, key = missing[position]
            answered += 1
            fresh.append((key, answer))
            if len(fresh) >= STORED_AT_ONCE or monotonic() - stored > STORED_AFTER:
                self._store(fresh)
                stored = monotonic()
            yield question, answer
        self._store(fresh)
        if answered != len(missing):
            raise JobError(
                f"model {name!r} answered {answered} of {len(missing)} questions: this is a bug in"
                " the model, not in your data"
            )

    def _cached(self, cache: AnswerCache, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        before = cache.damaged
        known = cache.get(keys)
        self.counts.damaged += cache.damaged - before
        return known

    def _ask(
        self, name: str, questions: Sequence[Question], askers: tuple[str, ...]
    ) -> Iterator[tuple[int, Answer]]:
        """(position, answer) of the model itself, which may ask other models first."""
        if name in askers:
            circle = " asks ".join(repr(model) for model in (*askers, name))
            raise JobError(f"models that ask in a circle: {circle}")
        if name not in self._models:
            self._models[name] = self.source.load(name)
        model = self._models[name]
        if not hasattr(model, "asks"):
            with _failure_told(name):
                yield from model.answer(questions)
            return
        for start in range(0, len(questions), ASKED_AT_ONCE):
            some = questions[start : start + ASKED_AT_ONCE]
            with _failure_told(name):
                for position, answer in self._ask_asking(
                    cast("AskingModel", model), some, askers, name
                ):
                    yield start + position, answer

    def _ask_asking(
        self,
        model: AskingModel,
        questions: Sequence[Question],
        askers: tuple[str, ...],
        name: str,
    ) -> Iterable[tuple[int, Answer]]:
        wanted = [tuple(own) for own in model.asks(questions)]
        answers = self._answer(
            # Not reported: it is part of the work that the questions of the model stand for.
            (question for own in wanted for question in own),
            silent,
            (*askers, name),
        )
        return model.answer(questions, [[answers[question] for question in own] for own in wanted])

    def _store(self, fresh: list[tuple[bytes, Answer]]) -> None:
        if self._cache is not None and fresh:
            self._cache.put(fresh)
        fresh.clear()


@contextmanager
def _failure_told(name: str) -> Iterator[None]:
    """Explains the failure of a model whose files nobody vouches for. It may be loaded and still
    fail when it is asked: a configuration with another number of heads, a tokenizer without a
    mark."""
    try:
        yield
    except (DialevalError, OSError, MemoryError, AssertionError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise JobError(
            f"model {name!r} failed when it was asked: {type(error).__name__}: {reason[:300]}."
            " Where its files may be damaged: dialeval models check"
        ) from error
