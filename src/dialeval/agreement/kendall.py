"""Kendall's tau-b (Kendall 1945) in O(n log n), also of weighted items.

    tau_b = (C - D) / sqrt((P - T_x)(P - T_y)),    P = n(n - 1)/2 pairs of items

C pairs are ordered alike on both sides and D contrarily; T_x and T_y are tied on a side. With
T_xy tied on both, C = P - T_x - T_y + T_xy - D, so only D has to be counted (`inversions.py`).

p: exact by counting permutations where nothing is tied and n <= 33 or at most one pair is out of
order; otherwise normal with the variance under ties (Kendall, Rank Correlation Methods, 1970). This
is the choice that scipy.stats.kendalltau makes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np

from dialeval.agreement.inversions import matrix_products, running_sums
from dialeval.agreement.ranks import Counts, Floats, Integers, TieGroups, row_dots, tie_groups
from dialeval.agreement.student import normal_two_sided_p

EXACT_UP_TO = 33
MATRICES_UP_TO = 1 << 14
"""Items: then the matrices take 50 MB, and are hardly faster."""


class KendallCounts:
    """The pairs of some items, laid out to be counted for any weights of the items."""

    def __init__(self, x: Floats, y: Floats, many_rounds: bool = False) -> None:
        """`many_rounds`: takes longer to lay out, and pays from some ten rows of weights on."""
        few_items = len(x) <= MATRICES_UP_TO
        self.discordant = (matrix_products if many_rounds and few_items else running_sums)(x, y)
        self.x_groups, self.y_groups = tie_groups(x), tie_groups(y)
        both = self.x_groups.group * len(self.y_groups) + self.y_groups.group
        self.both_groups: TieGroups = tie_groups(both)

    def of_counts(self, counts: Counts) -> Floats:
        """tau-b of each row of weights, NaN where a side is constant."""
        ordered = counts.sum(axis=1) ** 2
        untied_x, untied_y, untied_both = (
            ordered - _squares(groups, counts)
            for groups in (self.x_groups, self.y_groups, self.both_groups)
        )
        difference = untied_x + untied_y - untied_both - 4 * self.discordant(counts)
        norm = np.sqrt(untied_x) * np.sqrt(untied_y)
        with np.errstate(invalid="ignore"):
            found: Floats = np.clip(difference / norm, -1.0, 1.0)
        return found

    def two_sided_p(self) -> float:
        """Of the items themselves, each once."""
        once = np.ones((1, len(self.x_groups.order)))
        n = once.shape[1]
        pairs = n * (n - 1) // 2
        discordant = int(self.discordant(once)[0])
        x_sizes, y_sizes, both = (
            groups.sums(once)[0].astype(np.int64)
            for groups in (self.x_groups, self.y_groups, self.both_groups)
        )
        tied_x, tied_y = int(_pairs(x_sizes).sum()), int(_pairs(y_sizes).sum())
        least = min(discordant, pairs - discordant)
        if not tied_x and not tied_y and (n <= EXACT_UP_TO or least <= 1):
            return exact_two_sided_p(n, least)
        difference = pairs - tied_x - tied_y + int(_pairs(both).sum()) - 2 * discordant
        ordered = n * (n - 1)
        x_triples, x_spread = _moments(x_sizes)
        y_triples, y_spread = _moments(y_sizes)
        variance = (
            (ordered * (2 * n + 5) - x_spread - y_spread) / 18
            + 2 * tied_x * tied_y / ordered
            + x_triples * y_triples / (9 * ordered * (n - 2))
        )
        return normal_two_sided_p(difference / math.sqrt(variance))


def exact_two_sided_p(n: int, discordant: int) -> float:
    """Share of the n! orders with at most `discordant` inversions, twice. It counts orders of j
    items by inversions: one more item adds 0 to j of them."""
    if 4 * discordant >= n * (n - 1):
        return 1.0
    if discordant <= 1:
        return 2 * math.exp(-math.lgamma(n + 1 - discordant))
    ways = [1] + [0] * discordant
    for j in range(2, n + 1):
        total = list(accumulate(ways))
        ways = [total[i] - (total[i - j] if i >= j else 0) for i in range(discordant + 1)]
    return min(1.0, float(Fraction(2 * sum(ways), math.factorial(n))))


def _squares(groups: TieGroups, counts: Counts) -> Floats:
    """Sum of the squared sizes: the ordered pairs of draws that are tied, or are one draw twice."""
    sizes = counts if len(groups) == counts.shape[1] else groups.sums(counts)
    return row_dots(sizes, sizes)


def _pairs(sizes: Integers) -> Integers:
    return sizes * (sizes - 1) // 2


def _moments(sizes: Integers) -> tuple[int, int]:
    """Sums of t(t - 1)(t - 2) and of t(t - 1)(2t + 5) over groups of t, as ints without overflow:
    t^3 of 10^6 fits, their product does not."""
    ordered = sizes * (sizes - 1)
    return int((ordered * (sizes - 2)).sum()), int((ordered * (2 * sizes + 5)).sum())
