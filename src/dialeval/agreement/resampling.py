"""Resampling in blocks of bounded memory, and p = (c + 1) / (k + 1) of tests that do it.

All rounds read one stream of uniform numbers, n to a round, in order. A worker that begins with
round r moves the generator r n numbers ahead (PCG64 can jump), so the result does not depend on
how many workers there are nor on how many rounds they hold in memory at a time. The seed of the
stream is drawn from the caller's generator: the next test with the same generator is a new draw.

p counts c of k rounds at least as extreme as the data. The +1 counts the data as they are, without
which a test could report p = 0 and would reject too often (Davison and Hinkley 1997, 4.2; Phipson
and Smyth 2010).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np

from dialeval.agreement.ranks import Floats

Alternative = Literal["two-sided", "greater"]
"""`greater`: the first is better than the second. Name it before looking at the data."""


Progress: TypeAlias = Callable[[int, int], None]
"""Told the rounds that are done and the rounds in all."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Resampling:
    """How to resample. Only `rng` and `rounds` can move the result."""

    rng: np.random.Generator
    rounds: int = 9999
    block: int = 1 << 17
    """Numbers that a worker holds at a time (a round of more items is a block of its own)."""
    workers: int = 1
    progress: Progress | None = None


def in_blocks(work: Callable[[Floats], Result], n: int, resampling: Resampling) -> list[Result]:
    """`work` gets blocks of rounds, as rows of n uniform numbers in [0, 1); results in order."""
    seed = [int(part) for part in resampling.rng.integers(0, 1 << 32, size=4)]
    rounds, rows = resampling.rounds, max(1, resampling.block // n)

    def one_block(start: int) -> Result:
        stream = np.random.PCG64(np.random.SeedSequence(seed))
        height = min(rows, rounds - start)
        return work(np.random.Generator(stream.advance(start * n)).random((height, n)))

    found: list[Result] = []
    with ThreadPoolExecutor(resampling.workers) as pool:
        for result in pool.map(one_block, range(0, rounds, rows)):
            found.append(result)
            if resampling.progress:
                resampling.progress(min(rounds, len(found) * rows), rounds)
    return found


def resample(statistic: Callable[[Floats], Floats], n: int, resampling: Resampling) -> Floats:
    """One value per round; `statistic` maps rows of n uniform numbers in [0, 1) to a value each."""
    return np.concatenate(in_blocks(statistic, n, resampling))


def p_value(null: Floats, observed: float, size: float, alternative: Alternative) -> float:
    """The share of rounds at least as extreme as what was observed, itself among them.

    Ratings are often whole numbers and ties with the observed value common. `size` is the order of
    magnitude of what was added up: differences that are rounding at that size count as ties.
    """
    if np.isnan(observed):
        raise ValueError("nothing is extreme where nothing was observed")
    if alternative == "two-sided":
        null, observed = np.abs(null), abs(observed)
    extreme = int((null >= observed - 1e-12 * size).sum())
    return (extreme + 1) / (len(null) + 1)
