"""A server with OpenAI's chat completions: one model of it, asked with patience.

vLLM, Ollama, llama.cpp and most hosted models speak it. `Pace` keeps the rate limit. Failures that
may pass are tried again, after a wait that doubles or as long as the server asks for; a wait that
the server asks for holds all questions, not only the one that was refused. A connection that cannot
be made is not tried again while nothing has answered yet: the server is not running.

The API key comes from an environment variable and goes into one request header. It is never stored
or shown: where a server repeats it, in an error or in a reply and in large or small letters, it is
blotted out.

`Asking` says how to ask somebody who may be slow, busy or gone, and `ReplyError` what no reply
means. `post` is http.client, made safe to wait for. A time-out of a socket restarts with every
byte, so a server that drips could hold a question for ever. Here every read gets what is left of
the whole time, and the answer has a largest size. Redirects are followed within the same scheme,
host and port only: headers may hold a key that another host must not see. Proxies of the
environment are not used.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import json
import os
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import SplitResult, urljoin, urlsplit

from dialeval.errors import UsageError
from dialeval.limits import USUAL
from dialeval.text import clean
from dialeval.version import __version__

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


FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds of back-off: doubled after each failure, up to the longest."""

LONGEST_HOLD = 120.0
"""A server that asks for more patience than this gets none: the question fails."""


def back_off(attempt: int, generator: random.Random) -> float:
    """Seconds to wait after attempt 0, 1, 2, ...: exponential, between half and the whole of it.

    The jitter keeps questions that failed together from coming back together.
    """
    return float(min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * generator.uniform(0.5, 1.0))


def retry_after(header: str | None, now: datetime | None = None) -> float:
    """Seconds that a `Retry-After` header asks for: a number or a date (RFC 9110, 10.2.3)."""
    text = (header or "").strip()
    try:
        return max(0.0, float(text)) if text[:1].isdecimal() else _until(text, now)
    except (ValueError, OverflowError):
        return 0.0


def _until(date: str, now: datetime | None) -> float:
    if not date:
        return 0.0
    moment = parsedate_to_datetime(date)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


class Pace:
    """Lets callers through one after the other: at most `rate` a minute, none during a hold."""

    def __init__(
        self, rate: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gap = 60.0 / rate if rate else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._next = 0.0
        """The next free slot of the rate limit."""
        self._open_at = 0.0
        """When the last hold ends."""

    def reserve(self) -> float:
        """Takes the next slot and returns how many seconds it is away."""
        with self._lock:
            now = self._clock()
            slot = max(now, self._next, self._open_at)
            self._next = slot + self._gap
            return slot - now

    def wait(self, seconds: float = 0.0) -> None:
        """Waits this long, then for a slot; `ReplyError` if the system is closed meanwhile."""
        if seconds > 0.0:
            self._sleep(seconds)
        self._sleep(self.reserve())
        while (held := self._open_at - self._clock()) > 0.0:  # a hold that began meanwhile
            self._sleep(held)

    def hold(self, seconds: float) -> None:
        """Lets nobody through for this many seconds: the server asked everybody to wait."""
        with self._lock:
            self._open_at = max(self._open_at, self._clock() + seconds)

    def close(self) -> None:
        self._closed.set()

    def _sleep(self, seconds: float) -> None:
        if self._closed.is_set() or (seconds > 0.0 and self._closed.wait(seconds)):
            raise ReplyError("stopped")


Found = TypeVar("Found")

USUAL_KEY = "OPENAI_API_KEY"
PASSING = {408, 409, 425, 429, 500, 502, 503, 504, 529}
"""Statuses after which the same request may succeed: overload, a restart, a time-out behind."""
DOWN = {401, 403, 404, 405, 410}
"""Statuses that speak of the address or the key, not of the question."""
KEY_REFUSED = {401, 403}
NOT_FOUND = {404, 405, 410}
RETRIES = 3
QUOTED = 80
"""Characters of a web page that are shown, where a reply was expected."""
SAID = 400
"""Characters of an error that are kept."""


class ChatServer:
    """One model of one server, at an address `URL#MODEL`; safe to ask from several threads."""

    def __init__(self, address: str, asking: Asking) -> None:
        base, _, self.name = address.partition("#")
        _check_url(base, self.name)
        self.base = base
        self._url = base.rstrip("/") + "/chat/completions"
        self._asking = asking
        self._pace = Pace(asking.rate)
        self._key = find_key(base, asking.key_env)
        self._retries = RETRIES if asking.retries is None else asking.retries
        self._met = False
        """Has anything answered at this address?"""

    def ask(self, request: Mapping[str, object], read: Callable[[bytes], Found]) -> Found:
        """What `read` finds in the answer to a request; `ReplyError` after the last attempt. `read`
        may raise one, too."""
        body = json.dumps({"model": self.name, **request}).encode("ascii")
        jitter = random.Random(f"{self._asking.seed} {body.hex()}")
        wait = 0.0
        for attempt in range(self._retries + 1):
            self._pace.wait(wait)
            try:
                return read(self._ask(body))
            except ReplyError as error:
                if error.down and error.passing and not self._met:
                    error.advice = f"Is the server running at {self.base}?"
                    raise self._without_key(error) from None
                if not error.passing or attempt == self._retries:
                    raise self._without_key(error) from None
                wait = back_off(attempt, jitter)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        self._pace.close()

    def _ask(self, body: bytes) -> bytes:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Connection": "close",
            "User-Agent": f"dialeval/{__version__}",
        }
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        answer = post(self._url, body, headers, self._asking.timeout)
        self._met = True
        if answer.status != 200:
            self._refused(answer)
        if is_web_page(answer.body):
            raise ReplyError(
                "not a chat completion",
                self._start_of_page(answer.body),
                down=True,
                advice=self._about_the_path(),
            )
        return answer.body

    def _refused(self, answer: Answer) -> None:
        page = is_web_page(answer.body)
        status = answer.status
        said = self._start_of_page(answer.body) if page else self._said(answer.body)
        seconds = retry_after(answer.headers.get("retry-after")) if status in PASSING else 0.0
        if seconds > LONGEST_HOLD:
            raise ReplyError(f"HTTP {status}", f"asks to wait {seconds:.0f} s", down=True)
        self._pace.hold(seconds)
        advice = self._about_the_path() if status in NOT_FOUND else ""
        raise ReplyError(
            f"HTTP {status}",
            said.strip(),
            passing=status in PASSING,
            down=status in DOWN,
            advice=self._about_the_key() if status in KEY_REFUSED else advice,
        )

    def _start_of_page(self, body: bytes) -> str:
        text = " ".join(self.blotted(body.decode("utf-8", "replace")).split())
        return f"a web page that begins with {clean(text)[:QUOTED]}"

    def _said(self, body: bytes) -> str:
        """The first words of an error, for people. The key goes before the text is cut: half of one
        would not be found."""
        return self.blotted(" ".join(message_of(body).split()))[:SAID]

    def _about_the_path(self) -> str:
        return (
            f"Check the address {self.base} and the model {self.name}: the path of most servers is"
            " /v1, as in openai:http://localhost:8000/v1#my-bot."
        )

    def _about_the_key(self) -> str:
        if self._key:
            name = self._asking.key_env or USUAL_KEY
            return f"Check the API key in {name}, or name the variable that holds it: --key-env."
        return f"No API key was sent: put it into {USUAL_KEY}, or name a variable: --key-env."

    def blotted(self, text: str) -> str:
        if not self._key:
            return text
        blotted = re.sub(re.escape(self._key), "[API key]", text, flags=re.IGNORECASE)
        return CutReply(blotted) if isinstance(text, CutReply) else blotted

    def _without_key(self, error: ReplyError) -> ReplyError:
        detail = self.blotted(error.detail)
        return ReplyError(
            error.reason, detail, passing=error.passing, down=error.down, advice=error.advice
        )


def is_web_page(body: bytes) -> bool:
    return body.lstrip()[:1] == b"<"


def message_of(body: bytes) -> str:
    """What an error says, in any of the usual forms."""
    try:
        record: Any = json.loads(body)
        found = record.get("error", record) if isinstance(record, dict) else record
        text = found.get("message", found) if isinstance(found, dict) else found
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace")
    return str(text)


def find_key(url: str, key_env: str | None) -> str:
    """Returns the API key, or nothing.

    The usual key is not sent over an open network: a key that travels unencrypted to another
    machine has to be named.
    """
    if key_env:
        if not os.environ.get(key_env, "").strip():
            raise UsageError(f"--key-env {key_env}: there is no such environment variable")
        return os.environ[key_env].strip()
    parts = urlsplit(url)
    if parts.scheme == "https" or _is_this_machine(parts.hostname or ""):
        return os.environ.get(USUAL_KEY, "").strip()
    return ""


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _check_url(base: str, model: str) -> None:
    if "@" in base or "?" in base:  # before anything that would repeat the address in a message
        raise UsageError(
            "openai: the address is stored with the probe, so it may hold no password and no"
            " query (?...). Put the key into an environment variable: --key-env NAME"
        )
    example = "such as openai:http://localhost:8000/v1#my-bot"
    try:
        parts = urlsplit(base)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"openai:{base}: {error}; expected a URL, {example}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise UsageError(f"openai:{base}: expected a URL, {example}")
    if not model:
        raise UsageError(f"openai:{base}: name the model after a #, {example}")
