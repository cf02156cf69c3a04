"""What two sets of scores say beside each other: an edited response, or two runs.

An edited response is scored with the run's own metrics. Everything that moves a number is that of
the run: the metrics with their options, and the scales that were fitted on it. Models are loaded
once and stay; one thread does all the work, one request after the other, so that a slow model is
never loaded twice. What was answered before comes from the answer cache.

The means of two runs come from their manifests and the ids of their samples. Whether a difference
is real takes the scores of every sample: that is what `dialeval compare` and `dialeval report A B`
do, and the page says so.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dialeval.errors import DialevalError, JobError
from dialeval.registry import make_metric
from dialeval.report.look import aligned
from dialeval.runs.run import Run
from dialeval.storage import sample_schema, table_to_samples

if TYPE_CHECKING:
    from dialeval.engine.answers import AnswerCache, Answerer
    from dialeval.metric import Metric
    from dialeval.question import ModelSource
    from dialeval.sample import Sample
    from dialeval.scores import Score


def then_and_now(before: float | None, after: float | None) -> tuple[str, str, str]:
    """Returns two numbers and their difference, which has a sign."""
    difference = None if before is None or after is None else after - before
    first, second, change = aligned([before, after, difference])
    return first, second, f"+{change}" if difference and difference > 0 else change


def verdict(difference: float | None, direction: str) -> str:
    """`better`, `worse`, or nothing where the metric has no good end or nothing moved."""
    if not difference or direction == "neither":
        return ""
    return "better" if (difference > 0) == (direction == "higher") else "worse"


@dataclass(frozen=True)
class SideRow:
    """One system and metric, as each run scored it."""

    system: str
    label: str
    direction: str
    first: float | None
    second: float | None
    first_n: int
    second_n: int
    is_comparable: bool
    """Both runs measured the same thing: name, options, weights and scale agree."""

    @property
    def difference(self) -> float | None:
        """None also where the numbers do not mean the same in both runs."""
        if self.first is None or self.second is None or not self.is_comparable:
            return None
        return self.second - self.first

    @property
    def verdict(self) -> str:
        return verdict(self.difference, self.direction)

    @property
    def texts(self) -> tuple[str, str, str]:
        first, second, difference = then_and_now(self.first, self.second)
        return first, second, difference if self.is_comparable else ""


@dataclass(frozen=True)
class SideBySide:
    """The means of two runs beside each other."""

    rows: tuple[SideRow, ...]
    shared: int
    """Samples of the first run whose id the second has, too."""
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    """Metrics that one run alone has."""

    @property
    def systems(self) -> list[tuple[str, list[SideRow]]]:
        """The rows of each system, in the order of the first run."""
        return [(name, list(rows)) for name, rows in groupby(self.rows, lambda row: row.system)]


def side_by_side(first: Run, second: Run) -> SideBySide:
    """Systems with the same name are put beside each other; where each run has but one system,
    those two are, whatever they are called."""
    systems = _pairs(first, second)
    labels = [label for label in first.metrics if label in second.metrics]
    metrics = {metric["label"]: metric for metric in first.manifest["metrics"]}
    rows = [
        _row(name, metrics[label], a["scores"][label], b["scores"][label], first, second)
        for name, a, b in systems
        for label in labels
    ]
    return SideBySide(
        tuple(rows),
        _shared_ids(first, second),
        tuple(label for label in first.metrics if label not in second.metrics),
        tuple(label for label in second.metrics if label not in first.metrics),
    )


def _shared_ids(first: Run, second: Run) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    there = pa.chunked_array([batch.column(0) for batch in second.batches(["id"])], pa.string())
    return sum(
        pc.sum(pc.is_in(batch.column(0), value_set=there)).as_py() or 0
        for batch in first.batches(["id"])
    )


def _pairs(first: Run, second: Run) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    a, b = first.manifest["systems"], second.manifest["systems"]
    if len(a) == len(b) == 1:
        names = dict.fromkeys(one[0]["name"] or "(unnamed)" for one in (a, b))
        return [(" → ".join(names), a[0], b[0])]
    there = {system["name"]: system for system in b}
    return [(s["name"], s, there[s["name"]]) for s in a if s["name"] in there]


def _row(
    system: str,
    metric: Mapping[str, Any],
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    first: Run,
    second: Run,
) -> SideRow:
    label = metric["label"]
    same = first.signatures[label].short() == second.signatures[label].short()
    return SideRow(system, label, metric["direction"], a["mean"], b["mean"], a["n"], b["n"], same)


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
    from dialeval.runs.directory import calibrate_table, chunk_to_table, scaled_columns

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
