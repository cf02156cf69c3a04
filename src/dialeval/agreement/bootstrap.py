"""Bootstrap: what a correlation could have been, had other items been drawn.

A round draws n of the n items with replacement. All that a correlation needs to know is how often
each item was drawn, so a round is a row of counts, and a block of rounds a matrix.

Each round has its own generator, a child of one seed by its number. The result is therefore the
same, to the last bit, for any size of a block and any number of workers.

The interval is symmetric on Fisher's scale, with the standard deviation s of the rounds there:

    tanh(atanh(value) -+ t s),    t = quantile of Student's t with n - 2 degrees of freedom

Chosen from five (percentile, bias-corrected, both widened for small samples, and this; BCa was not
tried) by 400 simulations for each of normal scores, grades and means of three raters, rho = 0, .5,
.9, n = 50, 200. They differ most for Pearson's r at n = 50: percentile .90-.94, this one .93-.95.
Measured again with other seeds, 1000 simulations each, n = 50 and 400: .935-.967 for normal scores
and .939-.960 for grades (rho = .9 only with n = 50). Log-normal scores at rho = .5 have
.926 for Pearson's r at both n: skewed scores make its interval too short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dialeval.agreement.ranks import Counts, Floats
from dialeval.agreement.student import student_quantile

Statistic: TypeAlias = Callable[[Counts], Floats]
"""One number for each row of counts, NaN where it is not defined."""
Progress: TypeAlias = Callable[[int, int], None]
"""Told the rounds that are done and the rounds in all."""


@dataclass(frozen=True)
class Bootstrap:
    """How to resample. Only `rng`, `rounds` and `level` can move the result."""

    rng: np.random.Generator
    rounds: int = 1000
    level: float = 0.95
    block: int = 1 << 17
    """Counts that a worker holds at a time; a round of more items is a block of its own."""
    workers: int = 1
    progress: Progress | None = None


@dataclass(frozen=True)
class Interval:
    """Both None where the rounds say nothing: perfect agreement, or hardly a round is defined."""

    low: float | None
    high: float | None


def resample(statistics: Sequence[Statistic], n: int, bootstrap: Bootstrap) -> list[Floats]:
    """The values of each statistic over the rounds. All statistics see the same draws."""
    seed = [int(part) for part in bootstrap.rng.integers(0, 1 << 32, size=4)]
    rows = max(1, bootstrap.block // n)
    blocks = [
        range(start, min(start + rows, bootstrap.rounds))
        for start in range(0, bootstrap.rounds, rows)
    ]

    def values(block: range) -> list[Floats]:
        counts = np.stack([_draw(seed, number, n) for number in block])
        return [statistic(counts) for statistic in statistics]

    found: list[list[Floats]] = []
    with ThreadPoolExecutor(bootstrap.workers) as pool:
        for block, result in zip(blocks, pool.map(values, blocks), strict=True):
            found.append(result)
            if bootstrap.progress:
                bootstrap.progress(block.stop, bootstrap.rounds)
    return [np.concatenate(column) for column in zip(*found, strict=True)]


def fisher_interval(value: float, rounds: Floats, n: int, level: float) -> Interval:
    """Of a correlation of n pairs, from its values over the bootstrap rounds."""
    defined = rounds[~np.isnan(rounds)]
    imperfect = np.abs(defined[np.abs(defined) < PERFECT])
    if abs(value) >= PERFECT or 2 * len(defined) < len(rounds) or not len(imperfect):
        return Interval(None, None)
    # a perfect round has no finite place on Fisher's scale: it counts as the nearest that has
    most = float(imperfect.max())
    deviation = float(np.arctanh(np.clip(defined, -most, most)).std())
    half = student_quantile((1 + level) / 2, n - 2) * deviation
    centre = np.arctanh(value)
    return Interval(float(np.tanh(centre - half)), float(np.tanh(centre + half)))


PERFECT = 1 - 1e-12
"""From here on a correlation is 1 up to rounding."""


def _draw(seed: list[int], number: int, n: int) -> Counts:
    child = np.random.SeedSequence(seed, spawn_key=(number,))
    drawn = np.random.Generator(np.random.PCG64(child)).integers(0, n, size=n, dtype=np.int32)
    return np.bincount(drawn, minlength=n).astype(np.int32)
