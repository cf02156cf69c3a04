"""Pearson's r, Spearman's rho and Kendall's tau-b of weighted items.

The weight w of an item says how often a bootstrap round drew it. Spearman's rho is Pearson's r of
the ranks. With N = sum w, each sum of r = sum (x - x̄)(y - ȳ) / sqrt(sum (x - x̄)^2  sum (y - ȳ)^2)
becomes

    sum w x y - (sum w x)(sum w y) / N

after x and y were centred over all items, so that the subtraction loses no digits. All of these
sums are one matrix product (`arithmetic.py`).

A bootstrap-t needs the standard error of r. With u, v the standardised sides, item i moves r by
I_i / n, where I = u v - r (u^2 + v^2) / 2. With m_ab the mean of u^a v^b,

    error^2 = mean of I^2 / n,    mean of I^2 = m22 - r (m31 + m13) + r^2 (m40 + 2 m22 + m04) / 4

p of a rank correlation of few items counts all orders of one side. With six systems Student's t
calls a Spearman correlation of .829 significant (p .042), but 42 of the 720 orders are as extreme
(p .058).

Kendall's tau-b (1945) takes O(n log n):

    tau_b = (C - D) / sqrt((P - T_x)(P - T_y)),    P = n(n - 1)/2 pairs of items

C pairs are ordered alike on both sides and D contrarily (discordant); T_x and T_y are tied on a
side. With T_xy tied on both, C = P - T_x - T_y + T_xy - D, so only D has to be counted. p is exact
(by counting permutations) if nothing is tied and n <= 33 or at most one pair is out of order,
otherwise from the normal distribution with the variance under ties (Kendall, Rank Correlation
Methods, 1970), as in scipy.stats.kendalltau.

For weighted items D = sum of w_i w_j over the discordant pairs. The pairs are prepared once, in one
of two ways. Weights are whole numbers, so both give exactly the same number.

`running_sums` is for any number of items. In the order of x (of y within a tie of x) D counts the
inversions of y. They are found by the bits of y's dense rank, from the highest: two items whose
ranks agree in the bits above are inverted if the first has a 1 and the second a 0. A round costs
one running sum per bit. The side with fewer distinct values becomes y: 5 grades need 3 bits.

`matrix_products` is about twice as fast for a thousand items. x and y are cut into blocks of 64 or
128 consecutive items. For a pair in the same block of x a matrix says whether it is discordant (w M
w^T with the weights w of the block); likewise for a pair in the same block of y, if its blocks of x
differ. All other pairs are discordant as their blocks are: the weights of each block of x are
summed by the blocks of y, and compared with those of the blocks before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate, permutations
from typing import TypeAlias

import numpy as np

from dialeval.agreement.arithmetic import (
    Counts,
    Floats,
    Integers,
    TieGroups,
    exact_product,
    normal_two_sided_p,
    row_dots,
    tie_groups,
    weighted_sums,
)
from dialeval.agreement.bootstrap import Statistic, by_few_rows

Moments: TypeAlias = Mapping[tuple[int, int], Floats]
"""(i, j) -> the mean of x^i y^j in each round."""

POWERS = [(i, j) for i in range(5) for j in range(5 - i) if i or j]
"""The powers (i, j) of the first four orders."""
ROUNDING = 1e-13
"""A variance below this part of the mean square is that of a constant."""


def pearson_r(x: Floats, y: Floats) -> float:
    """r of two sides that are finite and not constant."""
    x, y = _unit(x), _unit(y)
    r = float(x @ y)
    if abs(r) < 0.5:
        return r
    # 1 - |r| is half the squared distance: exact where all agrees, which p of few items needs
    sign = math.copysign(1.0, r)
    apart = x - sign * y
    return sign * (1 - float(apart @ apart) / 2)


def pearson_with_error(x: Floats, y: Floats) -> Statistic:
    """r and its standard error for each row of counts, as two columns; NaN if a side is
    constant."""
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
    """rho for each row of counts, NaN if a side is constant."""
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
    """Returns twice the mean rank of each group less its mean, n + 1: a whole number."""
    ranks = np.cumsum(sizes, axis=1)
    ranks *= 2
    ranks -= sizes
    ranks -= n
    return ranks


def _fourth(m: Moments, a: Floats) -> Floats:
    """Returns the mean of (x - a)^4, from the means of x^i y^j."""
    square = a * a
    return m[4, 0] - 4 * a * m[3, 0] + 6 * square * m[2, 0] - 3 * square * square


def _third_and_first(m: Moments, a: Floats, b: Floats) -> Floats:
    """Returns the mean of (x - a)^3 (y - b), from the means of x^i y^j."""
    found = m[3, 1] - b * m[3, 0] - 3 * a * m[2, 1] + 3 * a * b * m[2, 0]
    return found + 3 * a * a * (m[1, 1] - a * b)


def _unit(values: Floats) -> Floats:
    """Centres, and scales to length 1. Scales first, so that squares neither overflow nor
    vanish."""
    values = values / np.abs(values).max()
    centred = values - values.mean()
    centred /= np.abs(centred).max()
    unit: Floats = centred / np.sqrt(centred @ centred)
    return unit


def _variance(square: Floats, total: Floats, n: Floats) -> Floats:
    variance = square - total * total / n
    return np.where(variance > ROUNDING * square, variance, np.nan)


MOST_ITEMS = 8
"""8 items have 40,320 orders (a millisecond); from 9 items on Student's t is close enough."""


@cache
def _orders(n: int) -> Integers:
    return np.array(list(permutations(range(n))), dtype=np.int64)


def exact_rank_p(first: Floats, second: Floats) -> float:
    """Returns the share of orders of the first side whose correlation with the second is as
    extreme."""
    x, y = first - first.mean(), second - second.mean()
    observed = abs(float(x @ y))
    products = np.abs(x[_orders(len(x))] @ y)
    # Sums of ranks differ by a quarter at least, or by rounding alone.
    return float((products >= observed - 1e-9).sum()) / math.factorial(len(x))


Discordant: TypeAlias = Callable[[Counts], Floats]
"""Maps each row of weights to D."""

BLOCK, LARGER_BLOCK, LARGER_FROM = 64, 128, 4096
"""Items of a block, and the number of items from which on blocks are larger (measured)."""


def running_sums(x: Floats, y: Floats) -> Discordant:
    first, second = _more_distinct_first(x, y)
    both = tie_groups(first.group * len(second) + second.group)
    bits = _bits(second.group, both.order)

    def discordant(counts: Counts) -> Floats:
        found = np.zeros(len(counts))
        for bit in bits:
            before = np.zeros((len(counts), len(bit.ones) + 1))
            np.cumsum(np.take(counts, bit.ones, axis=1), axis=1, out=before[:, 1:])
            inverted = np.take(before, bit.end, axis=1)
            inverted -= np.take(before, bit.start, axis=1)
            found += row_dots(inverted, np.take(counts, bit.zeros, axis=1))
        return found

    return discordant


@dataclass(frozen=True)
class Bit:
    """The ones and zeros of a bit. The ones [start, end) of the running order precede a zero among
    the items that agree with it in the bits above."""

    ones: Integers
    zeros: Integers
    start: Integers
    end: Integers


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


def matrix_products(x: Floats, y: Floats, block: int | None = None) -> Discordant:
    block = block or (BLOCK if len(x) < LARGER_FROM else LARGER_BLOCK)
    first, second = _more_distinct_first(x, y)
    first_block, second_block = _blocks(first, block), _blocks(second, block)
    width = int(second_block.max()) + 1

    def pairs(items: Integers) -> Floats:
        """Returns a symmetric matrix with 1 for the discordant pairs."""
        x_rank, y_rank = first.group[items], second.group[items]
        less_x, less_y = x_rank[:, np.newaxis] < x_rank, y_rank[:, np.newaxis] < y_rank
        found = less_x & less_y.T
        return (found | found.T).astype(np.float64)

    in_first = []
    for items in _members(first_block, first):
        to_block = (second_block[items][:, np.newaxis] == np.arange(width)).astype(np.float64)
        tied = first.group[items[0]] == first.group[items[-1]]
        in_first.append((items, to_block if tied else np.hstack([pairs(items), to_block])))
    in_second = []
    for items in _members(second_block, second):
        if second.group[items[0]] != second.group[items[-1]]:
            apart = first_block[items][:, np.newaxis] != first_block[items]
            in_second.append((items, pairs(items) * apart))
    above = np.tri(width, k=-1)

    def discordant(counts: Counts) -> Floats:
        within, across = np.zeros(len(counts)), np.zeros(len(counts))
        before = np.zeros((len(counts), width))
        for items, matrix in in_first:
            weights = np.take(counts, items, axis=1)
            product = exact_product(weights, matrix)
            here = product[:, -width:]
            if product.shape[1] > width:
                within += row_dots(product[:, :-width], weights)
            across += row_dots(exact_product(before, above), here)
            before += here
        for items, matrix in in_second:
            weights = np.take(counts, items, axis=1)
            within += row_dots(exact_product(weights, matrix), weights)
        return within / 2 + across

    return discordant


def _more_distinct_first(x: Floats, y: Floats) -> tuple[TieGroups, TieGroups]:
    first, second = tie_groups(x), tie_groups(y)
    return (first, second) if len(first) >= len(second) else (second, first)


def _blocks(groups: TieGroups, block: int) -> Integers:
    """Returns the block of each item. A block holds consecutive values, one at least, of `block`
    items."""
    sizes = np.diff(np.append(groups.starts, len(groups.order)))
    of_group, number, room = np.empty(len(sizes), dtype=np.int64), -1, 0
    for group, size in enumerate(sizes.tolist()):
        if size > room:
            number, room = number + 1, block
        of_group[group] = number
        room -= size
    return of_group[groups.group]


def _members(block: Integers, groups: TieGroups) -> Iterator[Integers]:
    """Yields the items of each block, in the order of their values."""
    ordered = block[groups.order]
    yield from np.split(groups.order, np.flatnonzero(np.diff(ordered)) + 1)


EXACT_UP_TO = 33
MATRICES_UP_TO = 1 << 14
"""The most items for which matrices are used: for more, they take more than 50 MB and are hardly
faster."""


class KendallCounts:
    """The pairs of items, prepared to be counted for any weights of the items."""

    def __init__(self, x: Floats, y: Floats, many_rounds: bool = False) -> None:
        """`many_rounds` takes longer to prepare, and pays off from about ten rows of weights on."""
        fits_matrices = len(x) <= MATRICES_UP_TO
        self.discordant = (matrix_products if many_rounds and fits_matrices else running_sums)(x, y)
        self.x_groups, self.y_groups = tie_groups(x), tie_groups(y)
        both = self.x_groups.group * len(self.y_groups) + self.y_groups.group
        self.both_groups: TieGroups = tie_groups(both)

    def of_counts(self, counts: Counts) -> Floats:
        """tau-b for each row of weights, NaN if a side is constant."""
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
        """p of the items themselves, each once."""
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
            return exact_kendall_p(n, least)
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


def exact_kendall_p(n: int, discordant: int) -> float:
    """Returns twice the share of the n! orders with at most `discordant` inversions. Orders of j
    items are counted by inversions: one more item adds 0 to j of them."""
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
    """Returns the sum of the squared sizes: ordered pairs of draws that are tied or the same
    draw."""
    sizes = counts if len(groups) == counts.shape[1] else groups.sums(counts)
    return row_dots(sizes, sizes)


def _pairs(sizes: Integers) -> Integers:
    return sizes * (sizes - 1) // 2


def _moments(sizes: Integers) -> tuple[int, int]:
    """Returns the sums of t(t - 1)(t - 2) and of t(t - 1)(2t + 5) over groups of size t. They are
    Python integers: t^3 of 10^6 fits into 64 bits, their product does not."""
    ordered = sizes * (sizes - 1)
    return int((ordered * (sizes - 2)).sum()), int((ordered * (2 * sizes + 5)).sum())
