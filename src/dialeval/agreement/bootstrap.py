"""Resampling, and the interval of a correlation.

All rounds of a resampling read one stream of uniform numbers, n to a round, in order. A worker that
begins with round r moves the generator r n numbers ahead (PCG64 can jump), so neither the number of
workers nor the number of rounds in memory changes the result. The seed of the stream is drawn from
the caller's generator: the next test with the same generator is a new draw.

A test reports p = (c + 1) / (k + 1), where c of k rounds are at least as extreme as the data. The
+1 counts the data themselves. Without it a test could report p = 0 and would reject too often
(Davison and Hinkley 1997, 4.2; Phipson and Smyth 2010).

A bootstrap round draws n of the n items with replacement. A correlation depends only on how often
each item was drawn, so a round is a row of counts and a block of rounds is a matrix. The interval
is symmetric on Fisher's scale, where the rounds have the standard deviation s:

    tanh(atanh(value) -+ t s),    t = quantile of Student's t with n - 2 degrees of freedom

For Pearson's r that is too short if scores are skewed or have heavy tails (ranks have no tails).
Its half width is therefore the larger of t s and q e, where e is the standard error of the data and
q the 95 % quantile over the rounds of |atanh(r*) - atanh(r)| / e*, each round divided by its own
error (a symmetric bootstrap-t; Hall 1988).

This rule was chosen from eight (percentile, BCa, bootstrap-t, errors from the influence of items,
and unions of these) by 1000 simulations each with rho = 0, .5, .9 and n = 50, 200. Coverage of
Pearson's r:

                                    t s alone      as here
    normal                          .940-.951      .942-.956
    grades 1 to 5                   .946-.957      .949-.959
    means of three raters           .934-.962      .936-.963
    Student's t, 5 degrees          .899-.945      .931-.958
    log-normal both, sigma .5       .922-.946      .934-.951
    log-normal both, sigma 1        .902-.923      .912-.954

Coverage is below .93 for log-normal scores with sigma 1 if rho = 0, or if rho = .5 and n = 50; and
if one side is of that kind and the other normal, for rho = .5 (.923) and .9 (.69-.74). None of the
eight rules holds there. `python benchmarks/bootstrap.py --coverage` repeats the simulation, with
Spearman and Kendall.

Few items are not resampled: with six items most rounds are nearly perfect or nearly constant, and
with three all rounds agree. Their interval is the classical one on Fisher's scale:

    tanh(atanh(value) -+ q e)

    pearson    e = sqrt(1 / (n - 3))                q normal      (Fisher 1921)
    spearman   e = sqrt((1 + rho^2 / 2) / (n - 3))  q normal      (Bonett and Wright 2000)
    kendall    e = sqrt(.437 / (n - 4))             q Student's t, n - 2 degrees
               (Fieller, Hartley and Pearson 1957, for data without ties; the larger quantile makes
               up for ties)

The number of items from which on data are resampled was chosen by simulation. Ranks do not suffer
from heavy tails, so Spearman's rho keeps the formula up to 19 items. Pearson's r does: with
Student's t of 5 degrees its formula covers .91 at n = 10 and .86 at n = 15, where the bootstrap
covers .98 and .94. Coverage and mean width of 95 % intervals over rho = 0, .5, .9 (500 simulations
each, 300 rounds; bootstrap and bootstrap-t alone had widths of 1.94, 1.90 and 1.58 for Pearson's r
at n = 6):

    normal          Pearson                      Spearman                  Kendall
    n =  6          .93-.96  1.44 1.29 .64       .97-1.0  1.50 1.42 1.05   .98-1.0  1.64 1.59 1.32
    n =  8          .93-.96  1.28 1.11 .45       .95-.97  1.32 1.20 .71    .98-1.0  1.27 1.18 .80
    n = 10          .97-.98  1.42 1.24 .60       .96-.97  1.19 1.06 .57    .99-1.0  1.25 1.19 .92
    n = 20          .95-.96  .93 .76 .25         .97-.98  .95 .82 .38      .97-.99  .72 .67 .46
    n = 50          .94-.95  .57 .44 .12         .96      .58 .47 .17      .95-.98  .41 .36 .21

With grades from 1 to 5 all intervals cover .94 to 1.0. With Student's t of 5 degrees Pearson's r
has .90 to .94 below 10 items and .93 to .98 from 10 items on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

import numpy as np

from dialeval.agreement.arithmetic import Counts, Floats, normal_quantile, student_quantile
from dialeval.agreement.coefficient import Coefficient
from dialeval.progress import Progress

if TYPE_CHECKING:
    from dialeval.agreement.correlation import Name

NO_SPREAD = "perfect agreement"
PERFECT = 1 - 1e-12
"""A correlation above this value is 1 up to rounding."""
BOOTSTRAP_FROM: dict[Name, int] = {"pearson": 10, "spearman": 20, "kendall": 10}
"""The smallest number of items that are resampled."""
FEWEST_ITEMS = 5

Alternative = Literal["two-sided", "greater"]
"""`greater`: the first is better than the second. Choose it before you look at the data."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Resampling:
    """The options of resampling. Only `rng` and `rounds` change the result."""

    rng: np.random.Generator
    rounds: int = 9999
    block: int = 1 << 17
    """Numbers that a worker holds at a time; a round with more items is a block of its own."""
    workers: int = 1
    progress: Progress | None = None


def in_blocks(work: Callable[[Floats], Result], n: int, resampling: Resampling) -> list[Result]:
    """Calls `work` with blocks of rounds: rows of n uniform numbers in [0, 1). Keeps the order."""
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
    """Returns one value per round; `statistic` maps rows of n uniform numbers in [0, 1) to a value
    each."""
    return np.concatenate(in_blocks(statistic, n, resampling))


def p_value(null: Floats, observed: float, size: float, alternative: Alternative) -> float:
    """Returns the share of rounds that are at least as extreme as the observed value, which counts,
    too.

    Ratings are often whole numbers, so ties with the observed value are common. `size` is the order
    of magnitude of the summands: differences that are rounding at that size count as ties.
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
"""Numbers that fit into the processor's cache with their intermediate results."""


@dataclass(frozen=True)
class Bootstrap(Resampling):
    """The options of intervals. Only `rng`, `rounds` and `level` change the result."""

    rounds: int = 1000
    block: int = 1 << 18
    level: float = 0.95


def bootstrap_values(statistics: Sequence[Statistic], n: int, bootstrap: Bootstrap) -> list[Floats]:
    """Returns the values of each statistic over the rounds. All statistics see the same draws."""

    def values(uniform: Floats) -> list[Floats]:
        counts = draw_counts(uniform)
        return [statistic(counts) for statistic in statistics]

    found = in_blocks(values, n, bootstrap)
    return [np.concatenate(column) for column in zip(*found, strict=True)]


def by_few_rows(statistic: Statistic) -> Statistic:
    """Returns the same statistic, computed for a few rows at a time, so that intermediate results
    stay in the processor's cache. The statistic must treat each row by itself."""

    def of_counts(counts: Counts) -> Floats:
        rows = max(1, CACHED // counts.shape[1])
        pieces = [statistic(counts[start : start + rows]) for start in range(0, len(counts), rows)]
        return np.concatenate(pieces)

    return of_counts


@by_few_rows
def draw_counts(uniform: Floats) -> Counts:
    """Returns how often each of n items is drawn by a row of n numbers in [0, 1)."""
    rows, n = uniform.shape
    drawn = (uniform * n).astype(np.intp)
    drawn += n * np.arange(rows)[:, np.newaxis]
    counts = np.bincount(drawn.ravel(), minlength=rows * n)
    return counts.astype(np.float64).reshape(rows, n)


def fisher_interval(found: Coefficient, rounds: Floats, level: float) -> Coefficient:
    """Returns the coefficient with its interval, from its values over the bootstrap rounds."""
    return _with_interval(found, _half_width(found, rounds, level))


def studentised_interval(
    found: Coefficient, error: float, rounds: Floats, errors: Floats, level: float
) -> Coefficient:
    """Pearson's r with its interval, from r and its standard error in the data and the rounds."""
    half, value = _half_width(found, rounds, level), found.value
    usable = (np.abs(rounds) < PERFECT) & (errors > 0)  # neither is true of NaN
    if value is not None and isinstance(half, float) and 2 * int(usable.sum()) >= len(rounds):
        r = rounds[usable]
        apart = np.abs(np.arctanh(r) - np.arctanh(value)) * (1 - r**2) / errors[usable]
        half = max(half, float(np.quantile(apart, level)) * error / (1 - value**2))
    return _with_interval(found, half)


def formula_interval(name: Name, found: Coefficient, level: float) -> Coefficient:
    """Returns the coefficient with the classical interval, for few items. Fewer than five items
    have none: it would hold nearly every value (and e of tau is infinite)."""
    value, n = found.value, found.n
    if value is None or n < FEWEST_ITEMS or abs(value) >= PERFECT:
        few = n < FEWEST_ITEMS
        return _with_interval(found, f"fewer than {FEWEST_ITEMS} items" if few else NO_SPREAD)
    normal = normal_quantile((1 + level) / 2)
    if name == "pearson":
        half = normal * math.sqrt(1 / (n - 3))
    elif name == "spearman":
        half = normal * math.sqrt((1 + value**2 / 2) / (n - 3))
    else:
        half = student_quantile((1 + level) / 2, n - 2) * math.sqrt(0.437 / (n - 4))
    return _with_interval(found, half)


def _half_width(found: Coefficient, rounds: Floats, level: float) -> float | str:
    """t s, or the reason why the rounds give no interval."""
    if found.value is None or abs(found.value) >= PERFECT:
        return NO_SPREAD
    defined = rounds[~np.isnan(rounds)]
    imperfect = np.abs(defined[np.abs(defined) < PERFECT])
    if 2 * len(defined) < len(rounds) or not len(imperfect):
        return "most draws of items are constant"
    # a perfect round has no finite place on Fisher's scale: it counts as the nearest that has
    most = float(imperfect.max())
    deviation = float(np.arctanh(np.clip(defined, -most, most)).std())
    return student_quantile((1 + level) / 2, found.n - 2) * deviation


def _with_interval(found: Coefficient, half: float | str) -> Coefficient:
    """Returns the interval of this half width on Fisher's scale, or the reason why there is
    none."""
    if found.value is None:
        return found
    if isinstance(half, float) and half < 1e-9:
        half = "all draws of items agree alike"
    if isinstance(half, str):
        return replace(found, no_interval=half)
    centre = float(np.arctanh(found.value))
    return replace(found, low=float(np.tanh(centre - half)), high=float(np.tanh(centre + half)))
