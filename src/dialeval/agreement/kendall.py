"""Kendall's tau-b (Kendall 1945) in O(n log n), also of weighted items.

    tau_b = (C - D) / sqrt((P - T_x)(P - T_y)),    P = n(n - 1)/2 pairs of items

C pairs are ordered alike on both sides and D contrarily; T_x and T_y are tied on a side. With
T_xy tied on both, C = P - T_x - T_y + T_xy - D, so only D has to be counted.

D is the number of inversions of y when the items are in the order of x (of y within a tie of x).
Inversions are counted bit by bit of y's dense rank, from the highest: two items whose ranks agree
in the bits above are inverted here if the first has a 1 and the second a 0. Which items stand where
depends only on the data. It is laid out once; a bootstrap round, which gives item i the weight w_i,
then costs one running sum for every bit. The side with fewer distinct values is taken for y: 5
grades need 3 bits.

p: exact by counting permutations where nothing is tied and n <= 33 or at most one pair is out of
order; otherwise normal with the variance under ties (Kendall, Rank Correlation Methods, 1970). This
is the choice that scipy.stats.kendalltau makes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from dialeval.agreement.ranks import Counts, Floats, Integers, TieGroups, dense, tie_groups
from dialeval.agreement.student import normal_two_sided_p

EXACT_UP_TO = 33


@dataclass(frozen=True)
class Bit:
    """Where the ones and zeros of a bit lie. Ones [start, end) of the running order precede a zero
    among the items that agree with it in the bits above."""

    ones: Integers
    zeros: Integers
    start: Integers
    end: Integers


class KendallCounts:
    """The pairs of some items, laid out to be counted for any weights of the items."""

    def __init__(self, x: Floats, y: Floats) -> None:
        x_rank, y_rank = dense(x), dense(y)
        if y_rank.max() > x_rank.max():
            x_rank, y_rank = y_rank, x_rank
        self.x_groups: TieGroups = tie_groups(x_rank)
        self.y_groups: TieGroups = tie_groups(y_rank)
        both = x_rank * (y_rank.max() + 1) + y_rank
        self.both_groups: TieGroups = tie_groups(both)
        self.bits = _bits(y_rank, self.both_groups.order)

    def discordant(self, counts: Counts) -> Integers:
        """D of each row of weights. Running sums stay below n: 32 bits are enough, and faster."""
        found = np.zeros(len(counts), dtype=np.int64)
        for bit in self.bits:
            before = np.zeros((len(counts), len(bit.ones) + 1), dtype=np.int32)
            np.cumsum(np.take(counts, bit.ones, axis=1), axis=1, out=before[:, 1:])
            inverted = np.take(before, bit.end, axis=1)
            inverted -= np.take(before, bit.start, axis=1)
            weights = np.take(counts, bit.zeros, axis=1)
            found += np.einsum("ij,ij->i", inverted, weights, dtype=np.int64)
        return found

    def of_counts(self, counts: Counts) -> Floats:
        """tau-b of each row of weights, NaN where a side is constant."""
        n = counts.sum(axis=1, dtype=np.int64)
        pairs = n * (n - 1) // 2
        tied_x, tied_y, tied_both = (
            _pairs(groups.sizes(counts)).sum(axis=1)
            for groups in (self.x_groups, self.y_groups, self.both_groups)
        )
        difference = pairs - tied_x - tied_y + tied_both - 2 * self.discordant(counts)
        norm = np.sqrt(pairs - tied_x) * np.sqrt(pairs - tied_y)
        with np.errstate(invalid="ignore"):
            found: Floats = np.clip(difference / norm, -1.0, 1.0)
        return found

    def two_sided_p(self) -> float:
        """Of the items themselves, each once."""
        once = np.ones((1, len(self.x_groups.order)), dtype=np.int32)
        n = once.shape[1]
        pairs = n * (n - 1) // 2
        discordant = int(self.discordant(once)[0])
        x_sizes, y_sizes, both = (
            groups.sizes(once)[0] for groups in (self.x_groups, self.y_groups, self.both_groups)
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


def _pairs(sizes: Integers) -> Integers:
    return sizes * (sizes - 1) // 2


def _moments(sizes: Integers) -> tuple[int, int]:
    """Sums of t(t - 1)(t - 2) and of t(t - 1)(2t + 5) over groups of t, as ints without overflow:
    t^3 of 10^6 fits, their product does not."""
    ordered = sizes * (sizes - 1)
    return int((ordered * (sizes - 2)).sum()), int((ordered * (2 * sizes + 5)).sum())


def _bits(rank: Integers, order: Integers) -> list[Bit]:
    """Bits of `rank` from the highest, the items in `order`, then grouped by the bits above."""
    found = []
    for shift in reversed(range(int(rank.max()).bit_length())):
        ranked = rank[order]
        is_one = (ranked >> shift & 1).astype(bool)
        above = ranked >> (shift + 1)
        starts = np.flatnonzero(np.concatenate([[True], above[1:] != above[:-1]]))
        sizes = np.diff(np.append(starts, len(order)))
        ones_before = np.concatenate([[0], np.cumsum(is_one)])
        first_one = np.repeat(ones_before[starts], sizes)
        ones_here = ones_before[:-1] - first_one
        zeros = np.flatnonzero(~is_one)
        useful = zeros[ones_here[zeros] > 0]  # a zero that no one precedes adds nothing
        found.append(Bit(order[is_one], order[useful], first_one[useful], ones_before[:-1][useful]))
        # within its group a zero moves up past the ones before it, a one down past the zeros after
        place = np.arange(len(order)) - ones_here
        group_zeros = np.repeat(np.add.reduceat(~is_one, starts, dtype=np.int64), sizes)
        place[is_one] = (np.repeat(starts, sizes) + group_zeros + ones_here)[is_one]
        regrouped = np.empty_like(order)
        regrouped[place] = order
        order = regrouped
    return found
