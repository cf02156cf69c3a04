"""Chunks of samples, and who scores them: this process, or the workers of a cluster.

A job cuts its samples into chunks and hands them to its workers; what comes back is the finished
shard of each. Workers take a chunk whenever they have room, so that the input is read as fast as it
is scored, and give back the shards in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dialeval.engine.answers import AnswerCounts, Answerer
from dialeval.engine.out_of_depth import OutOfDepth, language_of_sample
from dialeval.errors import JobError
from dialeval.metric import Metric
from dialeval.question import Answer, ModelSource, Question
from dialeval.runs.columns import chunk_to_table
from dialeval.runs.directory import shard_bytes
from dialeval.runs.system_scores import Pools
from dialeval.sample import Sample
from dialeval.scores import Score


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
    """How the questions of this chunk were met."""


class Workers(Protocol):
    """Who scores the chunks of a job."""

    def score(
        self, chunks: Iterator[Chunk], under_way: Callable[[int], None]
    ) -> Generator[ScoredChunk, None, None]:
        """Every chunk, scored. `under_way` hears how many samples of unfinished chunks are done."""

    def report(self) -> Mapping[str, Any]:
        """What the history of the run is to say of the work, apart from the scores."""


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
        return {}


def score_chunk(
    chunk: Chunk,
    metrics: Sequence[Metric],
    answerer: Answerer,
    under_way: Callable[[int], None],
) -> ScoredChunk:
    """The shard of a chunk; `answerer` keeps its models for the next one."""
    answerer.counts = AnswerCounts()
    scores = _score(chunk.samples, metrics, answerer, under_way)
    note_languages(chunk.samples, metrics, answerer.source, scores)
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


def count_again(samples: Sequence[Sample], metrics: Sequence[Metric]) -> Pools:
    """The pools of a chunk that was scored before. Only its shard is kept, which has no counts."""
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
    depth = OutOfDepth.of(metrics, source)
    particular = [m for m, metric in enumerate(metrics) if metric.models() or metric.languages]
    if not particular:
        return
    for s, sample in enumerate(samples):
        language = language_of_sample(sample)
        for m in particular:
            scores[m][s] = depth.noted(metrics[m], sample, scores[m][s], language)


def _without_numbers(answers: Mapping[Question, Answer]) -> str | None:
    """The first model that answered with NaN, infinity or nothing."""
    for question, answer in answers.items():
        if not isinstance(answer, str) and not (answer.size and np.isfinite(answer).all()):
            return question.model
    return None


def fingerprints(metrics: Sequence[Metric], source: ModelSource) -> dict[str, str]:
    """Name of each model that is asked -> which weights it stands for."""
    names = {name for metric in metrics for name in metric.models().values()}
    return {name: source.fingerprint(name) for name in sorted(names)}
