"""The arithmetic of the statistics: ranks and ties, exact sums, tails of distributions.

Ranks count from 1, and equal values share the mean of their ranks. If a bootstrap round draws item
i w_i times, its ranks need no sorting: the group g of equal values has t_g = sum of w_i members,
and each has the rank t_1 + ... + t_(g-1) + (t_g + 1) / 2.

Means can be tied although their sums differ in the last bit: items rated .2 and .4 are tied with
items rated .6 and .0. A rank correlation would take the difference for an order, so means are
rounded.

BLAS adds in an order that depends on the number of rows, and rounds differently each time. Weights
that are whole numbers avoid this (after Ozaki, Ogita, Oishi and Rump 2012, Numerical Algorithms
59): each value is cut into a leading and a trailing part, so short that all products and sums of
either part fit into the 53 bits of a float. Nothing is rounded until the two sums are added.

The tails of Student's t with df degrees of freedom and of the normal distribution are, with I the
regularised incomplete beta function,

    P(|T| >= t) = I_x(df / 2, 1 / 2),    x = df / (df + t^2)
    P(|Z| >= z) = erfc(z / sqrt 2)

I is computed by its continued fraction (Abramowitz and Stegun 26.5.8; the modified method of Lentz
as in Press et al., Numerical Recipes, section 6.4), on the side where it converges fast. scipy has
all of this; it would add 143 MB to the base install and double the time of the first import. A
correlation r of n pairs has t = r sqrt((n - 2) / (1 - r^2)), so that x = 1 - r^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = Floats
"""A row for each bootstrap round: how often it drew each item. They are whole numbers, stored as
floats so that BLAS can multiply them: sums and products below 2^53 are exact in any order."""


@dataclass(frozen=True)
class TieGroups:
    """Items in ascending order, cut where the value changes."""

    order: Integers
    starts: Integers
    group: Integers
    """The group of each item, in the original order of the items."""

    def __len__(self) -> int:
        return len(self.starts)

    def sums(self, rows: Floats) -> Floats:
        """Returns the sum over the items of each group, for each row; for counts, the size of the
        group."""
        ordered = np.take(rows, self.order, axis=1)
        if len(self.starts) == len(self.order):
            return ordered
        return np.add.reduceat(ordered, self.starts, axis=1)


def row_dots(first: Floats, second: Floats) -> Floats:
    """Returns the dot product of each pair of rows. It is exact for whole numbers below 2^53;
    beyond that its rounding depends less on the number of rows than that of BLAS."""
    found: Floats = np.einsum("ij,ij->i", first, second)
    return found


def tie_groups(values: npt.NDArray[np.generic]) -> TieGroups:
    """Groups of equal values, ascending; within a group the items keep their order."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    return TieGroups(order, np.flatnonzero(new), group)


def dense(values: Floats) -> Integers:
    """0 for the smallest value, 1 for the next distinct one, and so on."""
    return tie_groups(values).group


def rank(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of the ranks that they take up."""
    groups = tie_groups(values)
    sizes = np.diff(np.append(groups.starts, len(values)))
    return (groups.starts + (sizes + 1) / 2)[groups.group]


def tied_pairs(values: Floats) -> int:
    """Returns the number of pairs of items with the same value."""
    sizes = np.diff(np.append(tie_groups(values).starts, len(values)))
    return int((sizes * (sizes - 1) // 2).sum())


DIGITS = 12


def exact_mean(values: Floats) -> float:
    """Returns the same mean for any order; NaN if a value is not finite."""
    return math.fsum(values) / len(values) if np.isfinite(values).all() else math.nan


def without_rounding_errors(means: Floats) -> Floats:
    """Rounds to 12 digits of the largest: means that differ by rounding errors become equal."""
    known = np.abs(means[np.isfinite(means)])
    largest = float(known.max(initial=0.0))
    return np.round(means, DIGITS - math.ceil(math.log10(largest))) if largest else means


ONE_THREAD = 1 << 18
"""The most multiplications that OpenBLAS leaves to one thread."""
ROWS = 64
SPARE = 4
"""Sums are exact if the absolute weights of a row add up to at most this many times n."""


def weighted_sums(columns: Floats) -> Callable[[Floats], Floats]:
    """Maps rows of n weights (whole numbers) to rows of sums, one for each column of n values.

    A value keeps 2 `bits` bits below the largest one of its column, 62 for 10^6 items.
    """
    n, width = columns.shape
    bits = 53 - math.ceil(math.log2(SPARE * n))
    leading = _multiples(columns, bits)
    parts = np.hstack([leading, _multiples(columns - leading, bits)])

    def sums(weights: Floats) -> Floats:
        both = exact_product(weights, parts)
        return np.asarray(both[:, :width] + both[:, width:])

    return sums


def exact_product(weights: Floats, matrix: Floats) -> Floats:
    """weights @ matrix, piece by piece, for weights where no sum is rounded.

    OpenBLAS splits a larger product among threads that busy-wait for each other, which takes
    several times as long on a busy machine.
    """
    (rows, n), width = weights.shape, matrix.shape[1]
    found = np.zeros((rows, width))
    items = max(1, ONE_THREAD // (min(rows, ROWS) * width))
    for top in range(0, rows, ROWS):
        for start in range(0, n, items):
            piece = slice(start, start + items)
            found[top : top + ROWS] += weights[top : top + ROWS, piece] @ matrix[piece]
    return found


def _multiples(columns: Floats, bits: int) -> Floats:
    """Rounds each column to multiples of a power of 2, such that its largest value has 2^bits."""
    _, exponents = np.frexp(np.abs(columns).max(axis=0))
    units = np.ldexp(1.0, exponents - bits)
    return np.asarray(np.round(columns / units) * units)


TINY = 1e-300
"""Replaces a zero denominator in Lentz's method."""
MOST_TERMS = 100_000
"""The fraction needs about sqrt(max(a, b)) terms: this is enough for 10^9 degrees of freedom."""


def normal_two_sided_p(z: float) -> float:
    """P(|Z| >= |z|)."""
    return math.erfc(abs(z) / math.sqrt(2))


def student_two_sided_p(t: float, df: float) -> float:
    """P(|T| >= |t|) with `df` degrees of freedom."""
    if math.isinf(t):
        return 0.0
    square = t * t
    return incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square))


def correlation_two_sided_p(r: float, n: int) -> float:
    """p of a Pearson correlation of n pairs; also used for Spearman's rho."""
    return incomplete_beta((n - 2) / 2, 0.5, (1 - r) * (1 + r), r * r)


@cache
def student_quantile(probability: float, df: float) -> float:
    """Returns the t below which `probability` of the distribution lies, by bisection."""
    tail = 2 * min(probability, 1 - probability)
    low, high = 0.0, 1.0
    while student_two_sided_p(high, df) > tail:
        high *= 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return math.copysign(middle, probability - 0.5)
        if student_two_sided_p(middle, df) > tail:
            low = middle
        else:
            high = middle


def normal_quantile(probability: float) -> float:
    """Returns the z below which `probability` of the normal distribution lies."""
    return NormalDist().inv_cdf(probability)


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """I_x(a, b). `rest` is 1 - x, which the caller knows without cancellation."""
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    # log1p of the smaller side keeps digits that log of a number near 1 has lost
    log_x = math.log(x) if x < 0.5 else math.log1p(-rest)
    log_rest = math.log(rest) if rest < 0.5 else math.log1p(-x)
    front = math.exp(a * log_x + b * log_rest - log_beta(a, b))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(a, b, x) / a
    return 1 - front * _continued_fraction(b, a, rest) / b


def log_beta(a: float, b: float) -> float:
    """ln B(a, b). For a large a, ln gamma(a + b) - ln gamma(a) comes from Stirling's series: the
    difference of two numbers near 10^7 would leave nine digits."""
    a, b = max(a, b), min(a, b)
    if a < 100:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    difference = (a - 0.5) * math.log1p(b / a) + b * math.log(a + b) - b
    return math.lgamma(b) - difference - (_stirling_rest(a + b) - _stirling_rest(a))


def _stirling_rest(a: float) -> float:
    """ln gamma(a) - ((a - 1/2) ln a - a + ln(2 pi) / 2), for a large a."""
    return 1 / (12 * a) - 1 / (360 * a**3) + 1 / (1260 * a**5)


def _continued_fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            value *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
