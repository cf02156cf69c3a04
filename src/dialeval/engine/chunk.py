"""Chunks of samples, and how they are scored: the questions of all metrics together.

This process scores one chunk after the other. On a cluster every worker does the same with the
blocks that it reads (`ray_worker.py`).

A sample that a metric cannot judge well, because the metric or its models were made for other text,
is scored, and its score carries a note, which is counted under the table:

    in Chinese (made for English)    the language is none of those that the metric, or one of its
                                     models, declares
    mostly unknown word-pieces       more than half of them are none that an encoder has learned

The language is that of the response, or where it does not tell (too short, or plain English) that
of the dialogue as a whole. Word-pieces are counted where at least half of the characters are not
ASCII: vocabularies hold all of that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dialeval.engine.answers import AnswerCounts, Answerer
from dialeval.errors import JobError
from dialeval.metric import Metric
from dialeval.question import Answer, ModelSource, Question, TellingSource
from dialeval.runs.directory import chunk_to_table, shard_bytes
from dialeval.runs.table import Pools
from dialeval.sample import Sample
from dialeval.scores import Score
from dialeval.text import NAMES, language_of

UNKNOWN = "mostly unknown word-pieces"


@dataclass(frozen=True)
class LanguageNotes:
    """Finds samples in languages that the metrics of a run, or their models, cannot read."""

    source: ModelSource
    made_for: Mapping[str, Sequence[frozenset[str]]]
    """Label of a metric -> the languages of the metric and of each model, where they are known."""

    @classmethod
    def of(cls, metrics: Sequence[Metric], source: ModelSource) -> LanguageNotes:
        def declared(metric: Metric) -> list[frozenset[str]]:
            models = [_languages(source, name) for name in metric.models().values()]
            return [languages for languages in (metric.languages, *models) if languages]

        return cls(source, {metric.label: declared(metric) for metric in metrics})

    def noted(self, metric: Metric, sample: Sample, score: Score, language: str) -> Score:
        """Returns the score with a note on what it is worth. A score without a value already says
        why."""
        if score.value is None or not (note := self._note(metric, sample, language)):
            return score
        return replace(score, note=f"{score.note}, {note}" if score.note else note)

    def _note(self, metric: Metric, sample: Sample, language: str) -> str:
        if language:
            for known in self.made_for[metric.label]:
                if language not in known:
                    names = " or ".join(NAMES[one] for one in sorted(known))
                    return f"in {NAMES[language]} (made for {names})"
        text = sample.response if sample.response is not None else _dialogue(sample)
        source = self.source
        if isinstance(source, TellingSource) and mostly_not_ascii(text):
            shares = (source.unknown_pieces(name, text) for name in metric.models().values())
            if any(share > 0.5 for share in shares):
                return UNKNOWN
        return ""


def language_of_sample(sample: Sample) -> str:
    """Returns the language of the response, or of the whole dialogue if the response is too short
    to tell."""
    return language_of(sample.response or "") or language_of(_dialogue(sample))


def mostly_not_ascii(text: str) -> bool:
    if text.isascii():
        return False
    shown = "".join(text.split())
    return 2 * sum(character > "\x7f" for character in shown) >= len(shown)


def _dialogue(sample: Sample) -> str:
    return " ".join([*(turn.text for turn in sample.context), sample.response or ""])


def _languages(source: ModelSource, name: str) -> frozenset[str]:
    return source.languages(name) if isinstance(source, TellingSource) else frozenset()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive samples; `number` is their place in the input, `digest` tells their content."""

    number: int
    samples: Sequence[Sample]
    digest: bytes


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    """A chunk as it is to lie in the run directory: a whole Parquet file, as bytes."""

    number: int
    samples: int
    shard: bytes
    pools: Pools
    counts: AnswerCounts
    """Counts of the questions of this chunk, by how they were answered."""


class ThisProcess:
    """Scores one chunk after the other, right here."""

    def __init__(self, metrics: Sequence[Metric], answerer: Answerer) -> None:
        self._metrics = metrics
        self._answerer = answerer

    def score(
        self, chunks: Iterator[Chunk], under_way: Callable[[int], None]
    ) -> Generator[ScoredChunk, None, None]:
        for chunk in chunks:
            yield score_chunk(chunk, self._metrics, self._answerer, under_way)

    def report(self) -> Mapping[str, Any]:
        spent: Mapping[str, Any] = getattr(self._answerer.source, "spent", dict)()
        return {"servers": spent} if spent else {}


def score_chunk(
    chunk: Chunk,
    metrics: Sequence[Metric],
    answerer: Answerer,
    under_way: Callable[[int], None],
) -> ScoredChunk:
    """Returns the shard of a chunk; `answerer` keeps its models for the next one."""
    scores = scored(chunk.samples, metrics, answerer, under_way)
    table = chunk_to_table(chunk.samples, scores, metrics)
    pools = Pools(metrics)
    for metric, of_metric in zip(metrics, scores, strict=True):
        if (label := metric.label) in pools.pooled:
            for sample, score in zip(chunk.samples, of_metric, strict=True):
                if not metric.obstacle(sample):
                    pools.add(sample.system, label, score)
    return ScoredChunk(
        chunk.number,
        len(chunk.samples),
        shard_bytes(table, chunk.digest),
        pools,
        answerer.counts,
    )


def scored(
    samples: Sequence[Sample],
    metrics: Sequence[Metric],
    answerer: Answerer,
    under_way: Callable[[int], None],
) -> list[list[Score]]:
    """Returns the scores of each metric, with their notes; `answerer` counts the questions."""
    answerer.counts = AnswerCounts()
    scores = _score(samples, metrics, answerer, under_way)
    note_languages(samples, metrics, answerer.source, scores)
    return scores


def count_again(samples: Sequence[Sample], metrics: Sequence[Metric]) -> Pools:
    """Returns the pools of a chunk that was scored before. Only its shard is kept, which has no
    counts."""
    pools = Pools(metrics)
    for label, metric in pools.pooled.items():
        for sample in samples:
            if not metric.obstacle(sample):
                pools.add(sample.system, label, metric.score(sample, ()))
    return pools


def _score(
    samples: Sequence[Sample],
    metrics: Sequence[Metric],
    answerer: Answerer,
    under_way: Callable[[int], None],
) -> list[list[Score]]:
    """Asks the questions of all metrics together, then scores metric by metric."""
    open_pairs = [
        (m, s)
        for m, metric in enumerate(metrics)
        for s, sample in enumerate(samples)
        if not metric.obstacle(sample)
    ]
    asked = {(m, s): tuple(metrics[m].ask(samples[s])) for m, s in open_pairs}
    answers = answerer.answer(
        (q for questions in asked.values() for q in questions),
        lambda known, distinct: under_way(len(samples) * known // distinct),
    )

    def score(m: int, s: int) -> Score:
        metric, sample = metrics[m], samples[s]
        if (m, s) not in asked:
            return Score.missing(metric.obstacle(sample))
        own = {question: answers[question] for question in asked[m, s]}
        try:
            return metric.score(sample, [own[question] for question in asked[m, s]])
        except (ValueError, ArithmeticError) as error:
            if (model := _without_numbers(own)) is None:
                raise
            raise JobError(
                f"{metric.label}, sample {sample.id!r}: the model {model!r} answers with what is no"
                " number (NaN, infinity or nothing at all). Its files are damaged, or its weights"
                " too large for the numbers that it computes with. See: dialeval models check"
            ) from error

    return [[score(m, s) for s in range(len(samples))] for m in range(len(metrics))]


def note_languages(
    samples: Sequence[Sample],
    metrics: Sequence[Metric],
    source: ModelSource,
    scores: Sequence[list[Score]],
) -> None:
    """Puts a note beside the scores of text that a metric is not made for."""
    notes = LanguageNotes.of(metrics, source)
    particular = [m for m, metric in enumerate(metrics) if metric.models() or metric.languages]
    if not particular:
        return
    for s, sample in enumerate(samples):
        language = language_of_sample(sample)
        for m in particular:
            scores[m][s] = notes.noted(metrics[m], sample, scores[m][s], language)


def _without_numbers(answers: Mapping[Question, Answer]) -> str | None:
    """Returns the first model that answered with NaN, infinity or nothing."""
    for question, answer in answers.items():
        if not isinstance(answer, str) and not (answer.size and np.isfinite(answer).all()):
            return question.model
    return None


def fingerprints(metrics: Sequence[Metric], source: ModelSource) -> dict[str, str]:
    """Returns the fingerprint of the weights of each model that is asked, by its name."""
    names = {name for metric in metrics for name in metric.models().values()}
    return {name: source.fingerprint(name) for name in sorted(names)}
