"""Intraclass correlation of the two-way random model: raters are a sample of all raters.

From the mean squares of the two-way table of n items and k raters (BMS between items, JMS between
raters, EMS residual), Shrout and Fleiss (1979), Psychological Bulletin 86, 420:

    ICC(2,1) = (BMS - EMS) / (BMS + (k-1) EMS + k (JMS - EMS) / n)    of one rating
    ICC(2,k) = (BMS - EMS) / (BMS + (JMS - EMS) / n)                  of the mean of k ratings

Both ask for absolute agreement: a rater who is always one point stricter costs. The table must be
full; items that some rater left out are not used, and are counted.
"""

from __future__ import annotations

import numpy as np

from dialeval.agreement.coefficient import Agreement
from dialeval.agreement.ranks import Floats


def icc_single(ratings: Floats) -> Agreement:
    """ICC(2,1): how reliable is one rating?"""
    return _icc(ratings, of_the_mean=False)


def icc_mean(ratings: Floats) -> Agreement:
    """ICC(2,k): how reliable is the mean over these raters?"""
    return _icc(ratings, of_the_mean=True)


def _icc(ratings: Floats, of_the_mean: bool) -> Agreement:
    complete = ~np.isnan(ratings).any(axis=1)
    table = ratings[complete]
    (n, k), missing = table.shape, int((~complete).sum())
    if k < 2:
        return Agreement(None, n, missing, "fewer than 2 raters")
    if n < 2:
        return Agreement(None, n, missing, "fewer than 2 items rated by all")
    if table.min() == table.max():
        return Agreement(None, n, missing, "constant")
    centred = table - table.mean()
    items, raters = centred.mean(axis=1), centred.mean(axis=0)
    residual = centred - items[:, None] - raters
    between_items = k * float(items @ items) / (n - 1)
    between_raters = n * float(raters @ raters) / (k - 1)
    error = float((residual**2).sum()) / ((n - 1) * (k - 1))
    below = between_items + (between_raters - error) / n
    if not of_the_mean:
        below = between_items + (k - 1) * error + k * (between_raters - error) / n
    if below <= 1e-12 * (between_items + between_raters + error):
        # Items all alike and raters not: the model's variances add up to nothing or less.
        return Agreement(None, n, missing, "no variance between items")
    return Agreement((between_items - error) / below, n, missing)
