"""Files on other machines: any URL that fsspec opens (`s3://`, `gs://`, `https://`, `hdfs://`).

fsspec comes with the extras `models` and `ray`; most protocols need a package of their own (s3fs,
gcsfs, aiohttp), which is named where it is missing. Only files that a user names are opened.

`located` says where something is that a user named: `UrlPath` is a `Path` whose files lie behind a
URL, so that a run is read and written there by the code that reads and writes it on a disk.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from dialeval.errors import UsageError

PACKAGES = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "http": "aiohttp requests",
    "https": "aiohttp requests",
    "abfs": "adlfs",
    "az": "adlfs",
    "sftp": "paramiko",
}
"""What fsspec needs to speak a protocol: its own messages have no line to copy."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(path: str) -> bool:
    """Returns whether a text is a URL: a protocol of two letters or more, because `C://chats` is a
    path on Windows."""
    return bool(_URL.match(path))


def expand(url: str) -> list[str]:
    """Returns the URLs that match a pattern such as `s3://logs/2024-*.parquet`; a plain URL matches
    itself."""
    if not any(mark in url for mark in "*["):
        return [url]
    try:
        files, pattern = _fsspec().core.url_to_fs(url)
        found = sorted(files.unstrip_protocol(path) for path in files.glob(pattern))
    except UsageError:
        raise
    except ImportError as error:
        raise UsageError(f"{url}: {_missing(url, error)}") from error
    except Exception as error:  # every protocol has errors of its own
        raise UsageError(f"{url}: {error}") from error
    if not found:
        raise UsageError(f"{url}: no file fits")
    return found


def open_url(url: str) -> tuple[IO[bytes], int]:
    """Opens the file, and returns it with its size (0 where the server does not tell)."""
    try:
        files, path = _fsspec().core.url_to_fs(url)
        file = files.open(path, "rb")
    except (FileNotFoundError, PermissionError, UsageError):
        raise
    except ImportError as error:
        raise OSError(_missing(url, error)) from error
    except Exception as error:
        raise OSError(str(error) or type(error).__name__) from error
    return cast("IO[bytes]", file), int(getattr(file, "size", None) or 0)


def _missing(url: str, error: ImportError) -> str:
    packages = PACKAGES.get(url.partition("://")[0].lower())
    return f"{error}. Install: pip install {packages}" if packages else str(error)


def _fsspec() -> Any:
    try:
        importlib.import_module("fsspec.core")
        return importlib.import_module("fsspec")
    except ModuleNotFoundError as error:
        raise UsageError("files at a URL need fsspec. Install: pip install fsspec") from error


_COLLAPSED = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")
"""What `pathlib` makes of `s3://bucket`: it joins slashes."""


def located(path: str | os.PathLike[str]) -> Path:
    """Returns the path of something that a user named: a `UrlPath` if it is a URL.

    A URL that was a `Path` on its way has lost a slash (`s3:/logs`), which is put back unless there
    is such a folder.
    """
    if isinstance(path, UrlPath):
        return path
    text = os.fspath(path)
    found = _COLLAPSED.match(text)
    if found is None or (not is_url(text) and os.path.lexists(found[0])):
        return Path(path)
    if found[1].lower() in ("file", "local"):
        return Path("/", text[found.end() :])
    return UrlPath(text)


class UrlPath(type(Path())):  # type: ignore[misc]  # a class that Python chooses by the system
    """A path behind a URL. Folders need not exist there, and writing replaces a file as a whole."""

    __slots__ = ()

    def __str__(self) -> str:
        plain = str(super().__str__())
        return _COLLAPSED.sub(r"\1://", plain, count=1)

    def _place(self) -> tuple[Any, str]:
        with self._naming():
            files, path = _fsspec().core.url_to_fs(str(self))
            return files, str(path)

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Every protocol has errors of its own: they become those of files, with the URL."""
        try:
            yield
        except UsageError:
            raise
        except ImportError as error:
            raise UsageError(f"{self}: {_missing(str(self), error)}") from error
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
            raise type(error)(error.errno or errno.EIO, reason, str(self)) from error
        except Exception as error:
            if isinstance(error, ValueError) and "rotocol not known" in str(error):
                raise UsageError(f"{self}: {error}") from error
            raise OSError(errno.EIO, str(error) or type(error).__name__, str(self)) from error

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        files, path = self._place()
        with self._naming():
            files.invalidate_cache()
            found = files.info(path)
        written = found.get("mtime") or found.get("LastModified") or found.get("created") or 0
        seconds = written.timestamp() if isinstance(written, datetime) else float(written)
        mark = str(found.get("ETag") or found.get("etag") or found.get("md5Hash") or "")
        kind = stat.S_IFDIR if found["type"] == "directory" else stat.S_IFREG
        number = int(hashlib.sha256(mark.encode()).hexdigest()[:15], 16)
        fields = (kind, number, 0, 1, 0, 0, int(found.get("size") or 0), *(3 * [int(seconds)]))
        exact = {f"st_{name}_ns": int(seconds * 1e9) for name in ("atime", "mtime", "ctime")}
        return os.stat_result(fields, exact)

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self.exists() and stat.S_ISREG(self.stat().st_mode)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.exists() and stat.S_ISDIR(self.stat().st_mode)

    def open(self, mode: str = "r", *_: Any, **options: Any) -> IO[Any]:
        files, path = self._place()
        with self._naming():
            return cast("IO[Any]", files.open(path, mode, **options))

    def read_bytes(self) -> bytes:
        with self._naming(), self.open("rb") as file:
            return cast("bytes", file.read())

    def write_bytes(self, data: Any) -> int:
        files, path = self._place()
        with self._naming():
            files.pipe_file(path, bytes(data))
        return len(data)

    def read_text(self, encoding: str | None = None, *_: Any, **__: Any) -> str:
        return self.read_bytes().decode(encoding or "utf-8")

    def take(self, local: Path) -> None:
        """Uploads a file; what was here is replaced as a whole."""
        files, path = self._place()
        with self._naming():
            files.makedirs(files._parent(path), exist_ok=True)
            files.put_file(str(local), path)

    def replace(self, target: str | os.PathLike[str]) -> UrlPath:
        files, path = self._place()
        with self._naming():
            files.mv(path, UrlPath(target)._place()[1], recursive=self.is_dir())
        return UrlPath(target)

    def unlink(self, missing_ok: bool = False) -> None:
        files, path = self._place()
        try:
            with self._naming():
                files.rm_file(path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_tree(self) -> None:
        files, path = self._place()
        with self._naming():
            files.invalidate_cache()
            if files.exists(path):
                files.rm(path, recursive=True)

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        files, path = self._place()
        with self._naming():
            files.makedirs(path, exist_ok=True)

    def iterdir(self) -> Iterator[UrlPath]:
        files, path = self._place()
        with self._naming():
            files.invalidate_cache()
            names = files.ls(path, detail=False)
        inside = (name.rstrip("/").rpartition("/")[2] for name in names)
        return iter([self / name for name in sorted(inside) if name != self.name or len(names) > 1])

    def glob(self, pattern: str, **_: Any) -> Iterator[UrlPath]:
        files, path = self._place()
        with self._naming():
            files.invalidate_cache()
            found = sorted(files.glob(f"{path.rstrip('/')}/{pattern}"))
        return iter([self / name[len(path.rstrip("/")) + 1 :] for name in found])

    def resolve(self, strict: bool = False) -> UrlPath:
        return self

    absolute = expanduser = resolve
