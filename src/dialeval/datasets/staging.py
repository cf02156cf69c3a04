"""Where a data set is gathered before it takes its place, and the check of what was gathered."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from dialeval.datasets.dataset import Dataset, File
from dialeval.errors import JobError
from dialeval.places import data_directory
from dialeval.progress import FetchProgress, Step
from dialeval.storage import sha256_of

STAGING = ".fetching"
SPARE = 1 << 20
"""Bytes that are left free on the disk, and that a file may have more than it should."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that is not the listed one."""

    name: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.name}: sha256 is {self.found}, expected {self.expected}"


def differing(files: Iterable[File], work: Path) -> tuple[Changed, ...]:
    return tuple(
        Changed(file.name, file.sha256, found)
        for file in files
        if (found := sha256_of(work / file.name)) != file.sha256
    )


def move_into_place(work: Path, folder: Path, files: Sequence[File]) -> None:
    for file in files:
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        (work / file.name).replace(folder / file.name)
    shutil.rmtree(work)


def check_space(work: Path, needed: int) -> None:
    if (free := shutil.disk_usage(work).free) < needed + SPARE:
        raise JobError(
            f"{work.parent.parent}: {needed:,} bytes are needed and {free:,} are free."
            " Free some space, or point DIALEVAL_DATA elsewhere"
        )


@contextmanager
def staging(dataset: Dataset, progress: FetchProgress) -> Iterator[Path]:
    """A folder on the same disk as the data sets, for one process at a time."""
    root = data_directory()
    work = root / STAGING / dataset.name
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / STAGING / f"{dataset.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress(Step(dataset.name, "wait"))
            lock.acquire()
        try:
            work.mkdir(exist_ok=True)
            yield work
        finally:
            lock.release()
    except OSError as error:
        raise JobError(
            f"{dataset.name}: cannot be stored in {root} ({error.strerror or error})."
            " Free some space, or point DIALEVAL_DATA elsewhere"
        ) from error
