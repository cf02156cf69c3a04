"""Weighted sums by matrix products that give the same bits however the rows are dealt out.

BLAS adds up in an order that depends on how many rows it gets, and rounds differently each time.
Weights that are whole numbers leave a way out (after Ozaki, Ogita, Oishi and Rump 2012, Numerical
Algorithms 59): a value is cut into a leading and a trailing part, so short that all products and
sums of either part fit into the 53 bits of a float. Then nothing is rounded, and no order of adding
can move the sum. Only the two sums are rounded, when they are put together.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dialeval.agreement.ranks import Floats

ONE_THREAD = 1 << 18
"""Multiplications of a product that OpenBLAS leaves to one thread."""
ROWS = 64
SPARE = 4
"""Exact as long as the weights of a row, without their signs, add up to this many times n."""


def weighted_sums(columns: Floats) -> Callable[[Floats], Floats]:
    """From rows of n weights (whole numbers) to a row of sums, one for each column of n values.

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
    """weights @ matrix where no sum is rounded, so that it can be taken piece by piece.

    OpenBLAS shares a larger product among threads, which wait for each other without rest: on a
    machine that has other things to do, that takes several times as long.
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
    """Each column rounded to multiples of a power of 2, of which its largest value has 2^bits."""
    _, exponents = np.frexp(np.abs(columns).max(axis=0))
    units = np.ldexp(1.0, exponents - bits)
    return np.asarray(np.round(columns / units) * units)
