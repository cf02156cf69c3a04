"""Files that appear whole or not at all, Parquet with checksums, and the shape of samples in it.

A file is written beside its destination, flushed to the disk and then renamed over it: a reader
sees the old file or the new one, never half of one, whatever moment the process dies in. What goes
wrong while a file is read or written names the file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import JobError, UsageError
from dialeval.remote import UrlPath
from dialeval.sample import Rating, Sample, Turn, Variant

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# The directories in which dialeval keeps what it fetched or computed once.


def cache_directory() -> Path:
    """`$DIALEVAL_CACHE`, else `dialeval/` in the user's cache directory."""
    if own := os.environ.get("DIALEVAL_CACHE"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dialeval"


def models_directory() -> Path:
    """`$DIALEVAL_MODELS`, else `models/` in the cache: one directory per fetched model."""
    if own := os.environ.get("DIALEVAL_MODELS"):
        return Path(own).expanduser()
    return cache_directory() / "models"


def data_directory() -> Path:
    """`$DIALEVAL_DATA`, else `dialeval/datasets/` in the user's data directory.

    Not the cache: a data set that was put here by hand must survive whoever empties caches.
    """
    if own := os.environ.get("DIALEVAL_DATA"):
        return Path(own).expanduser()
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "dialeval" / "datasets"


PARQUET: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
"""The options that every Parquet file is written with."""

SCORE_AGAIN = "Take a good copy, or score again with --overwrite: cached answers are kept."

WRITE_FAILURES = ("No space left on device", "Disk quota exceeded", "File too large")
"""pyarrow reports these failures in a paragraph."""


def read_lines(path: Path) -> list[str]:
    """Cut at line ends only: a text may hold U+2028 and the like, at which `splitlines` cuts."""
    with path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


@contextmanager
def atomic_path(destination: Path) -> Iterator[Path]:
    """Yields a temporary path to write to; it becomes `destination` if the block ends well.

    A link stays a link, and what it points to is replaced. What is no file (a pipe, a terminal,
    /dev/null) is not replaced but written to. A file behind a URL is written here, then uploaded.
    """
    if isinstance(destination, UrlPath):
        with tempfile.TemporaryDirectory(prefix="dialeval-") as here:
            yield Path(here) / destination.name
            destination.take(Path(here) / destination.name)
        return
    if destination.is_dir():
        raise UsageError(f"{destination} is a directory; name a file in it, or another one")
    if destination.exists() and not destination.is_file():
        with tempfile.TemporaryDirectory() as elsewhere:
            yield Path(elsewhere) / destination.name
            whole = (Path(elsewhere) / destination.name).read_bytes()
        with naming(destination):
            destination.write_bytes(whole)
        return
    destination = Path(os.path.realpath(destination))
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{destination.parent} is no directory: no file can be in it") from error
    try:
        handle, name = tempfile.mkstemp(prefix=f".{destination.name}.", dir=destination.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(destination)) from error
    os.close(handle)
    temporary = Path(name)
    try:
        with naming(destination, temporary):
            yield temporary
            _set_usual_permissions(temporary)
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(destination)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def naming(destination: Path, temporary: Path | None = None) -> Iterator[None]:
    """Adds the name of the destination to the error of a full disk, which does not name the
    file."""
    try:
        yield
    except OSError as error:
        if error.filename not in (None, str(destination), temporary and str(temporary)):
            raise
        reason = next((what for what in WRITE_FAILURES if what in str(error)), "")
        reason = reason or error.strerror or str(error)
        raise OSError(error.errno or errno.EIO, reason, str(destination)) from error


@contextmanager
def open_parquet(path: Path, **options: Any) -> Iterator[pq.ParquetFile]:
    """Opens a Parquet file whose pages are compared with their checksums, where they have some.

    What is wrong with it is told with its name: of a damaged file, the libraries say no more than
    "ZSTD decompression failed".
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with (
            nullcontext(path) if not isinstance(path, UrlPath) else path.open("rb") as opened,
            pq.ParquetFile(opened, page_checksum_verification=True, **options) as file,
        ):
            yield file
    except (FileNotFoundError, PermissionError) as error:
        raise UsageError(f"{path}: cannot be read: {os.strerror(error.errno or 0)}") from error
    except (pa.ArrowException, OSError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(f"{path} is damaged: {reason}. {SCORE_AGAIN}") from error


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Makes the directory and holds it: a second process gets a clear message, not a mess.

    Nothing can be held behind a URL. Two processes that write the same run there write the same
    files, since files of a run are named by their content, and the manifest comes last.
    """
    from filelock import FileLock, Timeout

    if isinstance(directory, UrlPath):
        yield
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        # a file in the way is a slip of the pen; a full disk or a lack of rights is not
        slip = isinstance(error, FileExistsError | NotADirectoryError)
        raise (UsageError if slip else JobError)(
            f"cannot create {directory}: {error.strerror}. Choose another -o."
        ) from error
    lock = FileLock(directory / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise JobError(
            f"another process is writing {directory}. Wait for it, or choose another -o."
        ) from None
    try:
        yield
    finally:
        lock.release()


def _set_usual_permissions(path: Path) -> None:
    """mkstemp makes files private; give them what `open` would have given."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def remove_tree(directory: Path) -> None:
    """Removes a directory, if it is there, with everything in it."""
    if isinstance(directory, UrlPath):
        directory.remove_tree()
    else:
        shutil.rmtree(directory, ignore_errors=True)


def write_text(destination: Path, text: str) -> None:
    with atomic_path(destination) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(destination: Path, value: Any) -> None:
    """Writes JSON, and refuses NaN and infinity, which are not JSON numbers and which other readers
    could not read."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    write_text(destination, text + "\n")


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def file_stamp(path: Path) -> list[int]:
    """Returns what changes when somebody writes to a file. It is cheap to look at, and not quite
    proof."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def record_digest(record: Mapping[str, Any]) -> str:
    """sha256 of a JSON record, however it is laid out in its file."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@cache
def sample_schema() -> pa.Schema:
    """Returns the columns of a Parquet file of samples: `data convert` writes it, every run holds
    one."""
    import pyarrow as pa

    text = pa.string()
    rating = pa.struct(
        {
            "values": pa.list_(pa.float64()),
            "scale": pa.list_(pa.float64()),
            "raters": pa.list_(text),
            "comments": pa.list_(text),
        }
    )
    return pa.schema(
        {
            "id": text,
            "dialogue": text,
            "item": text,
            "system": text,
            "context": pa.list_(pa.struct({"speaker": text, "text": text})),
            "response": text,
            "references": pa.list_(text),
            "facts": pa.list_(text),
            "variants": pa.list_(pa.struct({"query": text, "response": text})),
            "ratings": pa.map_(text, rating),
        }
    )


def samples_to_table(samples: Sequence[Sample]) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, list[Any]] = {
        name: [getattr(sample, name) for sample in samples]
        for name in ("id", "dialogue", "item", "system", "response", "references", "facts")
    }
    columns["context"] = [
        [{"speaker": turn.speaker, "text": turn.text} for turn in sample.context]
        for sample in samples
    ]
    columns["variants"] = [
        [{"query": variant.query, "response": variant.response} for variant in sample.variants]
        for sample in samples
    ]
    columns["ratings"] = [
        [(quality, _rating_row(rating)) for quality, rating in sample.ratings.items()]
        for sample in samples
    ]
    schema = sample_schema()
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


def table_to_samples(table: pa.Table | pa.RecordBatch) -> Iterator[Sample]:
    """Reads what `samples_to_table` wrote, for tables that dialeval wrote."""
    for row in table.to_pylist():
        yield Sample(
            id=row["id"],
            context=tuple(Turn(turn["text"], turn["speaker"]) for turn in row["context"]),
            response=row["response"],
            references=tuple(row["references"]),
            facts=tuple(row["facts"]),
            system=row["system"],
            dialogue=row["dialogue"],
            item=row["item"],
            ratings=ratings_of_row(row["ratings"]),
            variants=tuple(Variant(v["query"], v["response"]) for v in row["variants"]),
        )


def _rating_row(rating: Rating) -> dict[str, Any]:
    return {
        "values": rating.values,
        "scale": rating.scale,
        "raters": rating.raters,
        "comments": rating.comments,
    }


def ratings_of_row(pairs: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Rating]:
    """Reads the column `ratings`, a map, which Arrow gives as pairs."""
    return {
        quality: Rating(
            tuple(row["values"]),
            tuple(row["scale"]) if row["scale"] else None,
            tuple(row["raters"]),
            tuple(row.get("comments") or ()),
        )
        for quality, row in pairs
    }
