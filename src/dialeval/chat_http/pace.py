"""The pace of asking: the rate limit, waits that a server asks for, and back-off after failures."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from dialeval.chat_http.asking import ReplyError

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
        """Waits so many seconds and for a slot; `ReplyError` if the system is closed meanwhile."""
        if seconds > 0.0:
            self._sleep(seconds)
        self._sleep(self.reserve())
        while (held := self._open_at - self._clock()) > 0.0:  # a hold that began meanwhile
            self._sleep(held)

    def hold(self, seconds: float) -> None:
        """Nobody is let through for so many seconds: the server asked everybody to wait."""
        with self._lock:
            self._open_at = max(self._open_at, self._clock() + seconds)

    def close(self) -> None:
        self._closed.set()

    def _sleep(self, seconds: float) -> None:
        if self._closed.is_set() or (seconds > 0.0 and self._closed.wait(seconds)):
            raise ReplyError("stopped")
