"""Two ways to the same numbers, timed in turns.

A busy machine gives a different time each minute, so a time by itself says little. Ours and theirs
take turns (A, B, A, B, ...) within seconds of each other, and what is reported is their ratio. The
fastest round of each side counts: whatever else runs on the machine can only make a round slower.
Processor time (of all threads) stands beside the clock, because others disturb it less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Work = Callable[[], Any]
"""Does the whole job once and returns its numbers."""


@dataclass(frozen=True)
class Contest:
    """`difference` is the largest one between the results of both sides."""

    name: str
    peer: str
    ours: Work
    theirs: Work
    difference: Callable[[Any, Any], float]


@dataclass(frozen=True)
class Outcome:
    """Seconds of the fastest round of each side, by the clock and of the processor."""

    name: str
    peer: str
    our_seconds: float
    peer_seconds: float
    our_processor: float
    peer_processor: float
    rounds: int
    difference: float

    @property
    def times_faster(self) -> float:
        return self.peer_seconds / self.our_seconds

    @property
    def times_less_processor(self) -> float:
        return self.peer_processor / self.our_processor

    def to_record(self) -> dict[str, Any]:
        return asdict(self) | {
            "times_faster": self.times_faster,
            "times_less_processor": self.times_less_processor,
        }


@dataclass(frozen=True)
class Skipped:
    """A contest that could not take place here."""

    name: str
    peer: str
    reason: str

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def hold(contest: Contest, rounds: int = 3) -> Outcome:
    """Ours, theirs, ours, theirs, ..."""
    ours: list[_Round] = []
    theirs: list[_Round] = []
    for _ in range(rounds):
        ours.append(_timed(contest.ours))
        theirs.append(_timed(contest.theirs))
    return Outcome(
        contest.name,
        contest.peer,
        min(one.seconds for one in ours),
        min(one.seconds for one in theirs),
        min(one.processor for one in ours),
        min(one.processor for one in theirs),
        rounds,
        contest.difference(ours[-1].result, theirs[-1].result),
    )


@dataclass(frozen=True)
class _Round:
    seconds: float
    processor: float
    result: Any


def _timed(work: Work) -> _Round:
    seconds, processor = time.perf_counter(), time.process_time()
    result = work()
    return _Round(time.perf_counter() - seconds, max(time.process_time() - processor, 1e-9), result)


def largest_difference(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Of two results that are lists of numbers, or of rows of numbers, of the same shape."""
    import numpy as np

    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape:
        raise ValueError(f"results of different shapes: {one.shape} and {other.shape}")
    return float(np.abs(one - other).max(initial=0.0))
