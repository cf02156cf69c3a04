"""Pearson's r, and Spearman's rho as Pearson's r of the ranks; both also of weighted items.

    r = sum (x - x̄)(y - ȳ) / sqrt(sum (x - x̄)^2  sum (y - ȳ)^2)

With weights w (how often a bootstrap round drew each item) and N = sum w, each sum becomes

    sum w x y - (sum w x)(sum w y) / N

after x and y were centred over all items, which keeps the subtraction harmless.

The standard error of r, for a bootstrap that divides by it, comes from how much an item can move r:
with u, v the standardised sides, item i moves it by I_i / n, I = u v - r (u^2 + v^2) / 2, so that

    error^2 = mean of I^2 / n,    mean of I^2 = m22 - r (m31 + m13) + r^2 (m40 + 2 m22 + m04) / 4

with m_ab the mean of u^a v^b.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from dialeval.agreement.bootstrap import Statistic
from dialeval.agreement.ranks import Counts, Floats, tie_groups

Moments: TypeAlias = Mapping[tuple[int, int], Floats]
"""(i, j) -> the mean of x^i y^j in each round."""

PIECE = 1 << 14
"""Items of which all powers fit into the cache."""
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


def pearson_with_error(x: Floats, y: Floats) -> Statistic:
    """r and its standard error, two columns, of each row of counts; NaN of a constant side."""
    x, y = _unit(x), _unit(y)
    scale = np.sqrt(len(x))  # mean squares of 1: fourth powers of 10^6 items do not vanish
    x, y = x * scale, y * scale

    def of_counts(counts: Counts) -> Floats:
        n = counts.sum(axis=1)
        m = {power: total / n for power, total in _power_sums(counts, x, y).items()}
        a, b = m[1, 0], m[0, 1]
        variance_x = _variance(m[2, 0], a, np.ones(len(n)))
        variance_y = _variance(m[0, 2], b, np.ones(len(n)))
        m40, m31 = _fourth(m, a), _third_and_first(m, a, b)
        turned = {(j, i): mean for (i, j), mean in m.items()}
        m04, m13 = _fourth(turned, b), _third_and_first(turned, b, a)
        m22 = m[2, 2] - 2 * (b * m[2, 1] + a * m[1, 2]) + b * b * m[2, 0] + a * a * m[0, 2]
        m22 += 4 * a * b * m[1, 1] - 3 * a * a * b * b
        with np.errstate(invalid="ignore", divide="ignore"):
            norm = np.sqrt(variance_x) * np.sqrt(variance_y)
            r = np.clip((m[1, 1] - a * b) / norm, -1.0, 1.0)
            spread = (m40 / variance_x**2 + 2 * m22 / norm**2 + m04 / variance_y**2) * r * r / 4
            spread += m22 / norm**2 - r * (m31 / variance_x + m13 / variance_y) / norm
            return np.column_stack([r, np.sqrt(np.maximum(spread, 0.0) / n)])

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


def _power_sums(counts: Counts, x: Floats, y: Floats) -> dict[tuple[int, int], Floats]:
    """Weighted sums of x^i y^j for 1 <= i + j <= 4, of each row.

    Piece by piece, so that all powers of a piece are made while it is in the processor's cache. No
    matrix product: BLAS rounds a row differently for different numbers of rows.
    """
    sums: dict[tuple[int, int], Floats] = {}
    for start in range(0, len(x), PIECE):
        piece = slice(start, start + PIECE)
        with_x = counts[:, piece].astype(np.float64)
        for i in range(5):
            with_y = with_x
            for j in range(5 - i):
                if i or j:
                    sums[i, j] = sums.get((i, j), 0.0) + with_y.sum(axis=1)
                if i + j < 4:
                    with_y = with_y * y[piece]
            with_x = with_x * x[piece]
    return sums


def _fourth(m: Moments, a: Floats) -> Floats:
    """Mean of (x - a)^4, from the means of x^i y^j."""
    return m[4, 0] - 4 * a * m[3, 0] + 6 * a**2 * m[2, 0] - 3 * a**4


def _third_and_first(m: Moments, a: Floats, b: Floats) -> Floats:
    """Mean of (x - a)^3 (y - b), from the means of x^i y^j."""
    found = m[3, 1] - b * m[3, 0] - 3 * a * m[2, 1] + 3 * a * b * m[2, 0]
    return found + 3 * a * a * m[1, 1] - 3 * a**3 * b


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
