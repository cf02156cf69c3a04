"""PERM-BOTH: a permutation test of one metric over another (Deutsch, Dror and Roth 2021, TACL 9).

If two metrics are equally good, it is chance which of them gave which of the two scores of an item.
Scores are first standardised (mean 0, variance 1, Algorithm 2). In each round every item swaps its
two scores with probability 1/2, and

    delta = r(first, human) - r(second, human)

is recomputed. Single scores are swapped rather than whole systems or inputs, so both systems and
items vary, as the paper recommends. r is computed at one of three levels:

turn      over all items
system    of the means of the groups (label items with their system)
group     within each group, averaged over groups (label items with the item or the system)

At the level `turn` a round is fast. With the half sum m and half difference d of the two scores,
first and second become m + s d and m - s d with s = 1 or -1, so Pearson's r only needs the sums of
s d, s d h and s m d. For Spearman's rho all 2n scores are sorted once; a round draws n of them for
the first metric and leaves the others to the second, like a bootstrap of 2n items
(`weighted_correlation.py`).

A group with fewer than three items, or with equal human ratings, orders nothing and is left out. If
a swap makes the scores of a group equal, its r counts as 0 in that round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval.agreement.bootstrap import Alternative, Resampling, p_value, resample
from dialeval.agreement.correlation import pearson, spearman
from dialeval.agreement.ranks import (
    Floats,
    dense,
    exact_mean,
    weighted_sums,
    without_rounding_errors,
)
from dialeval.agreement.significance import CoefficientName, MetricTest
from dialeval.agreement.weighted_correlation import ROUNDING, spearman_of_counts

CorrelationLevel = Literal["turn", "system", "group"]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
BothAgreements: TypeAlias = Callable[[Mask], tuple[Floats, Floats]]
"""Maps rows of swapped items to both correlations with the human ratings."""


def perm_both(
    first: Floats,
    second: Floats,
    human: Floats,
    resampling: Resampling,
    *,
    coefficient: CoefficientName = "pearson",
    alternative: Alternative = "two-sided",
    level: CorrelationLevel = "turn",
    groups: Sequence[str] = (),
) -> MetricTest:
    """Tests two metrics on the items that have both scores and a rating (NaN is missing)."""
    if level != "turn" and len(groups) != len(human):
        raise ValueError(f"level {level!r} needs a group for each of the {len(human)} items")
    labels = np.unique(groups, return_inverse=True)[1] if level != "turn" else np.zeros(len(human))
    used = ~(np.isnan(first) | np.isnan(second) | np.isnan(human))
    if level == "group":
        used[used] = _orders_something(labels[used], human[used])
    order = np.flatnonzero(used)[np.argsort(labels[used], kind="stable")]
    first, second, human = first[order], second[order], human[order]
    groups_of = _Groups.of(labels[order])
    n, missing = len(order), len(used) - len(order)

    correlate = pearson if coefficient == "pearson" else spearman
    between = correlate(first, second)
    untested = MetricTest(
        "perm-both", coefficient, alternative, None, None, between.value, None, None, n, missing
    )
    if reason := _refusal((first, second, human), groups_of, level):
        return replace(untested, reason=reason)
    first, second = ((side - side.mean()) / side.std() for side in (first, second))
    if level != "turn":
        both = _of_groups(first, second, human, groups_of, level, coefficient == "spearman")
    else:
        both = (_pearson if coefficient == "pearson" else _spearman)(first, second, human)

    def delta(uniform: Floats) -> Floats:
        one, other = both(uniform < 0.5)
        return one - other

    r1, r2 = (float(side[0]) for side in both(np.zeros((1, n), dtype=bool)))
    p = p_value(resample(delta, n, resampling), r1 - r2, 1.0, alternative)
    rounds = resampling.rounds
    return replace(untested, first=r1, second=r2, difference=r1 - r2, p=p, rounds=rounds)


def _refusal(sides: Sequence[Floats], groups: _Groups, level: CorrelationLevel) -> str:
    """Returns the reason why there is no correlation to test; empty if there is one."""
    points = [groups.exact_means(side) for side in sides] if level == "system" else sides
    if len(points[0]) < 3:
        return f"fewer than 3 {'systems' if level == 'system' else 'items'}"
    if not all(np.isfinite(side).all() for side in sides):
        return "infinite values"
    return "constant" if any(side.min() == side.max() for side in points) else ""


def _pearson(first: Floats, second: Floats, human: Floats) -> BothAgreements:
    centred = human - human.mean()
    centred /= np.sqrt(centred @ centred)
    middle, half = (first + second) / 2, (first - second) / 2
    sums = weighted_sums(np.column_stack([half, half * centred, middle * half]))
    squares = float(middle @ middle + half @ half)

    def agreement(moved: Floats) -> Floats:
        """Returns the correlation of `middle` plus the signed `half` with people."""
        total, product, square = moved.T
        spread = squares + 2 * square - (middle.sum() + total) ** 2 / len(human)
        defined = spread > ROUNDING * squares
        r = (float(middle @ centred) + product) / np.sqrt(np.where(defined, spread, 1.0))
        return np.where(defined, r.clip(-1.0, 1.0), 0.0)

    def both(swap: Mask) -> tuple[Floats, Floats]:
        moved = sums(np.where(swap, -1.0, 1.0))
        return agreement(moved), agreement(-moved)

    return both


def _spearman(first: Floats, second: Floats, human: Floats) -> BothAgreements:
    statistic = spearman_of_counts(np.concatenate([first, second]), np.tile(human, 2))

    def both(swap: Mask) -> tuple[Floats, Floats]:
        chosen = np.hstack([~swap, swap]).astype(np.float64)
        one, other = (np.nan_to_num(statistic(counts)) for counts in (chosen, 1 - chosen))
        return one, other

    return both


def _of_groups(
    first: Floats,
    second: Floats,
    human: Floats,
    groups: _Groups,
    level: CorrelationLevel,
    ranked: bool,
) -> BothAgreements:
    whole = _Groups(np.zeros(1, dtype=np.int64), np.array([len(groups.sizes)]))

    def means(rows: Floats) -> Floats:
        return groups.sums(rows) / groups.sizes

    target = human[None] if level == "group" else groups.exact_means(human)[None]

    def agreement(rows: Floats) -> Floats:
        if level == "group":
            return _mean_correlation(rows, target, groups, ranked)
        return _mean_correlation(means(rows), target, whole, ranked)

    def both(swap: Mask) -> tuple[Floats, Floats]:
        one, other = np.where(swap, second, first), np.where(swap, first, second)
        return agreement(one), agreement(other)

    return both


@dataclass(frozen=True)
class _Groups:
    """Items sorted by group: the start and the size of each group."""

    starts: Places
    sizes: Places

    @classmethod
    def of(cls, labels: npt.NDArray[np.generic]) -> _Groups:
        starts = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]])[: len(labels)])
        return cls(starts, np.diff(np.append(starts, len(labels))))

    def sums(self, rows: Floats) -> Floats:
        return np.add.reduceat(rows, self.starts, axis=1)

    def exact_means(self, values: Floats) -> Floats:
        """Groups with the same mean are tied, as in `system_means`."""
        return without_rounding_errors(
            np.array([exact_mean(part) for part in np.split(values, self.starts[1:])])
        )

    def spread(self, values: Floats) -> Floats:
        return np.repeat(values, self.sizes, axis=1)


def _mean_correlation(rows: Floats, target: Floats, groups: _Groups, ranked: bool) -> Floats:
    """Returns, for each row, the mean over groups of its correlation with the target."""
    if ranked:
        rows, target = _ranks(rows, groups), _ranks(target, groups)
    centred = [side - groups.spread(groups.sums(side) / groups.sizes) for side in (rows, target)]
    norms = [np.sqrt(groups.sums(side**2)) for side in centred]
    below = norms[0] * norms[1]
    # Rounding errors are no spread: scores are of size 1 here, and ranks are larger.
    defined = norms[0] > 1e-12 * np.sqrt(groups.sizes)
    above = groups.sums(centred[0] * centred[1])
    r = np.divide(above, below, out=np.zeros_like(below), where=defined).clip(-1.0, 1.0)
    means: Floats = r.mean(axis=1)
    return means


def _ranks(rows: Floats, groups: _Groups) -> Floats:
    """Ranks within each row and group, up to a constant per group, which no correlation sees."""
    height, width = rows.shape
    if len(groups.sizes) > 1:
        places = np.repeat(np.arange(len(groups.sizes)), groups.sizes)
        rows = (dense(rows.ravel()).reshape(height, width) + places * rows.size).astype(np.float64)
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    fresh = np.ones((height, width), dtype=bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # Runs of equal values in all rows at once; none crosses from one row into the next.
    starts = np.flatnonzero(fresh)
    ends = np.append(starts[1:], rows.size)
    shared = np.repeat((starts + ends + 1) / 2, ends - starts).reshape(height, width)
    ranks = np.empty((height, width))
    np.put_along_axis(ranks, order, shared - np.arange(height)[:, None] * width, axis=1)
    return ranks


def _orders_something(labels: npt.NDArray[np.generic], human: Floats) -> Mask:
    """Returns whether the group of each item has three items or more, and different ratings."""
    keep = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        inside = labels == label
        keep[inside] = inside.sum() >= 3 and np.ptp(human[inside]) > 0
    return keep
