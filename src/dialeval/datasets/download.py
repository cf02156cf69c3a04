"""One file over HTTP: resumed where it stopped, never larger than it may be.

What arrived lies in `NAME.part`, with the server's mark of that version (its ETag, or else the date
of the last change) in `NAME.mark`. The next attempt asks for the rest of that very version
(`Range` with `If-Range`); a server that has another version, or knows no ranges, sends the whole
file, and it is written again. Redirects of an https address never leave https.
"""

from __future__ import annotations

import errno
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import IO, Any, NoReturn
from urllib.parse import urlsplit

from dialeval.errors import JobError
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
