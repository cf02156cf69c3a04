"""From questions to answers: duplicates dropped, the cache asked first, models loaded last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

    def answer(self, questions: Iterable[Question]) -> dict[Question, Answer]:
        """An answer for every distinct question."""
        by_model: dict[str, dict[Question, None]] = {}
        for question in questions:
            self.counts.asked += 1
            by_model.setdefault(question.model, {})[question] = None
        answers: dict[Question, Answer] = {}
        for name, distinct in by_model.items():
            self.counts.distinct += len(distinct)
            answers |= self._answer_one_model(name, list(distinct))
        return answers

    def _answer_one_model(self, name: str, questions: list[Question]) -> dict[Question, Answer]:
        fingerprint = self._source.fingerprint(name)
        keys = [question.key(fingerprint) for question in questions]
        known = {} if self._cache is None else self._cache.get(keys)
        answers = {q: known[key] for q, key in zip(questions, keys, strict=True) if key in known}
        self.counts.cached += len(answers)
        missing = [(q, key) for q, key in zip(questions, keys, strict=True) if key not in known]
        if not missing:
            return answers
        if name not in self._models:
            self._models[name] = self._source.load(name)
        fresh: list[tuple[bytes, Answer]] = []
        for position, answer in self._models[name].answer([q for q, _ in missing]):
            question, key = missing[position]
            answers[question] = answer
            fresh.append((key, answer))
            if len(fresh) >= STORED_AT_ONCE:
                self._store(fresh)
        self._store(fresh)
        _check_complete(name, questions, answers)
        return answers

    def _store(self, fresh: list[tuple[bytes, Answer]]) -> None:
        if self._cache is not None and fresh:
            self._cache.put(fresh)
        fresh.clear()


def _check_complete(
    name: str, questions: Sequence[Question], answers: dict[Question, Answer]
) -> None:
    if len(answers) != len(questions):
        raise JobError(
            f"model {name!r} answered {len(answers)} of {len(questions)} questions: this is a bug"
            " in the model, not in your data"
        )
