"""Scores an edited response with the run's own metrics.

Everything that moves a number is that of the run: the metrics with their options, and the scales
that were fitted on it. Models are loaded once and stay; one thread does all the work, one request
after the other, so that a slow model is never there twice. What was answered before comes from the
answer cache.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialeval.errors import DialevalError, JobError
from dialeval.registry import make_metric
from dialeval.storage import sample_schema, table_to_samples
from dialeval.web.side_by_side import then_and_now, verdict

if TYPE_CHECKING:
    from dialeval.engine.answers import AnswerCache, Answerer
    from dialeval.metric import Metric
    from dialeval.question import ModelSource
    from dialeval.runs.run import Run
    from dialeval.sample import Sample
    from dialeval.scores import Score

LONGEST_RESPONSE = 20_000
MOST_WAITING = 4


class BusyError(JobError):
    """Not now: too many responses wait for their scores."""


@dataclass(frozen=True)
class Rescored:
    """One metric, then and now. `problem` says why there is no new value; `remark` what to mind."""

    label: str
    direction: str
    before: float | None
    after: float | None = None
    problem: str = ""
    remark: str = ""

    @property
    def difference(self) -> float | None:
        if self.before is None or self.after is None:
            return None
        return self.after - self.before

    @property
    def verdict(self) -> str:
        return verdict(self.difference, self.direction)

    @property
    def texts(self) -> tuple[str, str, str]:
        return then_and_now(self.before, self.after)


@dataclass(frozen=True)
class WhatIf:
    """An edited response, its scores beside the old ones, and its row as a run would hold it."""

    response: str
    metrics: tuple[Rescored, ...]
    row: Mapping[str, Any]
    scored: tuple[str, ...]
    """Labels of the metrics whose columns `row` holds."""


class Rescorer:
    """Scores one edited response at a time, in a thread of its own."""

    def __init__(self, models: ModelSource | None = None) -> None:
        self._models = models
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rescore")
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)
        self._answerer: Answerer | None = None
        self._cache: AnswerCache | None = None

    def submit(self, run: Run, row: Mapping[str, Any], response: str) -> Future[WhatIf]:
        """Raises `BusyError` where too many are waiting already."""
        if not self._waiting.acquire(blocking=False):
            raise BusyError("Other responses are being scored. Try again in a moment.")
        future = self._worker.submit(self._what_if, run, row, response)
        future.add_done_callback(lambda _: self._waiting.release())
        return future

    def close(self) -> None:
        """The answer cache belongs to the worker's thread, and is closed there."""
        self._worker.submit(self._close_cache)
        self._worker.shutdown(wait=True, cancel_futures=False)

    def _close_cache(self) -> None:
        if self._cache is not None:
            self._cache.close()

    def _what_if(self, run: Run, row: Mapping[str, Any], response: str) -> WhatIf:
        sample = dataclasses.replace(sample_of(row), response=response)
        results, columns, scored = [], dict(row), []
        for record in run.manifest["metrics"]:
            result, own_columns = self._one_metric(run, record, row, sample)
            results.append(result)
            columns |= own_columns
            if own_columns:
                scored.append(record["label"])
        columns["response"] = response
        return WhatIf(response, tuple(results), columns, tuple(scored))

    def _one_metric(
        self, run: Run, record: Mapping[str, Any], row: Mapping[str, Any], sample: Sample
    ) -> tuple[Rescored, dict[str, Any]]:
        """Returns the metric's result, and its columns of the new row (none where it cannot be
        scored)."""
        label = record["label"]
        result = Rescored(label, record["direction"], row[label])
        try:
            metric = make_metric(record["name"], **record["options"])
            if obstacle := metric.obstacle(sample):
                return dataclasses.replace(result, problem=f"cannot be scored: {obstacle}"), {}
            score = self._score(metric, sample)
            columns = _columns(run, metric, sample, score)
            weights = {n: self._source().fingerprint(n) for n in set(metric.models().values())}
        except (DialevalError, ImportError) as error:
            return dataclasses.replace(result, problem=str(error)), {}
        note = {"problem" if score.value is None else "remark": score.note}
        remarks = [note.get("remark"), _other_conditions(run, metric, weights), _pooled(metric)]
        return dataclasses.replace(
            result,
            after=columns[label],
            problem=note.get("problem", ""),
            remark="; ".join(text for text in remarks if text),
        ), columns

    def _score(self, metric: Metric, sample: Sample) -> Score:
        questions = tuple(metric.ask(sample))
        if questions:
            _take_idle_cores()
        answers = self._answers().answer(questions) if questions else {}
        return metric.score(sample, [answers[question] for question in questions])

    def _answers(self) -> Answerer:
        """Made when the first question is asked: string metrics need no model and no cache."""
        from dialeval.engine.answers import AnswerCache, Answerer, default_cache_path

        if self._answerer is None:
            self._cache = AnswerCache(default_cache_path())
            self._answerer = Answerer(self._source(), self._cache)
        return self._answerer

    def _source(self) -> ModelSource:
        if self._models is None:
            from dialeval.models.source import Models

            self._models = Models()
        return self._models


def _take_idle_cores() -> None:
    """As many threads as there are cores without work, at least one.

    The threads of a small product wait for each other; one that has to share its core makes all
    the others wait. On two cores with work for five, a response took 23 s with two threads and 3 s
    with one.
    """
    try:
        import torch
    except ModuleNotFoundError:  # the models of this run may do without
        return
    busy = round(os.getloadavg()[0]) if hasattr(os, "getloadavg") else 0
    torch.set_num_threads(max(1, (os.cpu_count() or 1) - busy))


def sample_of(row: Mapping[str, Any]) -> Sample:
    """Returns the sample in a row of `scores.parquet`."""
    import pyarrow as pa

    schema = sample_schema()
    return next(
        table_to_samples(pa.Table.from_pylist([{n: row[n] for n in schema.names}], schema=schema))
    )


def _columns(run: Run, metric: Metric, sample: Sample, score: Score) -> dict[str, Any]:
    """Returns the score as the run's file would hold it, on the run's own scale."""
    from dialeval.runs.columns import calibrate_table, chunk_to_table, scaled_columns

    scales = {c: s for c, s in run.calibrations.items() if c in scaled_columns(metric)}
    table = calibrate_table(chunk_to_table([sample], [[score]], [metric]), [metric], scales)
    of_sample = set(sample_schema().names)
    return {name: v for name, v in table.to_pylist()[0].items() if name not in of_sample}


def _other_conditions(run: Run, metric: Metric, weights: Mapping[str, str]) -> str:
    """Returns what moves the number and is not as it was when the run was scored: other weights,
    another version. The difference is then not due to the edit alone."""
    signature = metric.signature(weights)
    before = run.signatures[metric.label]
    fields = {"definition": f"v{signature.version}", **dict(signature.fields)}
    then = {"definition": f"v{before.version}", **dict(before.fields)}
    changed = [
        f"{key} was {then.get(key, 'unknown')}, is {value}"
        for key, value in fields.items()
        if then.get(key) != value
    ]
    return f"not as in the run: {', '.join(changed)}" if changed else ""


def _pooled(metric: Metric) -> str:
    pooled = metric.pool() is not None
    return "of this response alone, not pooled over all" if pooled else ""
