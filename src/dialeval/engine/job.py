"""A scoring job: samples in, a run directory out, and nothing lost when it is killed.

Samples are taken in chunks. Each finished chunk is written, whole, as one shard; when the input
ends the shards become `scores.parquet`, one file or (from a million samples on) several, and the
manifest is written last. Scoring into an unfinished directory reads the input from the start,
recognises the chunks that are there by the digest of their samples, and continues after them. The
finished files are byte for byte those of a run that was never interrupted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dialeval.engine.adding import Known, added_labels
from dialeval.engine.answers import AnswerCache, AnswerCounts, Answerer, NoModels
from dialeval.engine.chunk import Chunk, ThisProcess, count_again, fingerprints
from dialeval.errors import UsageError
from dialeval.metric import Metric
from dialeval.progress import Progress, silent
from dialeval.question import ModelSource
from dialeval.runs.directory import (
    RunDirectory,
    calibrate_table,
    run_schema,
    scaled_columns,
    table_scores,
)
from dialeval.runs.manifest import build_manifest, file_records
from dialeval.runs.run import Run, open_run
from dialeval.runs.table import MetricSummary, PoolResults, Pools
from dialeval.sample import Sample
from dialeval.scores import Calibration, CalibrationKind, Signature, digest_of
from dialeval.storage import PARQUET, atomic_path, record_digest
from dialeval.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 2048
"""Samples per shard: what a killed run has to score again, from cached answers."""

CHUNK_WITH_MODELS = 128
"""Fewer where models are asked: all questions of a chunk are held in memory, a few kB each."""

CHUNKS_PER_ROW_GROUP = 8

PART = 1 << 20
"""Samples per file of scores, or a few more: a row group is not divided."""


class Job:
    """Scores samples with some metrics into one directory.

    known       a run whose samples are not scored again, if it is by the same metrics
    progress    called with the number of samples that are done, and of those read so far
    about_data  asked at the end what the manifest is to say of the input
    """

    engine: ClassVar[str] = "local"

    def __init__(
        self,
        directory: Path,
        metrics: Sequence[Metric],
        *,
        models: ModelSource | None = None,
        cache: AnswerCache | None = None,
        known: Run | None = None,
        calibrations: Mapping[str, Calibration] | None = None,
        overwrite: bool = False,
        chunk: int | None = None,
        part: int = PART,
        progress: Progress = silent,
        about_data: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        source = models or NoModels()
        self.directory = RunDirectory(directory)
        self.metrics = list(metrics)
        self.resumed = 0
        self._read = self._done = self._shards = 0
        self._any_order = 0
        """Digests of what is judged in all samples, added up: a scale depends neither on their
        order nor on their names."""
        self._scaled = [metric for metric in self.metrics if scaled_columns(metric)]
        self._scales_ratings = any("ratings" in metric.needs for metric in self._scaled)
        self._label = b""
        self._counts = AnswerCounts()
        self._overwrite = overwrite
        asks = any(metric.models() for metric in self.metrics)
        self._chunk = chunk or (CHUNK_WITH_MODELS if asks else CHUNK)
        self._part = part
        self._progress = progress
        self._about_data = about_data
        self._models = source
        self._process: ThisProcess | Known = ThisProcess(self.metrics, Answerer(source, cache))
        self._given = _check_calibrations(self.metrics, calibrations)
        self._schema = run_schema(self.metrics)
        self._weights = fingerprints(self.metrics, source)
        self._signatures = {m.label: str(m.signature(self._weights)) for m in self.metrics}
        if known is not None and self._signatures == {
            label: _without_calibration(one) for label, one in known.signatures.items()
        }:
            self._process = Known(self._process, known, self.metrics)

    def run(self, samples: Iterable[Sample]) -> None:
        with self.directory.exclusive(self._overwrite):
            if self.directory.manifest.exists():
                self._check_is_this_run(samples)
            else:
                self._run(samples)

    def _run(self, samples: Iterable[Sample]) -> None:
        self._start({})
        pools = Pools(self.metrics)
        data_digest = hashlib.sha256()
        missing = self._missing_chunks(samples, pools, data_digest)
        with closing(self._process.score(missing, self._tell_under_way)) as finished:
            for scored in finished:
                self.directory.write_shard(scored.number, scored.shard)
                pools.merge(scored.pools)
                self._counts.add(scored.counts)
                self._tell_done(scored.samples)
        data = {"sha256": data_digest.hexdigest(), **self._about_data()}
        self._finish(range(self._shards), pools, data)

    def _start(self, more: Mapping[str, Any]) -> None:
        """Begins the run, or resumes one with the same job."""
        job = {
            "dialeval": __version__,
            "engine": self.engine,
            "metrics": list(self._signatures.values()),
            "calibrations": {k: v.to_record() for k, v in sorted(self._given.items())},
            "chunk": self._chunk,
            **more,
        }
        self.directory.start(job)
        self._label = record_digest(job).encode()

    def _missing_chunks(
        self, samples: Iterable[Sample], pools: Pools, data_digest: hashlib._Hash
    ) -> Iterator[Chunk]:
        """Reads the input, and yields the chunks of it that are not there yet."""
        for chunk in _chunks(samples, self._chunk):
            digests = [sample.digest() for sample in chunk]
            if self._scaled:
                self._any_order += sum(
                    int.from_bytes(judged_digest(sample, self._scales_ratings)) for sample in chunk
                )
            data_digest.update(joined := b"".join(digests))
            digest = hashlib.sha256(self._label + joined).hexdigest().encode()
            number, self._shards = self._shards, self._shards + 1
            self._read += len(chunk)
            if self.directory.holds_shard(number, digest):
                pools.merge(count_again(chunk, self.metrics))
                self.resumed += len(chunk)
                self._tell_done(len(chunk))
            else:
                yield Chunk(number, chunk, digest)

    def _tell_done(self, samples: int) -> None:
        self._done += samples
        self._progress(self._done, self._read)

    def _tell_under_way(self, samples: int) -> None:
        self._progress(self._done + samples, self._read)

    def _finish(self, shards: range, pools: Pools, data: Mapping[str, Any]) -> None:
        """Shards -> calibrated scores.parquet, summary and manifest."""
        import pyarrow.parquet as pq

        calibrations = self._calibrations(shards)
        summaries: dict[str, dict[str, MetricSummary]] = {}
        counts: dict[str, dict[str, int]] = {}
        parts = self._parts(shards)
        paths = self.directory.fresh_parts(len(parts))
        for path, own in zip(paths, parts, strict=True):
            with (
                atomic_path(path) as temporary,
                pq.ParquetWriter(temporary, self._schema, **PARQUET) as writer,
            ):
                for table in self._row_groups(own):
                    calibrated = calibrate_table(table, self.metrics, calibrations)
                    summarise(calibrated, self.metrics, summaries, counts)
                    writer.write_table(calibrated, row_group_size=max(1, len(calibrated)))
        self._write_manifest(
            data, counts, summaries, calibrations, pools, file_records(self.directory.path, paths)
        )

    def _write_manifest(
        self,
        data: Mapping[str, Any],
        counts: Mapping[str, Mapping[str, int]],
        summaries: Mapping[str, Mapping[str, MetricSummary]],
        calibrations: Mapping[str, Calibration],
        pools: PoolResults,
        files: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """The manifest is the last file; with it the run is finished."""
        signatures = {
            metric.label: _with_calibration(
                self._signatures[metric.label],
                [calibrations[c] for c in scaled_columns(metric) if c in calibrations],
            )
            for metric in self.metrics
        }
        manifest = build_manifest(
            self.metrics,
            signatures,
            data,
            counts,
            summaries,
            calibrations,
            set(self._given),
            pools,
            files,
            self.engine,
        )
        damaged = {"damaged": self.directory.damaged} if self.directory.damaged else {}
        self.directory.finish(
            manifest, answers=self._counts.to_record(), **damaged, **self._report()
        )

    def _report(self) -> Mapping[str, Any]:
        """Returns what the history says about the work, apart from the scores."""
        return self._process.report()

    def _calibrations(self, shards: range) -> dict[str, Calibration]:
        """Returns scales by column: the given ones, and for the rest one fitted on all raw values
        of this run."""
        import numpy as np

        values: dict[str, list[Any]] = {name: [] for name in self._to_fit()}
        for number in shards if values else ():
            table = self.directory.read_shard(number)
            for name, own in values.items():
                own.append(table.column(name).drop_null().to_numpy())
        return self._scales(
            {
                name: Calibration.fit(kind, np.concatenate(values[name]))
                for name, (kind, _) in self._to_fit().items()
                if any(map(len, values[name]))
            }
        )

    def _to_fit(self) -> dict[str, tuple[CalibrationKind, Metric]]:
        """Returns the columns whose scale was not given."""
        return {
            name: (kind, metric)
            for metric in self._scaled
            for name, kind in scaled_columns(metric).items()
            if name not in self._given
        }

    def _scales(self, fitted: Mapping[str, Calibration]) -> dict[str, Calibration]:
        """Returns the scales of all columns; those that were fitted say on what."""
        columns = self._to_fit()
        found = dict(self._given)
        for name, scale in fitted.items():
            found[name] = replace(scale, identity=self._identity_of_scale(name, *columns[name]))
        return {
            name: found[name]
            for metric in self._scaled
            for name in scaled_columns(metric)
            if name in found
        }

    def _identity_of_scale(self, column: str, kind: CalibrationKind, metric: Metric) -> str:
        """Returns everything that decides a scale that is fitted on this run, on any processor."""
        if kind == "unit":
            return ""  # the same for all data
        signature = Signature.parse(self._signatures[metric.label]).short()
        part = column.removeprefix(metric.label)
        record = json.dumps([kind, part, signature, f"{self._any_order:x}"])
        return hashlib.sha256(record.encode()).hexdigest()

    def _parts(self, shards: range) -> list[range]:
        """Returns the shards of each file of scores: whole row groups, at least one file."""
        rows = self._chunk * CHUNKS_PER_ROW_GROUP
        step = CHUNKS_PER_ROW_GROUP * max(1, -(-self._part // rows))
        return [shards[first : first + step] for first in range(0, len(shards), step)] or [shards]

    def _row_groups(self, shards: range) -> Iterator[pa.Table]:
        """Yields several shards at a time; an empty run still gives one empty table."""
        import pyarrow as pa

        if not shards:
            yield self._schema.empty_table()
        for first in range(0, len(shards), CHUNKS_PER_ROW_GROUP):
            some = shards[first : first + CHUNKS_PER_ROW_GROUP]
            tables = [self.directory.read_shard(number) for number in some]
            yield pa.concat_tables([table.replace_schema_metadata(None) for table in tables])

    def _check_is_this_run(self, samples: Iterable[Sample]) -> None:
        """Checks that a finished run is the one that was asked for; it is then left as it is."""
        run = open_run(self.directory.path)
        there = {label: _without_calibration(one) for label, one in run.signatures.items()}
        later = added_labels(run)
        first = [signature for label, signature in there.items() if label not in later]
        asked = list(self._signatures.values())
        different = "" if asked in (first, list(there.values())) else "metrics"
        given_there = {
            m["label"]
            for m in run.manifest["metrics"]
            if m["calibration_given"] and m["label"] in self._signatures
        }
        given_here = {
            m.label for m in self.metrics if not self._given.keys().isdisjoint(scaled_columns(m))
        }
        scales = {name: run.calibrations.get(name) for name in self._given}
        if given_here != given_there or self._given != scales:
            different = "calibration"
        if not different:
            same = self._data_digest(samples) == run.manifest["data"]["sha256"]
            different = "" if same else "data"
        if different:
            raise UsageError(
                f"{self.directory.path} already holds a finished run with other {different}."
                " Add --overwrite to replace it, or choose another -o."
            )

    def _data_digest(self, samples: Iterable[Sample]) -> str:
        digest = hashlib.sha256()
        for sample in samples:
            digest.update(sample.digest())
            self.resumed += 1
        return digest.hexdigest()


def judged_digest(sample: Sample, ratings: bool) -> bytes:
    """Returns a digest of what scaled metrics may look at: what was said, and what it is compared
    with. Ratings count where one of them needs ratings."""
    kept = sample.ratings if ratings else {}
    return replace(sample, id="", dialogue="", item="", system="", ratings=kept).digest()


def summarise(
    table: pa.Table,
    metrics: Sequence[Metric],
    summaries: dict[str, dict[str, MetricSummary]],
    counts: dict[str, dict[str, int]],
) -> None:
    """Adds the rows of a table to what is known of each system."""
    systems = table.column("system").to_pylist()
    without_response = _nulls(table.column("response"))
    for system, whole_dialogue in zip(systems, without_response, strict=True):
        of_system = counts.setdefault(system, {"turn": 0, "dialogue": 0})
        of_system["dialogue" if whole_dialogue else "turn"] += 1
    for metric in metrics:
        label = metric.label
        by_system = {
            system: summaries.setdefault(system, {}).setdefault(label, MetricSummary())
            for system in dict.fromkeys(systems)
        }
        for system, score in zip(systems, table_scores(table, metric), strict=True):
            by_system[system].add(score)


def _nulls(column: pa.ChunkedArray) -> Sequence[bool]:
    """Returns which values are missing. Where it is all or none, `pyarrow.compute` stays out: its
    import takes longer than ten dialogues."""
    if column.null_count in (0, len(column)):
        return [column.null_count > 0] * len(column)
    missing: list[bool] = column.is_null().to_pylist()
    return missing


def _check_calibrations(
    metrics: Sequence[Metric], given: Mapping[str, Calibration] | None
) -> dict[str, Calibration]:
    """Returns the given scales of these metrics. Scales of other metrics are not needed, but
    none of a metric that has one may be missing: a mixture of old and new scales could not be
    compared."""
    if given is None:
        return {}
    scaled = {column: kind for metric in metrics for column, kind in scaled_columns(metric).items()}
    for label, kind in scaled.items():
        if label not in given or given[label].kind != kind:
            raise UsageError(
                f"no calibration of kind {kind!r} was given for {label!r}. The earlier run has"
                f" scales of: {', '.join(given) or 'none of its metrics'}"
            )
    if given and not scaled:
        raise UsageError("a calibration was given, but no metric of this run has a scale")
    return {label: given[label] for label in scaled}


def _with_calibration(signature: str, calibrations: Sequence[Calibration]) -> str:
    """Returns the signature with the scale, which moves the number: kind, and a digest."""
    if not calibrations:
        return signature
    parsed = Signature.parse(signature)
    first, *others = [one.digest() for one in calibrations]
    digest = digest_of([first, *others]) if others else first
    scale = ("calibration", f"{calibrations[0].kind}@{digest}")
    fields = (*parsed.fields[:-1], scale, parsed.fields[-1])
    return str(Signature(parsed.name, parsed.version, fields))


def _without_calibration(signature: Signature) -> str:
    kept = tuple(field for field in signature.fields if field[0] != "calibration")
    return str(Signature(signature.name, signature.version, kept))


def _chunks(samples: Iterable[Sample], size: int) -> Iterator[list[Sample]]:
    remaining = iter(samples)
    while chunk := list(islice(remaining, size)):
        yield chunk
