"""Bootstrap: what a correlation could have been, had other items been drawn.

A round draws n of the n items with replacement. All that a correlation needs to know is how often
each item was drawn, so a round is a row of counts, and a block of rounds a matrix. Blocks and
workers cannot move the result (`resampling.py`).

The interval is symmetric on Fisher's scale, with the standard deviation s of the rounds there:

    tanh(atanh(value) -+ t s),    t = quantile of Student's t with n - 2 degrees of freedom

Few items are not resampled: see `few_items.py`.

Skewed scores and heavy tails make that too short for Pearson's r, whose error depends on them
(ranks have no tails). There the half width is the larger one of t s and q e, with e the standard
error of the data and q the 95 % quantile over the rounds of |atanh(r*) - atanh(r)| / e*, each round
divided by its own error (a symmetric bootstrap-t; Hall 1988).

Chosen from eight (percentile, BCa, bootstrap-t, errors from the influence of items, and unions of
these) by 1000 simulations each with rho = 0, .5, .9 and n = 50, 200. Coverage of Pearson's r:

                                    t s alone      as here
    normal                          .940-.951      .942-.956
    grades 1 to 5                   .946-.957      .949-.959
    means of three raters           .934-.962      .936-.963
    Student's t, 5 degrees          .899-.945      .931-.958
    log-normal both, sigma .5       .922-.946      .934-.951
    log-normal both, sigma 1        .902-.923      .912-.954

Below .93 are log-normal scores with sigma 1 where rho = 0, or .5 with n = 50; and one side of that
kind against a normal one with rho = .5 (.923) or .9 (.69-.74): none of the eight holds there.
`python benchmarks/bootstrap.py --coverage` repeats it, with Spearman and Kendall beside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dialeval.agreement.ranks import Counts, Floats
from dialeval.agreement.resampling import Resampling, in_blocks
from dialeval.agreement.student import student_quantile

Statistic: TypeAlias = Callable[[Counts], Floats]
"""One number for each row of counts, or a row of numbers, NaN where it is not defined."""

CACHED = 1 << 15
"""Numbers that the processor's cache holds together with what is computed of them."""


@dataclass(frozen=True)
class Bootstrap(Resampling):
    """How to resample. Only `rng`, `rounds` and `level` can move the result."""

    rounds: int = 1000
    block: int = 1 << 18
    level: float = 0.95


@dataclass(frozen=True)
class Interval:
    """Both ends None where nothing can be said, and `reason` says why."""

    low: float | None
    high: float | None
    reason: str = ""


def resample(statistics: Sequence[Statistic], n: int, bootstrap: Bootstrap) -> list[Floats]:
    """The values of each statistic over the rounds. All statistics see the same draws."""

    def values(uniform: Floats) -> list[Floats]:
        counts = draw_counts(uniform)
        return [statistic(counts) for statistic in statistics]

    found = in_blocks(values, n, bootstrap)
    return [np.concatenate(column) for column in zip(*found, strict=True)]


def by_few_rows(statistic: Statistic) -> Statistic:
    """The same, computed for a few rows at a time: what it puts down in between is small then, and
    found again in the processor's cache. For statistics that treat each row by itself."""

    def of_counts(counts: Counts) -> Floats:
        rows = max(1, CACHED // counts.shape[1])
        pieces = [statistic(counts[start : start + rows]) for start in range(0, len(counts), rows)]
        return np.concatenate(pieces)

    return of_counts


@by_few_rows
def draw_counts(uniform: Floats) -> Counts:
    """How often each of n items is drawn by a row of n numbers in [0, 1)."""
    rows, n = uniform.shape
    drawn = (uniform * n).astype(np.intp)
    drawn += n * np.arange(rows)[:, np.newaxis]
    counts = np.bincount(drawn.ravel(), minlength=rows * n)
    return counts.astype(np.float64).reshape(rows, n)


def fisher_interval(value: float, rounds: Floats, n: int, level: float) -> Interval:
    """Of a correlation of n pairs, from its values over the bootstrap rounds."""
    half = _half_width(value, rounds, n, level)
    return half if isinstance(half, Interval) else _around(value, half)


def studentised_interval(
    value: float, error: float, rounds: Floats, errors: Floats, n: int, level: float
) -> Interval:
    """Of Pearson's r with its standard error, and the same of each round."""
    half = _half_width(value, rounds, n, level)
    if isinstance(half, Interval):
        return half
    usable = (np.abs(rounds) < PERFECT) & (errors > 0)  # neither is true of NaN
    if 2 * int(usable.sum()) >= len(rounds):
        r = rounds[usable]
        apart = np.abs(np.arctanh(r) - np.arctanh(value)) * (1 - r**2) / errors[usable]
        half = max(half, float(np.quantile(apart, level)) * error / (1 - value**2))
    return _around(value, half)


def _half_width(value: float, rounds: Floats, n: int, level: float) -> float | Interval:
    """t s, or no interval where the rounds say nothing."""
    if abs(value) >= PERFECT:
        return Interval(None, None, NO_SPREAD)
    defined = rounds[~np.isnan(rounds)]
    imperfect = np.abs(defined[np.abs(defined) < PERFECT])
    if 2 * len(defined) < len(rounds) or not len(imperfect):
        return Interval(None, None, "most draws of items are constant")
    # a perfect round has no finite place on Fisher's scale: it counts as the nearest that has
    most = float(imperfect.max())
    deviation = float(np.arctanh(np.clip(defined, -most, most)).std())
    return student_quantile((1 + level) / 2, n - 2) * deviation


def _around(value: float, half: float) -> Interval:
    centre = float(np.arctanh(value))
    if half < 1e-9:
        return Interval(None, None, "all draws of items agree alike")
    return Interval(float(np.tanh(centre - half)), float(np.tanh(centre + half)))


NO_SPREAD = "perfect agreement"
PERFECT = 1 - 1e-12
"""From here on a correlation is 1 up to rounding."""
