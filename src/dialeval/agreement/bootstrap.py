"""Resampling in blocks of bounded memory, and p = (c + 1) / (k + 1) of tests that do it.

All rounds read one stream of uniform numbers, n to a round, in order. A worker that begins with
round r moves the generator r n numbers ahead (PCG64 can jump), so the result does not depend on
how many workers there are nor on how many rounds they hold in memory at a time. The seed of the
stream is drawn from the caller's generator: the next test with the same generator is a new draw.

p counts c of k rounds at least as extreme as the data. The +1 counts the data as they are, without
which a test could report p = 0 and would reject too often (Davison and Hinkley 1997, 4.2; Phipson
and Smyth 2010).

Bootstrap: what a correlation could have been, had other items been drawn.

A round draws n of the n items with replacement. All that a correlation needs to know is how often
each item was drawn, so a round is a row of counts, and a block of rounds a matrix. Blocks and
workers cannot move the result.

The interval is symmetric on Fisher's scale, with the standard deviation s of the rounds there:

    tanh(atanh(value) -+ t s),    t = quantile of Student's t with n - 2 degrees of freedom

Few items are not resampled: see below.

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

Intervals of a correlation of few items, where resampling knows too little.

With six items most bootstrap rounds are nearly perfect or nearly constant, and with three all
rounds agree. Below a number of items the interval is the classical one on Fisher's scale instead:

    tanh(atanh(value) -+ q e)

    pearson    e = sqrt(1 / (n - 3))                q normal      (Fisher 1921)
    spearman   e = sqrt((1 + rho^2 / 2) / (n - 3))  q normal      (Bonett and Wright 2000)
    kendall    e = sqrt(.437 / (n - 4))             q Student's t, n - 2 degrees
               (Fieller, Hartley and Pearson 1957; that is for data without ties, and the larger
               quantile makes up for them)

Where resampling begins was chosen by simulation: ranks do not mind heavy tails, so Spearman's rho
keeps the formula up to 19 items; Pearson's r does, and with Student's t of 5 degrees its formula
covers .91 at n = 10 and .86 at n = 15, where the bootstrap has .98 and .94.
Coverage and mean width of 95 % intervals over rho = 0, .5, .9 (500 simulations each, 300 rounds;
bootstrap and bootstrap-t alone had 1.94, 1.90 and 1.58 for the widths of Pearson's r at n = 6):

    normal          Pearson                      Spearman                  Kendall
    n =  6          .93-.96  1.44 1.29 .64       .97-1.0  1.50 1.42 1.05   .98-1.0  1.64 1.59 1.32
    n =  8          .93-.96  1.28 1.11 .45       .95-.97  1.32 1.20 .71    .98-1.0  1.27 1.18 .80
    n = 10          .97-.98  1.42 1.24 .60       .96-.97  1.19 1.06 .57    .99-1.0  1.25 1.19 .92
    n = 20          .95-.96  .93 .76 .25         .97-.98  .95 .82 .38      .97-.99  .72 .67 .46
    n = 50          .94-.95  .57 .44 .12         .96      .58 .47 .17      .95-.98  .41 .36 .21

With grades from 1 to 5 all cover .94 to 1.0. With Student's t of 5 degrees Pearson's r has .90 to
.94 below 10 items and .93 to .98 from there on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np

from dialeval.agreement.ranks import Counts, Floats
from dialeval.agreement.student import student_quantile

if TYPE_CHECKING:
    from dialeval.agreement.correlation import Name

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


Statistic: TypeAlias = Callable[[Counts], Floats]
"""One number for each row of counts, or a row of numbers, NaN where it is not defined."""

CACHED = 1 << 15
"""Numbers that the processor's cache holds together with what is computed of them."""


@dataclass(frozen=True)
class Bootstrap(Resampling):
    """How to bootstrap_values. Only `rng`, `rounds` and `level` can move the result."""

    rounds: int = 1000
    block: int = 1 << 18
    level: float = 0.95


@dataclass(frozen=True)
class Interval:
    """Both ends None where nothing can be said, and `reason` says why."""

    low: float | None
    high: float | None
    reason: str = ""


def bootstrap_values(statistics: Sequence[Statistic], n: int, bootstrap: Bootstrap) -> list[Floats]:
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


BOOTSTRAP_FROM: dict[Name, int] = {"pearson": 10, "spearman": 20, "kendall": 10}
"""So many items and more are resampled."""
FEWEST_ITEMS = 5


def interval_of_few(name: Name, value: float, n: int, level: float) -> Interval:
    """None below five items, where it would hold nearly every value (and e of tau is infinite)."""
    if n < FEWEST_ITEMS:
        return Interval(None, None, f"fewer than {FEWEST_ITEMS} items")
    if abs(value) >= PERFECT:
        return Interval(None, None, NO_SPREAD)
    normal = NormalDist().inv_cdf((1 + level) / 2)
    if name == "pearson":
        half = normal * math.sqrt(1 / (n - 3))
    elif name == "spearman":
        half = normal * math.sqrt((1 + value**2 / 2) / (n - 3))
    else:
        half = student_quantile((1 + level) / 2, n - 2) * math.sqrt(0.437 / (n - 4))
    centre = math.atanh(value)
    return Interval(math.tanh(centre - half), math.tanh(centre + half))
