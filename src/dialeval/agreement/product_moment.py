"""Pearson's r, and Spearman's rho as Pearson's r of the ranks; both also of weighted items.

    r = sum (x - x̄)(y - ȳ) / sqrt(sum (x - x̄)^2  sum (y - ȳ)^2)

With weights w (how often a bootstrap round drew each item) and N = sum w, each sum becomes

    sum w x y - (sum w x)(sum w y) / N

after x and y were centred over all items, which keeps the subtraction harmless.
"""

from __future__ import annotations

import math

import numpy as np

from dialeval.agreement.bootstrap import Statistic
from dialeval.agreement.ranks import Counts, Floats, tie_groups

ROUNDING = 1e-13
"""A variance below this part of the mean square is that of a constant, up to rounding."""


def pearson_r(x: Floats, y: Floats) -> float:
    """Of two sides that are finite and not constant."""
    x, y = _unit(x), _unit(y)
    r = float(x @ y)
    if abs(r) < 0.5:
        return r
    # 1 - |r| is half the squared distance: exact where all agrees, which p of few items needs
    sign = math.copysign(1.0, r)
    apart = x - sign * y
    return sign * (1 - float(apart @ apart) / 2)


def pearson_of_counts(x: Floats, y: Floats) -> Statistic:
    """r of each row of counts, NaN where a side is constant."""
    x, y = _unit(x), _unit(y)
    products = (x, y, x * x, y * y, x * y)

    def of_counts(counts: Counts) -> Floats:
        n = counts.sum(axis=1)
        # not a matrix product: BLAS rounds a row differently for different numbers of rows
        sum_x, sum_y, square_x, square_y, product = (
            (counts * values).sum(axis=1) for values in products
        )
        variance_x = _variance(square_x, sum_x, n)
        variance_y = _variance(square_y, sum_y, n)
        norm = np.sqrt(variance_x) * np.sqrt(variance_y)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = np.clip((product - sum_x * sum_y / n) / norm, -1.0, 1.0)
        return found

    return of_counts


def spearman_of_counts(x: Floats, y: Floats) -> Statistic:
    """rho of each row of counts, NaN where a side is constant."""
    sides = tie_groups(x), tie_groups(y)

    def of_counts(counts: Counts) -> Floats:
        n = counts.sum(axis=1, dtype=np.int64)[:, np.newaxis]
        product = counts.astype(np.float64)
        norm = np.ones(len(counts))
        for side in sides:
            sizes = side.sizes(counts)
            centred = np.cumsum(sizes, axis=1) - (sizes + n) / 2  # mean rank less (n + 1) / 2
            product *= np.take(centred, side.group, axis=1)
            centred *= centred
            norm *= np.sqrt((sizes * centred).sum(axis=1))
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = np.clip(product.sum(axis=1) / norm, -1.0, 1.0)
        return found

    return of_counts


def _unit(values: Floats) -> Floats:
    """Centred and of length 1. Scaled first, so that squares neither overflow nor vanish."""
    values = values / np.abs(values).max()
    centred = values - values.mean()
    centred /= np.abs(centred).max()
    unit: Floats = centred / np.sqrt(centred @ centred)
    return unit


def _variance(square: Floats, total: Floats, n: Floats) -> Floats:
    variance = square - total * total / n
    return np.where(variance > ROUNDING * square, variance, np.nan)
