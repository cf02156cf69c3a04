"""How to ask somebody who may be slow, busy or gone; what no reply means; and one HTTP POST.

`post` is http.client, made safe to wait for. A time-out of a socket restarts with every byte, so a
server that drips could hold a question for ever. Here every read gets what is left of the whole
time, and the answer has a largest size. Redirects are followed within the same scheme, host and
port only: headers may hold a key that another host must not see. Proxies of the environment are not
used.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from dialeval.limits import USUAL

LARGEST_REPLY = 1 << 20
"""Bytes of a reply, or of what it is wrapped in. Nobody says a megabyte in a chat."""


class ReplyError(Exception):
    """A question got no usable reply.

    reason   a few words that are the same for the same trouble: failures are counted by it
    detail   what this one looked like
    passing  the same question may be answered at the next attempt
    down     it was not the question: any other would have failed, too
    advice   what to change before anything will be answered, such as the API key
    """

    def __init__(
        self,
        reason: str,
        detail: str = "",
        *,
        passing: bool = False,
        down: bool = False,
        advice: str = "",
    ) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
        self.passing = passing
        self.down = down
        self.advice = advice


class CutReply(str):
    """A reply that the system itself calls unfinished: it met a limit of tokens."""


@dataclass(frozen=True)
class Asking:
    """How to ask. None of it changes what a system would say, so a resumed probe may change it.

    concurrency  questions under way at once; None: what suits the kind of system
    timeout      seconds until an attempt is given up
    retries      further attempts after a failure that may pass; None: what suits the system
    rate         requests a minute at most; None: no limit
    key_env      the environment variable with the API key; None: the usual one, if it is set
    seed         of the jitter of the waits between attempts
    largest_record  of a file of recorded answers, in million characters
    """

    concurrency: int | None = None
    timeout: float = 60.0
    retries: int | None = None
    rate: float | None = None
    key_env: str | None = None
    seed: int = 0
    largest_record: int = USUAL


MOST_REDIRECTS = 3
BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server sent back."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


def post(url: str, body: bytes, headers: Mapping[str, str], timeout: float) -> Answer:
    """Returns the answer of the server, whatever its status; `ReplyError` where there is none."""
    deadline = time.monotonic() + timeout
    try:
        for _ in range(MOST_REDIRECTS + 1):
            answer = _post_once(urlsplit(url), body, headers, deadline)
            if answer.status not in (307, 308):
                return answer
            url = _same_place(url, answer.headers.get("location", ""))
    except TimeoutError as error:
        raise ReplyError("no reply in time", f"waited {timeout:g} s", passing=True) from error
    except (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected) as error:
        raise ReplyError("connection closed by the server", passing=True) from error
    except ssl.SSLError as error:
        raise ReplyError("no secure connection", str(error.reason or error), down=True) from error
    except OSError as error:
        reason = str(error.strerror or error)
        raise ReplyError("cannot connect", reason, passing=True, down=True) from error
    except http.client.IncompleteRead as error:
        raise ReplyError("answer cut off", passing=True) from error
    except (http.client.HTTPException, ValueError) as error:
        raise ReplyError("not an HTTP answer", type(error).__name__, passing=True) from error
    raise ReplyError("redirected too often", down=True)


def _post_once(
    url: SplitResult, body: bytes, headers: Mapping[str, str], deadline: float
) -> Answer:
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection: Any = kind(url.hostname or "", url.port, timeout=_left(deadline))
    connection.response_class = lambda sock, *a, **k: http.client.HTTPResponse(
        _DeadlineSocket(sock, deadline),  # type: ignore[arg-type]
        *a,
        **k,
    )
    try:
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.request("POST", target, body, dict(headers))
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, _bounded(response))
    finally:
        connection.close()


def _bounded(response: http.client.HTTPResponse) -> bytes:
    """Returns the body, read piece by piece so that no more of it than allowed is ever held."""
    pieces, size = [], 0
    while piece := response.read(BLOCK):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST_REPLY:
            raise ReplyError("reply too long", f"more than {LARGEST_REPLY:,} bytes")
    if response.length:  # `read` with a size does not say that bytes are missing
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(pieces)


def _same_place(url: str, location: str) -> str:
    """Returns where to continue, at the same server. Another one is refused and not even named: an
    address that a server makes up may spell the key that it was sent."""
    here, there = urlsplit(url), urlsplit(location.strip())
    scheme = there.scheme or here.scheme
    if not location.strip() or (scheme, there.netloc or here.netloc) != (here.scheme, here.netloc):
        to = "nowhere" if not location.strip() else "another host or port"
        if there.netloc == here.netloc:
            to = "another scheme of the same host"
        raise ReplyError(
            "redirected elsewhere",
            f"to {to}: if you trust it, give that address",
            down=True,
        )
    return urljoin(url, location)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0.0:
        raise TimeoutError
    return left


class _DeadlineSocket:
    """What `HTTPResponse` needs of a socket: a file to read from, here with a deadline."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_DeadlineReader(self._sock, self._deadline))


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket, and gives each read what is left of the whole time."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)  # keeps the socket open until it is read
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(_left(self._deadline))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
