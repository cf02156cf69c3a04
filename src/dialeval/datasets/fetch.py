"""`get`: brings a data set here, from its public source or from a copy that somebody has.

Files are gathered in a hidden folder beside the data sets and moved to their place when all of them
are there: what was interrupted is never taken for a data set, and is gone on with the next time.
A fetched file whose sha256 is not the one listed is thrown away, unless the caller accepts changed
files: the authors may have corrected theirs, but then no published number can be expected.

A download is resumed where it stopped, and is never larger than it may be. What arrived lies in
`NAME.part`, with the server's mark of that version (its ETag, or else the date of the last change)
in `NAME.mark`. The next attempt asks for the rest of that very version (`Range` with `If-Range`); a
server that has another version, or knows no ranges, sends the whole file, and it is written again.
Redirects of an https address never leave https.
"""

from __future__ import annotations

import errno
import http.client
import os
import shutil
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import IO, Any, NoReturn
from urllib.parse import urldefrag, urlsplit

from filelock import FileLock, Timeout

from dialeval.datasets.entries import Dataset, File, Part
from dialeval.datasets.locate import find_folder
from dialeval.errors import JobError, UsageError
from dialeval.progress import FetchProgress, Step, silent_fetch
from dialeval.storage import data_directory, sha256_of
from dialeval.version import __version__

ATTEMPTS = 4
"""How often a connection may break before we give up; what arrived is kept."""

PAUSE = 1.0
"""Seconds before the second attempt; twice as long before each further one."""

TIMEOUT = 30.0
_BLOCK = 1 << 16
_MANY_REDIRECTS = 5

Report = Callable[[int], None]
"""Hears how many bytes have arrived."""


class DownloadError(JobError):
    """A file could not be had. The text ends without advice, which the caller adds."""


class _BrokenError(Exception):
    """The connection ended too early: worth another attempt."""


def download(
    url: str,
    destination: Path,
    *,
    limit: int,
    report: Report = lambda done: None,
    attempts: int = ATTEMPTS,
    pause: float = PAUSE,
    timeout: float = TIMEOUT,
) -> None:
    """Writes what lies at `url` to `destination`, at most `limit` bytes.

    `destination` appears when the file is whole. After a failure `NAME.part` remains, for the next
    call to go on from, unless it is of no use.
    """
    part, mark = _sibling(destination, ".part"), _sibling(destination, ".mark")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, attempts + 1):
            try:
                _fetch(url, part, mark, limit, report, timeout)
                break
            except _BrokenError as error:
                if attempt == attempts:
                    have = part.stat().st_size if part.exists() else 0
                    raise DownloadError(
                        f"{url}: {error}, {attempts} times. {have:,} bytes are kept: repeat"
                        " the command to resume"
                    ) from error
                time.sleep(pause * 2 ** (attempt - 1))
        mark.unlink(missing_ok=True)
        part.replace(destination)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror or str(error)
        raise DownloadError(f"{destination}: cannot be written: {reason}") from error


def _sibling(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _fetch(url: str, part: Path, mark: Path, limit: int, report: Report, timeout: float) -> None:
    version = mark.read_text("ascii") if mark.exists() and part.exists() else ""
    have = part.stat().st_size if version else 0
    response = _open(url, have, version, timeout)
    with response:
        resumed = response.status == 206
        if resumed and _range_start(response.headers) != have:
            mark.unlink(missing_ok=True)
            raise _BrokenError("the server sent another part of the file than was asked for")
        if response.status == 416:
            mark.unlink(missing_ok=True)
            raise _BrokenError("the server has no rest of this file")
        have = have if resumed else 0
        length = response.headers.get("Content-Length")
        whole = have + int(length) if length and length.isdigit() else None
        _refuse_larger(url, whole or 0, limit, part, mark)
        if not resumed:
            _remember(mark, response.headers)
        with part.open("ab" if resumed else "wb") as sink:
            report(have)
            while block := _read(response):
                have += len(block)
                _refuse_larger(url, have, limit, part, mark)
                sink.write(block)
                report(have)
            sink.flush()
            os.fsync(sink.fileno())
    if whole is not None and have < whole:
        raise _BrokenError(f"the connection broke after {have:,} of {whole:,} bytes")


def _open(url: str, have: int, version: str, timeout: float) -> Any:
    headers = {"User-Agent": f"dialeval/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": version}
    request = urllib.request.Request(url, headers=headers)
    opener = urllib.request.build_opener(_CarefulRedirects)
    try:
        return opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            return error
        error.close()
        if error.code >= 500 or error.code == 429:
            raise _BrokenError(f"the server answers {error.code} {error.reason}") from error
        gone = " (it is no longer there)" if error.code in (404, 410) else ""
        raise DownloadError(
            f"{url}: the server answers {error.code} {error.reason}{gone}"
        ) from error
    except urllib.error.URLError as error:
        reason = getattr(error.reason, "strerror", None) or error.reason
        raise DownloadError(f"{url}: no connection ({reason})") from error
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(f"no answer ({str(error) or type(error).__name__})") from error


def _read(response: IO[bytes]) -> bytes:
    try:
        return response.read(_BLOCK)
    except (OSError, http.client.HTTPException) as error:
        reason = str(error) or type(error).__name__
        raise _BrokenError(f"the connection broke ({reason})") from error


def _range_start(headers: Message) -> int | None:
    """`bytes 100-199/200` -> 100."""
    unit, _, range_ = headers.get("Content-Range", "").partition(" ")
    start = range_.partition("-")[0]
    return int(start) if unit == "bytes" and start.isdigit() else None


def _remember(mark: Path, headers: Message) -> None:
    """Remembers the version of a file. A weak ETag names files that are alike, not the same bytes,
    so a download cannot be resumed by it."""
    tag = headers.get("ETag", "")
    version = headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
    if version.isascii():
        mark.write_text(version, "ascii")


def _refuse_larger(url: str, size: int, limit: int, part: Path, mark: Path) -> None:
    if size > limit:
        part.unlink(missing_ok=True)
        mark.unlink(missing_ok=True)
        raise DownloadError(f"{url}: larger than the {limit:,} bytes that are expected at most")


class _CarefulRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a few redirects, and none from https to http."""

    max_redirections = _MANY_REDIRECTS

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        allowed = ("https",) if urlsplit(req.full_url).scheme == "https" else ("https", "http")
        if urlsplit(newurl).scheme not in allowed:
            _refuse_redirect(req.full_url, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _refuse_redirect(old: str, new: str) -> NoReturn:
    raise DownloadError(f"{old}: redirects to {new}, which is not https: refused")


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
