"""How many pairs of items are ordered contrarily on two sides? For any weights of the items.

Bootstrap rounds ask this of the same items a thousand times, each time with other weights (how
often a round drew an item): D = sum of w_i w_j over the discordant pairs. Which pairs those are is
laid out once, in one of two ways. Weights are whole numbers, so both give the same number, exactly.

`running_sums`, for any number of items. In the order of x (of y within a tie of x) D counts the
inversions of y. They are found bit by bit of y's dense rank, from the highest: two items whose
ranks agree in the bits above are inverted here if the first has a 1 and the second a 0. A round
costs one running sum for every bit. The side with fewer distinct values is taken for y: 5 grades
need 3 bits.

`matrix_products`, about twice as fast for a thousand items. x and y are cut into blocks of
64 or 128 items in a row. For a pair in the same block of x a matrix says whether it is discordant
(w M w^T with the weights w of the block); likewise for a pair in the same block of y, if its blocks
of x differ. All other pairs are discordant as their blocks are: the weights of each block of x are
summed by the blocks of y, and compared with those of the blocks before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dialeval.agreement.exact_sums import exact_product
from dialeval.agreement.ranks import Counts, Floats, Integers, TieGroups, row_dots, tie_groups

Discordant: TypeAlias = Callable[[Counts], Floats]
"""D of each row of weights."""

BLOCK, LARGER_BLOCK, LARGER_FROM = 64, 128, 4096
"""Items of a block, and from how many items on it is the larger one. The fastest, as measured."""


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
    """Where the ones and zeros of a bit lie. Ones [start, end) of the running order precede a zero
    among the items that agree with it in the bits above."""

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
        """1 for the pairs that are discordant, each in both places."""
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
    """The block of each item: as many values in a row as have `block` items, one at least."""
    sizes = np.diff(np.append(groups.starts, len(groups.order)))
    of_group, number, room = np.empty(len(sizes), dtype=np.int64), -1, 0
    for group, size in enumerate(sizes.tolist()):
        if size > room:
            number, room = number + 1, block
        of_group[group] = number
        room -= size
    return of_group[groups.group]


def _members(block: Integers, groups: TieGroups) -> Iterator[Integers]:
    """The items of each block, in the order of their values."""
    ordered = block[groups.order]
    yield from np.split(groups.order, np.flatnonzero(np.diff(ordered)) + 1)
