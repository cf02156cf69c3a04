"""Ranks and ties, of items as they are and of items that a bootstrap round draws several times.

Ranks count from 1 and equal values share the mean of the ranks that they take up. A round that
draws item i w_i times needs no sorting: the group g of equal values has t_g = sum of w_i members,
and each has the rank t_1 + ... + t_(g-1) + (t_g + 1) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Counts: TypeAlias = Floats
"""A row for each bootstrap round: how often it drew each item. Whole numbers kept as floats, which
BLAS can multiply: sums and products of them that stay below 2^53 are exact, whatever the order."""


@dataclass(frozen=True)
class TieGroups:
    """Items in ascending order, cut where the value changes."""

    order: Integers
    starts: Integers
    group: Integers
    """Of each item, in the order in which the items came."""

    def __len__(self) -> int:
        return len(self.starts)

    def sums(self, rows: Floats) -> Floats:
        """Sum over the items of each group, for each row; of counts, how many members it has."""
        ordered = np.take(rows, self.order, axis=1)
        if len(self.starts) == len(self.order):
            return ordered
        return np.add.reduceat(ordered, self.starts, axis=1)


def row_dots(first: Floats, second: Floats) -> Floats:
    """The product of each row with its neighbour. Exact where whole numbers stay below 2^53; beyond
    that, rounded by an order that depends less on how many rows there are than BLAS's does."""
    found: Floats = np.einsum("ij,ij->i", first, second)
    return found


def tie_groups(values: npt.NDArray[np.generic]) -> TieGroups:
    """Groups of equal values, ascending; within a group the items keep their order."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.cumsum(new) - 1
    return TieGroups(order, np.flatnonzero(new), group)


def dense(values: Floats) -> Integers:
    """0 for the smallest value, 1 for the next distinct one, and so on."""
    return tie_groups(values).group


def rank(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of the ranks that they take up."""
    groups = tie_groups(values)
    sizes = np.diff(np.append(groups.starts, len(values)))
    return (groups.starts + (sizes + 1) / 2)[groups.group]


def tied_pairs(values: Floats) -> int:
    """How many pairs of items have the same value."""
    sizes = np.diff(np.append(tie_groups(values).starts, len(values)))
    return int((sizes * (sizes - 1) // 2).sum())
