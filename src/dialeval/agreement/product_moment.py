"""Pearson's r, and Spearman's rho as Pearson's r of the ranks; both also of weighted items.

    r = sum (x - x̄)(y - ȳ) / sqrt(sum (x - x̄)^2  sum (y - ȳ)^2)

With weights w (how often a bootstrap round drew each item) and N = sum w, each sum becomes

    sum w x y - (sum w x)(sum w y) / N

after x and y were centred over all items, which keeps the subtraction harmless. All of these sums
are one matrix product (`exact_sums.py`).

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

from dialeval.agreement.bootstrap import Statistic, by_few_rows
from dialeval.agreement.exact_sums import weighted_sums
from dialeval.agreement.ranks import Counts, Floats, row_dots, tie_groups

Moments: TypeAlias = Mapping[tuple[int, int], Floats]
"""(i, j) -> the mean of x^i y^j in each round."""

POWERS = [(i, j) for i in range(5) for j in range(5 - i) if i or j]
"""x^i y^j of the first four orders."""
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
    sums = weighted_sums(np.column_stack([x**i * y**j for i, j in POWERS]))

    def of_counts(counts: Counts) -> Floats:
        n = counts.sum(axis=1)
        m: Moments = dict(zip(POWERS, (sums(counts) / n[:, np.newaxis]).T, strict=True))
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
    first, second = sorted((tie_groups(x), tie_groups(y)), key=len, reverse=True)

    @by_few_rows
    def of_counts(counts: Counts) -> Floats:
        n = counts.sum(axis=1, keepdims=True)
        first_sizes, second_sizes = first.sums(counts), second.sums(counts)
        first_ranks, second_ranks = _centred(first_sizes, n), _centred(second_sizes, n)
        # over the fewer groups of the second side, after the first was summed within them
        within = second.sums(counts * np.take(first_ranks, first.group, axis=1))
        norm = np.sqrt(row_dots(first_sizes * first_ranks, first_ranks))
        norm *= np.sqrt(row_dots(second_sizes * second_ranks, second_ranks))
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = np.clip(row_dots(within, second_ranks) / norm, -1.0, 1.0)
        return found

    return of_counts


def _centred(sizes: Floats, n: Floats) -> Floats:
    """Twice the mean rank of each group less its mean, n + 1: a whole number."""
    ranks = np.cumsum(sizes, axis=1)
    ranks *= 2
    ranks -= sizes
    ranks -= n
    return ranks


def _fourth(m: Moments, a: Floats) -> Floats:
    """Mean of (x - a)^4, from the means of x^i y^j."""
    square = a * a
    return m[4, 0] - 4 * a * m[3, 0] + 6 * square * m[2, 0] - 3 * square * square


def _third_and_first(m: Moments, a: Floats, b: Floats) -> Floats:
    """Mean of (x - a)^3 (y - b), from the means of x^i y^j."""
    found = m[3, 1] - b * m[3, 0] - 3 * a * m[2, 1] + 3 * a * b * m[2, 0]
    return found + 3 * a * a * (m[1, 1] - a * b)


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
