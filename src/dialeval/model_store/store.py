"""The model cache: one directory per model, each with a record of what lies in it.

A model is prepared in a hidden directory beside its destination and renamed when it is whole, under
a lock: a killed fetch leaves nothing that looks like a model, and two fetches do the work once.

Weights are identified by sha256 digests, and by a fingerprint made of them. A fingerprint is
`LEAD-REST`. The rest is a digest of everything that can change an answer. The lead is what
signatures show, so that people can compare it with something: for a catalogue model the sha256 of
its main weight file, for a hub model the commit, for a local directory the rest itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.model_store.catalogue import Entry, Wheel, Wheels
from dialeval.model_store.weights import read_json
from dialeval.progress import FetchProgress, Step
from dialeval.storage import cache_directory, file_stamp, sha256_of, write_json

CONVERSION = "gguf-1"
"""Part of the fingerprint of a converted GGUF: raise it when the conversion changes an answer."""

_LEAD = 16


def fingerprint_of(digests: Mapping[str, str], lead: str = "", extra: str = "") -> str:
    """Returns the fingerprint of named parts; the order in which they are given does not matter."""
    text = json.dumps([sorted(digests.items()), extra])
    rest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{(lead or rest)[:_LEAD]}-{rest[:32]}"


def wheel_fingerprint(entry: Entry) -> str:
    """Known before anything is fetched: the catalogue holds all the hashes."""
    assert isinstance(entry.source, Wheel | Wheels)
    files = entry.source.files
    main = max(files, key=lambda file: file.size)
    converted = main.name.endswith(".gguf") and not is_kept_as_gguf(entry)
    extra = CONVERSION if converted else entry.facts.get("runtime", "")
    return fingerprint_of({file.name: file.sha256 for file in files}, main.sha256, extra)


def is_kept_as_gguf(entry: Entry) -> bool:
    """Returns whether llama.cpp reads its weights as they are; otherwise they become
    safetensors."""
    return entry.facts.get("runtime") == "llama.cpp"


class KnownDigests:
    """sha256 by path, remembered in the cache directory until the file changes or until a reboot.

    A gigabyte takes a second to hash; the second run on the same directory takes none. A file has
    changed if its size, its inode or one of its times has (nobody can set the second one, of the
    inode). A disk that loses bits changes none of them: so every file is read anew once per boot,
    and by `again`, which is what `dialeval models check` uses.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or cache_directory() / "digests.json"
        self._boot = boot_id()
        self._known = self._read()

    def of(self, path: Path) -> str:
        row = self._known.get(str(path.resolve()))
        stamp = [*file_stamp(path), self._boot]
        return row[-1] if row and row[:-1] == stamp else self.again(path)

    def again(self, path: Path) -> str:
        """Reads every byte, whatever is remembered."""
        stamp = [*file_stamp(path), self._boot]
        row = [*stamp, sha256_of(path)]
        self._known = {**self._read(), str(path.resolve()): row}
        # Without a name of the boot nothing is remembered for longer than this object.
        if self._boot:
            with suppress(
                OSError, DialevalError
            ):  # a cache that cannot be written costs time, nothing else
                rows = {key: [*row, _checksum(key, row)] for key, row in self._known.items()}
                write_json(self.path, rows)
        return str(row[-1])

    def _read(self) -> dict[str, list[Any]]:
        """Reads the rows of this boot. A damaged file or row costs time, nothing else."""
        try:
            rows = json.loads(self.path.read_text(encoding="utf-8")).items()
            return {
                key: row[:-1]
                for key, row in rows
                if row[-3] == self._boot and row[-1] == _checksum(key, row[:-1])
            }
        except (OSError, ValueError, AttributeError, TypeError, LookupError, RecursionError):
            return {}


def boot_id() -> str:
    """Returns a name for the time since this machine was started; empty where the system has
    none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _checksum(key: str, row: Sequence[Any]) -> str:
    text = json.dumps([key, *row])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


RECORD = "dialeval-model.json"
"""name, role, licence, facts, fingerprint, source, and size and sha256 of each file."""


def read_record(directory: Path) -> dict[str, Any]:
    """Reads the record of a model directory; empty where dialeval did not write one."""
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
    """Returns what is wrong with a recorded directory; empty if nothing is.

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
    """Returns whether this very model lies in the directory, undamaged."""
    try:
        known = read_record(directory).get("fingerprint")
    except UsageError:  # a damaged record: the model is made anew
        return False
    return known == fingerprint and not damage(directory, KnownDigests().of)


@contextmanager
def prepared(
    destination: Path, fingerprint: str, model: str, progress: FetchProgress
) -> Iterator[Path | None]:
    """Yields a fresh directory to fill, or None if the model is installed.

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
def _locked(destination: Path, model: str, progress: FetchProgress) -> Iterator[None]:
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
