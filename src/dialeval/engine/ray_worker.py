"""What the workers of a Ray cluster do: read, score, write. It knows nothing of Ray.

    scan     reads a piece of the input: digests, ids, what is wrong with it
    repeated finds ids that occur twice, in the share of all ids that has the same hash
    Worker   holds the models; reads a piece again, scores it block by block, and writes the shard
             of each block into the run directory, which all machines see (a URL, a shared disk)
    finish   makes one file of scores of some shards, and says what its rows add up to
    merge    adds up what several of them say

A piece is a part of a file (`readers/pieces.py`), or lies in `input/` of the run directory: samples
of a file that nobody can read from the middle, and samples that only the process has that started
the run. Between the processes go names, digests and sums; no sample does.

Answers are kept in the memory of the worker, in a database of its own: what one metric asked, the
next one finds. The answer cache of the user is neither read nor written, as a SQLite file on a disk
that several machines share could be damaged.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from dialeval.engine.answers import AnswerCache, AnswerCounts, Answerer, LoadedOnce
from dialeval.engine.chunk import count_again, scored
from dialeval.engine.job import judged_digest, summarise
from dialeval.errors import DialevalError, JobError
from dialeval.metric import Metric
from dialeval.question import ModelSource
from dialeval.runs.columns import calibrate_table, chunk_to_table, run_schema
from dialeval.runs.directory import RunDirectory, read_whole, shard_bytes
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

DIGEST = 32
"""Bytes of the digest of a sample."""


class Piece(Protocol):
    """Samples that a worker can read: `readers.pieces.Piece`, or `Spooled`."""

    @property
    def name(self) -> str: ...

    @property
    def reads_again(self) -> bool: ...

    def reading(self) -> Any:
        """Returns what yields (line, sample) and then has a `report`."""


@dataclass(frozen=True)
class Spooled:
    """Samples in `input/` of the run directory: lines of JSON, compressed."""

    path: Path
    name: str
    reads_again: ClassVar[bool] = True

    def reading(self) -> SpooledReading:
        return SpooledReading(self.path)

    @classmethod
    def write(cls, place: Path, name: str, label: str, samples: Sequence[Sample]) -> Spooled:
        import zstandard

        lines = "".join(json.dumps(sample.to_record()) + "\n" for sample in samples)
        path = place / "input" / f"{label}.jsonl.zst"
        with atomic_path(path) as temporary:
            temporary.write_bytes(zstandard.ZstdCompressor().compress(lines.encode()))
        return cls(path, name)


class SpooledReading:
    report: ClassVar[None] = None

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[tuple[int, Sample]]:
        import zstandard

        content = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(self._path.read_bytes()))
        for number, line in enumerate(io.TextIOWrapper(content, encoding="utf-8"), 1):
            yield number, Sample.from_record(json.loads(line))


@dataclass(frozen=True)
class Settings:
    """What all workers are told once.

    weights  name of each model -> the fingerprint that the signatures of the run name
    version  of dialeval, where the run was started
    chunk    samples whose questions are asked together
    spool    samples in a file of `input/`; 0: nothing is put there
    scaled   whether a scale is fitted, and so samples need a digest without their names
    """

    place: Path
    metrics: Sequence[Metric]
    weights: Mapping[str, str]
    chunk: int
    spool: int
    scaled: bool
    scales_ratings: bool
    version: str = __version__


@dataclass(frozen=True)
class Scanned:
    """What a piece holds: where its samples are read from to be scored, with how many rows."""

    sources: tuple[tuple[Piece, int], ...]
    rows: int
    order: int
    """The digests of what is judged, added up."""
    report: Any


def scan(settings: Settings, number: int, piece: Piece, shares: int) -> tuple[Any, ...]:
    """Returns `Scanned`, the digests of the samples, those without names, and the ids in so many
    tables by their hash."""
    import pyarrow as pa

    reading = piece.reading()
    digests, judged = bytearray(), bytearray()
    order = 0
    found: list[list[tuple[str, int, int]]] = [[] for _ in range(shares)]
    pending: list[Sample] = []
    sources: list[tuple[Piece, int]] = []

    def spool() -> None:
        label = f"{number:06d}-{len(sources):04d}"
        spooled = Spooled.write(settings.place, piece.name, label, pending)
        sources.append((spooled, len(pending)))
        pending.clear()

    spools = bool(settings.spool) and not piece.reads_again
    rows = 0
    for line, sample in reading:
        digests += sample.digest()
        if settings.scaled:
            judged += (own := judged_digest(sample, settings.scales_ratings))
            order += int.from_bytes(own)
        if shares:
            key = zlib.crc32(sample.id.encode("utf-8", "surrogatepass")) % shares
            found[key].append((sample.id, rows, line))
        if spools:
            pending.append(sample)
            if len(pending) == settings.spool:
                spool()
        rows += 1
    if not spools:
        sources.append((piece, rows))
    elif pending:
        spool()
    tables = [
        pa.table(
            {
                "id": pa.array([one[0] for one in share], pa.string()),
                "piece": pa.array([number] * len(share), pa.int64()),
                "row": pa.array([one[1] for one in share], pa.int64()),
                "line": pa.array([one[2] for one in share], pa.int64()),
            }
        )
        for share in found
    ]
    scanned = Scanned(tuple(sources), rows, order, reading.report)
    return scanned, bytes(digests), bytes(judged), *tables


def repeated(*tables: pa.Table) -> pa.Table:
    """Returns the rows whose id occurs in an earlier row of the same share of all ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = pa.concat_tables(tables)
    counted = ids.group_by("id").aggregate([("row", "count")])
    several = counted.filter(pc.greater(counted.column("row_count"), 1)).column("id")
    some = ids.filter(pc.is_in(ids.column("id"), several.combine_chunks()))
    some = some.sort_by([("id", "ascending"), ("piece", "ascending"), ("row", "ascending")])
    names = some.column("id").to_pylist()
    again = [n > 0 and name == names[n - 1] for n, name in enumerate(names)]
    return some.filter(pa.array(again, pa.bool_()))


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


def block_digest(label: bytes, digests: bytes) -> str:
    return hashlib.sha256(label + digests).hexdigest()[:DIGEST]


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
