"""`get`: brings a data set here, from its public source or from a copy that somebody has.

Files are gathered in a hidden folder beside the data sets and moved to their place when all of them
are there: what was interrupted is never taken for a data set, and is gone on with the next time.
A fetched file whose sha256 is not the one listed is thrown away, unless the caller accepts changed
files: the authors may have corrected theirs, but then no published number can be expected.
"""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urldefrag, urlsplit

from filelock import FileLock, Timeout

from dialeval.datasets.dataset import Dataset, File, Part
from dialeval.datasets.download import DownloadError, download
from dialeval.datasets.locate import find_folder
from dialeval.errors import JobError, UsageError
from dialeval.progress import FetchProgress, Step, silent_fetch
from dialeval.storage import data_directory, sha256_of

# Where a data set is gathered before it takes its place, and the check of what was gathered.

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
    """Yields a folder on the same disk as the data sets, for one process at a time."""
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


ARCHIVE_LIMIT = 100 * SPARE
"""Archives hold more than the files that are wanted, and their sizes are not listed."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a fetch did.

    added    files that are new here
    changed  those of them that are not the listed ones
    absent   files that are still not here, as nobody knows where to fetch them, or as the
             user's copy lacks them
    """

    folder: Path
    added: tuple[str, ...] = ()
    changed: tuple[Changed, ...] = ()
    absent: tuple[str, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """JSON-ready values."""
        return asdict(self) | {"folder": str(self.folder)}


def target_folder(dataset: Dataset) -> Path:
    """Returns where the data set is, or where it belongs."""
    return find_folder(dataset) or data_directory() / dataset.place


def wanted_files(dataset: Dataset, part: Part | None) -> tuple[File, ...]:
    """Returns the files of a part, or all of them."""
    if part is None or not part.path:
        return dataset.files
    return tuple(
        file for file in dataset.files if f"{file.name}/".startswith(part.path.rstrip("/") + "/")
    )


def absent_files(dataset: Dataset, part: Part | None = None) -> tuple[File, ...]:
    folder = target_folder(dataset)
    return tuple(f for f in wanted_files(dataset, part) if not (folder / f.name).is_file())


def hosts(files: Iterable[File]) -> list[str]:
    """Returns where these files would come from."""
    return sorted({urlsplit(file.url).netloc for file in files if file.url})


def fetch(
    dataset: Dataset,
    part: Part | None = None,
    *,
    accept_changed: bool = False,
    progress: FetchProgress = silent_fetch,
) -> Fetched:
    """Downloads the files that are not here yet.

    Those without a public address are left to the user and named in the result; if that is all of
    them, it is a `UsageError`.
    """
    folder, absent = target_folder(dataset), absent_files(dataset, part)
    files = [file for file in absent if file.url]
    by_hand = tuple(file.name for file in absent if not file.url)
    if not files:
        if by_hand:
            raise UsageError(f"{dataset.name}: {by_hand_advice(dataset, by_hand)}")
        return Fetched(folder)
    with staging(dataset, progress) as work:
        files = [file for file in files if not (folder / file.name).is_file()]  # after a wait
        check_space(work, sum(file.size for file in files))
        changed = _download_all(dataset, files, work, folder, accept_changed, progress)
        move_into_place(work, folder, files)
    progress(Step(dataset.name, "ready"))
    return Fetched(folder, tuple(file.name for file in files), changed, by_hand)


def copy_from(
    dataset: Dataset,
    source: Path,
    part: Part | None = None,
    *,
    progress: FetchProgress = silent_fetch,
) -> Fetched:
    """Takes the listed files from a folder (or file) of the user's, in the same layout or flat.

    Files that are here are left alone. Other bytes than the listed ones are taken all the same: it
    is the user's own copy, and the result names them.
    """
    if not source.exists():
        raise UsageError(f"{source}: there is no such file or folder")
    folder, absent = target_folder(dataset), absent_files(dataset, part)
    if not absent:
        return Fetched(folder)
    found = {file: path for file in absent if (path := _find_copy(dataset, file, source))}
    if not found:
        names = ", ".join(file.name for file in absent[:3]) + (", ..." if len(absent) > 3 else "")
        raise UsageError(f"{source} holds no file of {dataset.name!r}: looked for {names}")
    with staging(dataset, progress) as work:
        check_space(work, sum(path.stat().st_size for path in found.values()))
        for file, path in found.items():
            (work / file.name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, work / file.name)
        progress(Step(dataset.name, "check"))
        changed = differing(found, work)
        move_into_place(work, folder, list(found))
    progress(Step(dataset.name, "ready"))
    missing = tuple(file.name for file in absent if file not in found)
    return Fetched(folder, tuple(file.name for file in found), changed, missing)


def by_hand_advice(dataset: Dataset, names: Sequence[str]) -> str:
    """Returns advice about files that cannot be fetched."""
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    how = f" ({dataset.by_hand})" if dataset.by_hand else ""
    return (
        f"no public address is known for {shown}{how}. See {dataset.source}, put your copy into"
        f" {target_folder(dataset)} or run: dialeval data get {dataset.name} --from DIR"
    )


def _download_all(
    dataset: Dataset,
    files: Sequence[File],
    work: Path,
    folder: Path,
    accept_changed: bool,
    progress: FetchProgress,
) -> tuple[Changed, ...]:
    total, done = sum(file.size for file in files), 0
    changed: list[Changed] = []
    try:
        for file in files:
            path = work / file.name
            if not (path.is_file() and sha256_of(path) == file.sha256):
                _download_one(dataset, file, work, done, total, progress)
            changed += differing([file], work)
            if changed and not accept_changed:
                path.unlink()
                _archive(file, work).unlink(missing_ok=True)
                raise JobError(
                    f"{dataset.name}: {file.url} is not the file that dialeval knows.\n"
                    f"{changed[0]}.\nIt was deleted. If the authors changed it and you want it"
                    " all the same, add --accept-changed; numbers may then differ from published"
                    " ones."
                )
            done += file.size
    except DownloadError as error:
        raise JobError(
            f"{dataset.name}: {error}.\nWithout network, or if it has moved: see {dataset.source},"
            f" put a copy into {folder} (as {file.name})\nor run: dialeval data get"
            f" {dataset.name} --from DIR"
        ) from error
    return tuple(changed)


def _download_one(
    dataset: Dataset, file: File, work: Path, before: int, total: int, progress: FetchProgress
) -> None:
    def report(done: int) -> None:
        progress(Step(dataset.name, "download", min(before + done, total), total))

    address, member = urldefrag(file.url)
    if not member:
        download(address, work / file.name, limit=2 * file.size + SPARE, report=report)
        return
    archive = _archive(file, work)
    if not archive.is_file():
        download(address, archive, limit=ARCHIVE_LIMIT, report=report)
    _unpack(archive, member, work / file.name, 2 * file.size + SPARE)


def _archive(file: File, work: Path) -> Path:
    """Returns where the archive of a file is kept for the other files in it."""
    return work / (PurePosixPath(urlsplit(file.url).path).name + ".archive")


def _unpack(archive: Path, member: str, destination: Path, limit: int) -> None:
    """Unpacks the file of this name from any folder of the archive; never more than `limit`
    bytes."""
    try:
        with zipfile.ZipFile(archive) as zipped:
            names = [n for n in zipped.namelist() if PurePosixPath(n).name == member]
            if len(names) != 1:
                raise zipfile.BadZipFile(f"it holds {len(names)} files called {member}")
            with zipped.open(names[0]) as source:
                content = source.read(limit + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        archive.unlink(missing_ok=True)
        raise DownloadError(f"{archive.name}: not the expected archive ({error})") from error
    if len(content) > limit:
        raise DownloadError(f"{archive.name}: {member} is larger than {limit:,} bytes")
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_bytes(content)


def _find_copy(dataset: Dataset, file: File, source: Path) -> Path | None:
    """Returns the user's copy of a file: in our layout, below a root of data sets, or by its bare
    name."""
    bare = PurePosixPath(file.name).name
    is_unique = [PurePosixPath(other.name).name for other in dataset.files].count(bare) == 1
    if source.is_file():
        named = is_unique and source.name == bare
        return source if named or len(dataset.files) == 1 else None
    places = [file.name, f"{dataset.place}/{file.name}", f"{dataset.name}/{file.name}"]
    if is_unique:
        places.append(bare)
    return next((source / place for place in places if (source / place).is_file()), None)
