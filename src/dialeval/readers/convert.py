"""Samples -> a file of our own: JSON Lines, plain or compressed, or Parquet.

    convert(load("fed_data.json"), "fed.parquet")         # also .jsonl, .jsonl.gz, .jsonl.zst

The file appears whole or not at all, and memory holds a batch of samples at a time.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, cast

from dialeval.errors import JobError, UsageError
from dialeval.progress import Progress, silent
from dialeval.sample import Sample
from dialeval.storage import PARQUET, atomic_path, sample_schema, samples_to_table

BATCH = 4096


def convert(
    samples: Iterable[Sample],
    destination: str | os.PathLike[str],
    progress: Progress = silent,
) -> int:
    """Writes all samples and returns how many they were; `progress` hears how many so far."""
    path = Path(destination)
    sources = getattr(samples, "formats", {})
    if any(Path(source).resolve() == path.resolve() for source in sources):
        raise UsageError(f"{path} is what is being read; choose another file to write")
    write = _writer(path)
    try:
        with atomic_path(path) as temporary:
            return write(_watched(samples, progress), temporary)
    except OSError as error:
        raise JobError(f"cannot write {path}: {error.strerror or error}") from error


def _watched(samples: Iterable[Sample], progress: Progress) -> Iterator[Sample]:
    for count, sample in enumerate(samples, start=1):
        yield sample
        if count % BATCH == 0:
            progress(count, 0)


def _writer(path: Path) -> Callable[[Iterable[Sample], Path], int]:
    name = path.name.lower()
    if name.endswith(".parquet"):
        return _write_parquet
    for ending, opened in _LINES.items():
        if name.endswith(ending):
            return lambda samples, temporary: _write_lines(samples, opened(temporary))
    raise UsageError(
        f"cannot tell what to write from the name {path.name!r}: end it in"
        f" .parquet, {', '.join(_LINES)}"
    )


def _write_lines(samples: Iterable[Sample], opened: AbstractContextManager[IO[bytes]]) -> int:
    count = 0
    with opened as file:
        for sample in samples:
            file.write(_line(sample))
            count += 1
    return count


def _line(sample: Sample) -> bytes:
    record = sample.to_record()
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, in a sample made by hand: escape it
        return json.dumps(record).encode() + b"\n"


@contextmanager
def _plain(path: Path) -> Iterator[IO[bytes]]:
    with path.open("wb") as file:
        yield file


@contextmanager
def _gzip(path: Path) -> Iterator[IO[bytes]]:
    """Without name and time in it: the same samples give the same bytes."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        yield cast("IO[bytes]", packed)


@contextmanager
def _zstd(path: Path) -> Iterator[IO[bytes]]:
    import zstandard

    with zstandard.open(path, "wb") as packed:
        yield cast("IO[bytes]", packed)


_LINES: dict[str, Callable[[Path], AbstractContextManager[IO[bytes]]]] = {
    ".jsonl": _plain,
    ".jsonl.gz": _gzip,
    ".jsonl.zst": _zstd,
}


def _write_parquet(samples: Iterable[Sample], path: Path) -> int:
    import pyarrow.parquet as pq

    count = 0
    with pq.ParquetWriter(path, sample_schema(), **PARQUET) as writer:
        for batch in _batches(samples):
            writer.write_table(samples_to_table(batch))
            count += len(batch)
    return count


def _batches(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    remaining = iter(samples)
    while batch := list(islice(remaining, BATCH)):
        yield batch
