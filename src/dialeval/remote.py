"""Files on other machines: any URL that fsspec opens (`s3://`, `gs://`, `https://`, `hdfs://`).

fsspec comes with the extras `models` and `ray`; most protocols need a package of their own (s3fs,
gcsfs, aiohttp), which is named where it is missing. Only files that a user names are opened.
"""

from __future__ import annotations

import importlib
import re
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
