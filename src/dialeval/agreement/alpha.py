"""Krippendorff's alpha: one coefficient for any number of raters, missing ratings and scales.

    alpha = 1 - Do / De

Do = 1/n sum over items u of 1/(m_u - 1) sum over ordered pairs of ratings of u of d(v, v')
De = 1/(n (n-1)) sum over ordered pairs of all ratings of d(v, v')

with m_u the ratings of item u (items with one are left out) and n the ratings that remain
(Krippendorff, Content Analysis, 2004, 11.3). The distances are

    nominal    d = 1 where v != v'
    interval   d = (v - v')^2
    ordinal    d = (sum of n_g for g from v to v', minus half of both ends)^2, which is the squared
               difference of the mid-ranks of v and v' among all ratings: interval alpha of ranks.

Sums over pairs are taken in closed form, so a million ratings need no table of coincidences.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from dialeval.agreement.coefficient import Agreement
from dialeval.agreement.kappa import ONE_CATEGORY, category_counts
from dialeval.agreement.ranks import Floats, rank

Scale = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: Floats, scale: Scale = "interval") -> Agreement:
    """Agreement of all raters; `n` counts the items with two ratings or more."""
    per_item = (~np.isnan(ratings)).sum(axis=1)
    used = per_item >= 2
    items, missing = int(used.sum()), int((~used).sum())
    if items == 0:
        return Agreement(None, 0, missing, "no item with 2 ratings")
    ratings, per_item = ratings[used], per_item[used]
    given = ~np.isnan(ratings)
    if np.nanmin(ratings) == np.nanmax(ratings):
        return Agreement(None, items, missing, ONE_CATEGORY)
    n = int(per_item.sum())
    if scale == "nominal":
        squares, totals = category_counts(ratings)
        within = float(np.sum((per_item**2 - squares) / (per_item - 1)))
        overall = float(n**2 - totals @ totals)
    else:
        values = np.where(given, ratings, 0.0)
        values[given] = rank(ratings[given]) if scale == "ordinal" else ratings[given]
        # Twice m times the sum of squared deviations is the sum over ordered pairs.
        centres = values.sum(axis=1) / per_item
        spread = np.where(given, (values - centres[:, None]) ** 2, 0.0).sum(axis=1)
        within = float(np.sum(2 * per_item * spread / (per_item - 1)))
        overall = 2 * n * float(np.sum((values[given] - values[given].mean()) ** 2))
    return Agreement(1 - (n - 1) * within / overall, items, missing)
