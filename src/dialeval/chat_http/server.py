"""A server with OpenAI's chat completions: one model of it, asked with patience.

vLLM, Ollama, llama.cpp and most hosted models speak it. `Pace` keeps the rate limit. Failures that
may pass are tried again, after a wait that doubles or as long as the server asks for; a wait that
the server asks for holds all questions, not only the one that was refused. A connection that cannot
be made is not tried again while nothing has answered yet: the server is not running.

The API key comes from an environment variable and goes into one request header. It is never stored
or shown: where a server repeats it, in an error or in a reply and in large or small letters, it is
blotted out.
"""

from __future__ import annotations

import ipaddress
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from dialeval.chat_http.asking import Answer, Asking, CutReply, ReplyError, post
from dialeval.errors import UsageError
from dialeval.text import clean
from dialeval.version import __version__

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
    """The API key, or nothing.

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
