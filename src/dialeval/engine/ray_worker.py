"""What the workers of a Ray cluster do: score and write. It knows nothing of Ray.

    Worker   holds the models; reads a piece again, scores it block by block, and writes the shard
             of each block into the run directory, which all machines see (a URL, a shared disk)
    finish   makes one file of scores of some shards, and says what its rows add up to
    merge    adds up what several of them say

Between the processes go names, digests and sums; no sample does.

Answers are kept in the memory of the worker, in a database of its own: what one metric asked, the
next one finds. The answer cache of the user is neither read nor written, as a SQLite file on a disk
that several machines share could be damaged.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.engine.answers import AnswerCache, AnswerCounts, Answerer, LoadedOnce
from dialeval.engine.chunk import count_again, scored
from dialeval.engine.job import summarise
from dialeval.engine.ray_reading import Piece, Settings, block_digest
from dialeval.errors import DialevalError, JobError
from dialeval.question import ModelSource
from dialeval.runs.directory import (
    RunDirectory,
    calibrate_table,
    chunk_to_table,
    read_whole,
    run_schema,
    shard_bytes,
)
from dialeval.runs.manifest import file_records
from dialeval.runs.table import MetricSummary, Pools
from dialeval.sample import Sample
from dialeval.scores import Calibration, CalibrationKind, Score
from dialeval.storage import PARQUET, atomic_path, sample_schema, table_to_samples
from dialeval.version import __version__

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    Floats = npt.NDArray[np.float64]

IN_MEMORY = Path(":memory:")
"""What SQLite calls a database without a file."""

ANSWERS_KEPT = 50_000
"""Then the database starts again, empty: at 2 kB for the log-probabilities of a response, 100 MB.
What repeats (turns of one dialogue, stock answers) mostly lies closer together."""

ROW_GROUP = 1 << 14
"""Rows of a row group in a file of scores, or a few more: a shard is not divided."""


@dataclass(frozen=True)
class Block:
    """Consecutive samples of a source, without those that are left out: a shard, and what a killed
    run loses at most. `digest` is that of the job and of the samples."""

    number: int
    first: int
    last: int
    digest: str


@dataclass(frozen=True)
class Work:
    """Blocks of one source that are to be scored, and rows of it that are left out."""

    number: int
    source: Piece
    left_out: frozenset[int]
    blocks: tuple[Block, ...]
    rows: tuple[int, int]
    """The first and last row of the source that it is about, from 1, for messages."""
    label: bytes
    again: bool = False
    """Whether a worker died over it, which may have written some of the shards."""


@dataclass(frozen=True)
class Done:
    samples: int
    counts: AnswerCounts


class Worker:
    """Scores with models that are loaded once."""

    def __init__(self, settings: Settings, models: ModelSource) -> None:
        self._settings = settings
        self._models = LoadedOnce(models)
        self._directory = RunDirectory(settings.place)
        self._cache: AnswerCache | None = None
        self._answers = 0
        self._under_way = 0
        self._finished = 0

    def score(self, work: Work) -> Done:
        """Scores the blocks and writes their shards."""
        if self._cache is None:
            self._check_is_alike()
            self._cache = AnswerCache(IN_MEMORY)
        counts = AnswerCounts()
        self._under_way = self._finished = 0
        there = self._directory.blocks() if work.again else {}
        kept = (
            sample
            for row, (_, sample) in enumerate(work.source.reading())
            if row not in work.left_out
        )
        position = 0
        for block in work.blocks:
            for _ in islice(kept, block.first - position):
                pass
            samples = list(islice(kept, block.last - block.first))
            position = block.last
            self._check_is_same(work, block, samples)
            if there.get(block.number, ("",))[0] != block.digest:
                counts.add(self._score_block(work, block, samples))
            self._finished += len(samples)
            self._under_way = self._finished
        return Done(self._finished, counts)

    def under_way(self) -> int:
        """Returns how many samples of the current work are done; it is asked while `score`
        runs."""
        return self._under_way

    def _note_under_way(self, samples: int) -> None:
        self._under_way = self._finished + samples

    def _score_block(self, work: Work, block: Block, samples: Sequence[Sample]) -> AnswerCounts:
        import pyarrow as pa

        assert self._cache is not None
        metrics, counts, tables = self._settings.metrics, AnswerCounts(), list[Any]()
        done = self._finished
        for first in range(0, len(samples), self._settings.chunk):
            chunk = samples[first : first + self._settings.chunk]
            answerer = Answerer(self._models, self._cache)
            scores = scored(chunk, metrics, answerer, self._note_under_way)
            tables.append(chunk_to_table(chunk, scores, metrics))
            counts.add(answerer.counts)
            self._finished += len(chunk)
            self._answers += answerer.counts.distinct - answerer.counts.cached
            if self._answers > ANSWERS_KEPT:
                self._cache.close()
                self._cache, self._answers = AnswerCache(IN_MEMORY), 0
        self._finished = done
        where = f"{work.source.name} {block.first + 1}-{block.last} {block.digest}"
        shard = shard_bytes(pa.concat_tables(tables), where.encode())
        self._directory.write_block(block.number, block.digest, shard)
        return counts

    def _check_is_same(self, work: Work, block: Block, samples: Sequence[Sample]) -> None:
        joined = b"".join(sample.digest() for sample in samples)
        if block_digest(work.label, joined) != block.digest:
            raise JobError(
                f"{work.source.name} has changed while the run was under way. Repeat the command,"
                " with --overwrite if the new content is meant."
            )

    def _check_is_alike(self) -> None:
        """Checks that the signatures of the run are true of what this machine computes, and that it
        sees the run directory."""
        where, settings = f"the worker on {platform.node()}", self._settings
        if settings.version != __version__:
            raise JobError(f"{where} has dialeval {__version__}, this machine {settings.version}")
        if not (settings.place / "job.json").exists():
            raise JobError(
                f"{where} does not see {settings.place}. Workers write into the run directory:"
                " name a URL with -o, or a directory on a disk that all machines share."
            )
        for name, expected in settings.weights.items():
            try:
                found = self._models.fingerprint(name)
            except DialevalError as error:
                raise JobError(f"{where}: {error}") from error
            if found != expected:
                raise JobError(
                    f"{where} has other weights of {name!r} ({found[:8]}) than this machine"
                    f" ({expected[:8]}). On both: dialeval models get {name}"
                )


def raw_values(
    settings: Settings, columns: Sequence[str], shards: Sequence[Path]
) -> dict[str, Floats]:
    """Returns all values of some columns, from which scales are fitted."""
    import numpy as np

    values: dict[str, list[Floats]] = {name: [np.empty(0)] for name in columns}
    for path in shards:
        table = read_whole(path)
        for name, own in values.items():
            own.append(table.column(name).drop_null().to_numpy())
    return {name: np.concatenate(own) for name, own in values.items()}


def join_values(*parts: Mapping[str, Floats]) -> dict[str, Floats]:
    import numpy as np

    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def fit(
    kinds: Mapping[str, CalibrationKind], values: Mapping[str, Floats]
) -> dict[str, Calibration]:
    return {name: Calibration.fit(kinds[name], own) for name, own in values.items() if len(own)}


@dataclass
class Part:
    """A file of scores, or several: their records for the manifest, and sums over their rows."""

    pools: Pools | None
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    summaries: dict[str, dict[str, MetricSummary]] = field(default_factory=dict)
    results: dict[tuple[str, str], Score] = field(default_factory=dict)

    def result(self, system: str, label: str) -> Score | None:
        """Returns the system score of a metric that is not a mean, once everything is merged."""
        return self.results.get((system, label))


def finish(
    settings: Settings,
    calibrations: Mapping[str, Calibration],
    shards: Sequence[Path],
    target: Path,
) -> Part:
    """Puts shards on their scales and into one file. What pools count is counted again: a shard has
    scores and no counts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    metrics, schema = settings.metrics, run_schema(settings.metrics)
    pools = Pools(metrics)
    part = Part(pools)
    with (
        atomic_path(target) as temporary,
        pq.ParquetWriter(temporary, schema, **PARQUET) as writer,
    ):
        for tables in _groups(map(read_whole, shards), schema.empty_table()):
            table = pa.concat_tables([one.replace_schema_metadata(None) for one in tables])
            if pools.pooled:
                samples = table_to_samples(table.select(sample_schema().names))
                pools.merge(count_again(list(samples), metrics))
            table = calibrate_table(table, metrics, calibrations)
            summarise(table, metrics, part.summaries, part.counts)
            writer.write_table(table, row_group_size=max(1, len(table)))
    part.files = file_records(settings.place, [target])
    return part


def _groups(tables: Iterable[pa.Table], empty: pa.Table) -> Iterator[list[pa.Table]]:
    """Yields some tables at a time, with the rows of a row group; an empty run has an empty one."""
    group: list[pa.Table] = []
    rows, nothing = 0, True
    for table in tables:
        group.append(table)
        nothing, rows = False, rows + len(table)
        if rows >= ROW_GROUP:
            yield group
            group, rows = [], 0
    if group or nothing:
        yield group or [empty]


def merge(settings: Settings, *parts: Part) -> Part:
    """Adds up consecutive parts, the first of them first: systems stay in their order."""
    pools = Pools(settings.metrics)
    whole = Part(pools)
    for part in parts:
        whole.files |= part.files
        if part.pools is not None:
            pools.merge(part.pools)
        for system, levels in part.counts.items():
            own = whole.counts.setdefault(system, dict.fromkeys(levels, 0))
            for level, count in levels.items():
                own[level] += count
        for system, of_system in part.summaries.items():
            for label, summary in of_system.items():
                labels = whole.summaries.setdefault(system, {})
                labels.setdefault(label, MetricSummary()).merge(summary)
    return whole


def closed(part: Part) -> Part:
    """Returns the sums alone: what pools hold may be large, and stays on the worker."""
    assert part.pools is not None
    results = {
        (system, label): found
        for system in part.counts
        for label in part.pools.pooled
        if (found := part.pools.result(system, label)) is not None
    }
    return Part(None, part.files, part.counts, part.summaries, results)
