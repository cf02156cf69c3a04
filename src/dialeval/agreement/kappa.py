"""Cohen's and Fleiss' kappa: agreement on categories, beyond what chance would give.

    Cohen (1960, 1968)    kappa = 1 - sum w_ij o_ij / sum w_ij e_ij

over two raters, o the joint and e the product distribution of their ratings, and the weight of a
disagreement between i and j

    plain      1 where i != j         linear     |i - j|         quadratic     (i - j)^2.

Distances are those of the ratings themselves. scikit-learn takes the positions of the categories
that occur; the two differ where a category between others was used by nobody.

    Fleiss (1971)         kappa = (P - Pe) / (1 - Pe)

over any number of raters, P the mean share of agreeing pairs of ratings per item and Pe the sum of
squared shares of the categories. Items may have different numbers of ratings, two at least; raters
need not be the same people from item to item.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Literal

import numpy as np

from dialeval.agreement.coefficient import Agreement, mean_of
from dialeval.agreement.ranks import Floats

Weights = Literal["plain", "linear", "quadratic"]

ONE_CATEGORY = "only one category in use"


def cohen_kappa(x: Floats, y: Floats, weights: Weights = "plain") -> Agreement:
    """Agreement of two raters, over the items that both rated."""
    both = ~(np.isnan(x) | np.isnan(y))
    n, missing = int(both.sum()), int((~both).sum())
    if n == 0:
        return Agreement(None, 0, missing, "no items in common")
    x, y = x[both], y[both]
    observed, expected = _DISAGREEMENT[weights](x, y)
    if expected == 0:
        return Agreement(None, n, missing, ONE_CATEGORY)
    return Agreement(1 - observed / expected, n, missing)


def mean_cohen_kappa(ratings: Floats, weights: Weights = "plain") -> Agreement:
    """Mean of Cohen's kappa over all pairs of raters (columns)."""
    return mean_of([cohen_kappa(x, y, weights) for x, y in combinations(ratings.T, 2)])


def fleiss_kappa(ratings: Floats) -> Agreement:
    """Agreement of all raters, over the items with two ratings or more."""
    per_item = (~np.isnan(ratings)).sum(axis=1)
    used = per_item >= 2
    n, missing = int(used.sum()), int((~used).sum())
    if n == 0:
        return Agreement(None, 0, missing, "no item with 2 ratings")
    counts = per_item[used]
    squares, shares = category_counts(ratings[used])
    agreement = float(np.mean((squares - counts) / (counts * (counts - 1))))
    chance = float((shares / shares.sum()) @ (shares / shares.sum()))
    if len(shares) == 1:
        return Agreement(None, n, missing, ONE_CATEGORY)
    return Agreement((agreement - chance) / (1 - chance), n, missing)


def category_counts(ratings: Floats) -> tuple[Floats, Floats]:
    """Per item the sum of squared counts of its categories; per category its count in all."""
    items, raters = np.nonzero(~np.isnan(ratings))
    categories, codes = np.unique(ratings[items, raters], return_inverse=True)
    cells, counts = np.unique(items * len(categories) + codes, return_counts=True)
    squares: Floats = np.bincount(
        cells // len(categories), weights=counts.astype(np.float64) ** 2, minlength=len(ratings)
    ).astype(np.float64)
    return squares, np.bincount(codes).astype(np.float64)


def _plain(x: Floats, y: Floats) -> tuple[float, float]:
    categories, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    shares = [np.bincount(half, minlength=len(categories)) / len(x) for half in np.split(codes, 2)]
    if len(categories) == 1:
        return 0.0, 0.0
    return float(np.mean(x != y)), 1 - float(shares[0] @ shares[1])


def _linear(x: Floats, y: Floats) -> tuple[float, float]:
    """E|X - Y| of independent X, Y is the integral of F(1 - G) + G(1 - F)."""
    steps = np.unique(np.concatenate([x, y]))
    below = [np.searchsorted(np.sort(side), steps[:-1], side="right") / len(x) for side in (x, y)]
    apart = below[0] * (1 - below[1]) + below[1] * (1 - below[0])
    return float(np.mean(np.abs(x - y))), float(np.diff(steps) @ apart)


def _quadratic(x: Floats, y: Floats) -> tuple[float, float]:
    """E(X - Y)^2 of independent X, Y is var X + var Y + (mean X - mean Y)^2."""
    if x.min() == x.max() == y.min() == y.max():
        return 0.0, 0.0
    expected = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    return float(np.mean((x - y) ** 2)), float(expected)


_DISAGREEMENT: dict[Weights, Callable[[Floats, Floats], tuple[float, float]]] = {
    "plain": _plain,
    "linear": _linear,
    "quadratic": _quadratic,
}
"""Per weighting, the observed disagreement and the one expected of independent raters."""
