"""From questions to answers: duplicates dropped, the cache asked first, models loaded last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dialeval.engine.cache import AnswerCache
from dialeval.errors import JobError, UsageError
from dialeval.question import Answer, Model, ModelSource, Question

STORED_AT_ONCE = 256
"""Answers per cache transaction: what a killed run can lose of a batch."""


@dataclass(slots=True)
class AnswerCounts:
    """How the questions of a run were met; the difference between the lines is work saved."""

    asked: int = 0
    distinct: int = 0
    cached: int = 0

    def to_record(self) -> dict[str, int]:
        return {"asked": self.asked, "distinct": self.distinct, "cached": self.cached}


class NoModels:
    """The model source of a run whose metrics ask nothing."""

    def fingerprint(self, name: str) -> str:
        raise UsageError(f"this run needs the model {name!r}, but no models were given")

    def load(self, name: str) -> Model:
        raise UsageError(f"this run needs the model {name!r}, but no models were given")


class Answerer:
    """Answers any mixture of questions; keeps the loaded models and the cache open for a run."""

    def __init__(self, source: ModelSource, cache: AnswerCache | None) -> None:
        self.counts = AnswerCounts()
        self._source = source
        self._cache = cache
        self._models: dict[str, Model] = {}

    def answer(
        self,
        questions: Iterable[Question],
        advance: Callable[[int, int], None] = lambda known, distinct: None,
    ) -> dict[Question, Answer]:
        """An answer for every distinct question; `advance` hears how many of how many are known."""
        by_model: dict[str, dict[Question, None]] = {}
        for question in questions:
            self.counts.asked += 1
            by_model.setdefault(question.model, {})[question] = None
        answers: dict[Question, Answer] = {}
        total = sum(len(distinct) for distinct in by_model.values())
        self.counts.distinct += total
        for name, distinct in by_model.items():
            for question, answer in self._answer_one_model(name, list(distinct)):
                answers[question] = answer
                advance(len(answers), total)
        return answers

    def _answer_one_model(
        self, name: str, questions: list[Question]
    ) -> Iterator[tuple[Question, Answer]]:
        """Distinct questions with their answers: what is cached at once, the rest as it comes."""
        fingerprint = self._source.fingerprint(name)
        keys = [question.key(fingerprint) for question in questions]
        known = {} if self._cache is None else self._cache.get(keys)
        missing = []
        for question, key in zip(questions, keys, strict=True):
            if key in known:
                self.counts.cached += 1
                yield question, known[key]
            else:
                missing.append((question, key))
        if not missing:
            return
        if name not in self._models:
            self._models[name] = self._source.load(name)
        fresh: list[tuple[bytes, Answer]] = []
        answered = 0
        for position, answer in self._models[name].answer([q for q, _ in missing]):
            question, key = missing[position]
            answered += 1
            fresh.append((key, answer))
            if len(fresh) >= STORED_AT_ONCE:
                self._store(fresh)
            yield question, answer
        self._store(fresh)
        if answered != len(missing):
            raise JobError(
                f"model {name!r} answered {answered} of {len(missing)} questions: this is a bug in"
                " the model, not in your data"
            )

    def _store(self, fresh: list[tuple[bytes, Answer]]) -> None:
        if self._cache is not None and fresh:
            self._cache.put(fresh)
        fresh.clear()
