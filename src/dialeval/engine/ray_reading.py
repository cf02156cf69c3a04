"""The first half of a job on a Ray cluster: its tasks read the input. It knows nothing of Ray.

    scan     reads a piece of the input: digests, ids, what is wrong with it
    joined   makes one of what several scans found
    divided  takes that apart for those who need a part of it
    repeated finds ids that occur twice, in the share of all ids that has the same hash
    Digester makes the digests of blocks and of all samples from the digests of samples

A piece is a part of a file (`readers/pieces.py`), or lies in `input/` of the run directory: samples
of a file that nobody can read from the middle, and samples that only the process has that started
the run.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from dialeval.engine.job import judged_digest
from dialeval.metric import Metric
from dialeval.sample import Sample
from dialeval.storage import atomic_path
from dialeval.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

DIGEST = 32
"""Bytes of the digest of a sample."""

JOINS = 8
"""What several scans found that `joined` makes one of."""

APART = 100 << 10
"""Ray keeps a smaller result in the process that asked for it (`max_direct_call_object_size`), and
copies it into each task that reads it. These copies stay there as long as Ray might have to repeat
the task. So what a scan finds is made larger than that: then it lies in the memory of the
cluster."""


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
    """What a piece holds: where its samples are read from to be scored (None: from the piece
    itself), with how many rows."""

    sources: tuple[tuple[Piece | None, int], ...]
    rows: int
    order: int
    """The digests of what is judged, added up."""
    report: Any


@dataclass(frozen=True)
class Found:
    """The digests of consecutive samples, those without names, and the ids in tables by their
    hash."""

    digests: bytes
    judged: bytes
    ids: tuple[pa.Table, ...]
    padding: bytes

    @classmethod
    def of(cls, digests: bytes, judged: bytes, ids: Sequence[pa.Table]) -> Found:
        padding = bytes(max(0, APART - len(digests) - len(judged)))
        return cls(digests, judged, tuple(ids), padding)


def scan(settings: Settings, number: int, piece: Piece, shares: int) -> tuple[Scanned, Found]:
    """Reads a piece; its ids come in so many tables."""
    reading = piece.reading()
    digests, judged = bytearray(), bytearray()
    order = 0
    found: list[list[tuple[str, int, int]]] = [[] for _ in range(shares)]
    pending: list[Sample] = []
    sources: list[tuple[Piece | None, int]] = []

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
        sources.append((None, rows))
    elif pending:
        spool()
    tables = [_table_of_ids(number, share) for share in found]
    scanned = Scanned(tuple(sources), rows, order, reading.report)
    return scanned, Found.of(bytes(digests), bytes(judged), tables)


def _table_of_ids(number: int, ids: Sequence[tuple[str, int, int]]) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {
            "id": pa.array([one[0] for one in ids], pa.string()),
            "piece": pa.array([number] * len(ids), pa.int32()),
            "row": pa.array([one[1] for one in ids], pa.int32()),
            "line": pa.array([one[2] for one in ids], pa.int64()),
        }
    )


def joined(*found: Found) -> Found:
    """Returns what several scans found as if one had."""
    import pyarrow as pa

    shares = zip(*(one.ids for one in found), strict=True)
    return Found.of(
        b"".join(one.digests for one in found),
        b"".join(one.judged for one in found),
        [pa.concat_tables(share).combine_chunks() for share in shares],
    )


def divided(found: Found) -> tuple[Any, ...]:
    """Returns the digests, those without names, and each table of ids as a result of its own."""
    return found.digests, found.judged, *found.ids


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


class Digester:
    """Makes the digests of blocks, and the digest of all samples in their order, which no two
    processes can share."""

    def __init__(self, label: bytes, block: int) -> None:
        self._label = label
        self._bytes = block * DIGEST
        self._whole = hashlib.sha256()

    def blocks(
        self, sources: Sequence[int], left_out: Sequence[int], digests: bytes, judged: bytes
    ) -> tuple[list[list[str]], int]:
        """Returns the digests of the blocks of the next sources, and the sum of what is left out.

        sources   rows of each
        left_out  rows that are left out, counted from the first source on
        judged    digests without names; only those that are left out count
        """
        import numpy as np

        kept = np.ones(len(digests) // DIGEST, bool)
        kept[list(left_out)] = False
        rows = np.frombuffer(digests, np.uint8).reshape(-1, DIGEST)
        found: list[list[str]] = []
        first = 0
        for count in sources:
            own = slice(first, first + count)
            part = rows[own][kept[own]].tobytes()
            first += count
            self._whole.update(part)
            starts = range(0, len(part), self._bytes)
            found.append([block_digest(self._label, part[at : at + self._bytes]) for at in starts])
        less = sum(
            int.from_bytes(judged[row * DIGEST : (row + 1) * DIGEST])
            for row in (left_out if judged else ())
        )
        return found, less

    def whole(self) -> str:
        return self._whole.hexdigest()


def block_digest(label: bytes, digests: bytes) -> str:
    return hashlib.sha256(label + digests).hexdigest()[:DIGEST]
