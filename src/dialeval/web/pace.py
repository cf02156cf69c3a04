"""How much one client may ask for, and how often."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one client may ask for: at most `burst` requests at once, then `per_second`."""

    body: int = 256 * 1024
    burst: int = 300
    per_second: float = 60.0
    clients: int = 4096
    """Clients that are remembered; the one that was quiet for longest is forgotten first."""
    connections: int = 64
    """Of one client. A browser opens six."""
    connections_in_all: int = 200
    header_seconds: float = 10.0
    """From the connection, or the last answer, to the end of the headers."""
    body_seconds: float = 30.0
    answer_seconds: float = 60.0
    """For taking an answer that is more than the network holds."""


class Pace:
    """A bucket of requests per client that fills up with time."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, client: str) -> bool:
        now = self._clock()
        left, last = self._buckets.pop(client, (float(self._limits.burst), now))
        left = min(self._limits.burst, left + (now - last) * self._limits.per_second)
        self._buckets[client] = (max(0.0, left - 1), now)
        if len(self._buckets) > self._limits.clients:
            self._buckets.popitem(last=False)
        return left >= 1
