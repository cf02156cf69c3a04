"""The model cache: one directory per model, each with a record of what lies in it.

A model is prepared in a hidden directory beside its destination and renamed when it is whole, under
a lock: a killed fetch leaves nothing that looks like a model, and two fetches do the work once.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dialeval.errors import JobError, UsageError
from dialeval.models.identity import KnownDigests
from dialeval.models.progress import Progress, Step
from dialeval.models.weights import read_json
from dialeval.storage import sha256_of, write_json

RECORD = "dialeval-model.json"
"""name, role, licence, facts, fingerprint, source, and size and sha256 of each file."""


def read_record(directory: Path) -> dict[str, Any]:
    """The record of a model directory; empty where dialeval did not write one."""
    return read_json(directory / RECORD)


def write_record(
    directory: Path, record: Mapping[str, Any], paths: Iterable[Path] | None = None
) -> None:
    """Adds to the record what lies in the directory now, so that damage is found later.

    `paths` are the files that count; by default all of them.
    """
    if paths is None:
        paths = [path for path in directory.rglob("*") if path.is_file() and path.name != RECORD]
    files = {
        path.relative_to(directory).as_posix(): {
            "size": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in sorted(paths)
    }
    write_json(directory / RECORD, {**record, "files": files})


def damage(directory: Path, digest: Callable[[Path], str] | None = None) -> str:
    """What is wrong with a recorded directory; empty if nothing is.

    Sizes are compared in no time; `digest` (`KnownDigests().of`, or `again`) reads the files.
    """
    record = read_record(directory)
    files = record.get("files", {})
    if record and not (isinstance(files, dict) and files):
        return f"{RECORD} lists no files"
    for name, expected in files.items():
        path = directory / name
        if not isinstance(expected, dict) or not expected.keys() >= {"size", "sha256"}:
            return f"{RECORD} does not say what {name} should be"
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != expected["size"]:
            return f"{name} has {path.stat().st_size} bytes and should have {expected['size']}"
        if digest and digest(path) != expected["sha256"]:
            return f"{name} has changed (expected sha256 {expected['sha256']})"
    return ""


def is_whole(directory: Path, fingerprint: str) -> bool:
    """Whether this very model lies in the directory, undamaged."""
    try:
        known = read_record(directory).get("fingerprint")
    except UsageError:  # a damaged record: the model is made anew
        return False
    return known == fingerprint and not damage(directory, KnownDigests().of)


@contextmanager
def prepared(
    destination: Path, fingerprint: str, model: str, progress: Progress
) -> Iterator[Path | None]:
    """A fresh directory to fill, or None if the model is here.

    If the block ends well, the directory becomes `destination`; otherwise it vanishes.
    """
    if is_whole(destination, fingerprint):
        yield None
        return
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with _locked(destination, model, progress):
            if is_whole(destination, fingerprint):
                yield None
                return
            for leftover in destination.parent.glob(f".{destination.name}.part-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            part = tempfile.mkdtemp(prefix=f".{destination.name}.part-", dir=destination.parent)
            work = Path(part)
            try:
                yield work
                _settle(work)
                if destination.exists():
                    shutil.rmtree(destination)
                work.rename(destination)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise JobError(
            f"{model}: cannot be stored in {destination.parent} ({error})."
            " Free some space, or point DIALEVAL_CACHE elsewhere."
        ) from error


def _settle(directory: Path) -> None:
    """On the disk, and readable for whoever may read the user's other files."""
    mask = os.umask(0)
    os.umask(mask)
    for path in (directory, *directory.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())


@contextmanager
def _locked(destination: Path, model: str, progress: Progress) -> Iterator[None]:
    lock = FileLock(destination.parent / f".{destination.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(Step(model, "wait", text="another process is fetching it"))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
