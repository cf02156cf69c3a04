"""Ranks, ties, and sums that do not depend on the order of their summands.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
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
