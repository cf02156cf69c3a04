"""Correlation between what a metric says and what people say.

    pearson    r, with p from Student's t
    spearman   r of the ranks, where ties share their mean rank; p likewise, but p of at most 8
               items is exact: all their orders are counted
    kendall    tau-b; p is exact for few items without ties, else from the normal distribution

p is two-sided and tests the hypothesis that there is no correlation. An interval needs a
`Bootstrap`, which holds the generator (see `bootstrap.py`):

    correlations(scores, ratings, Bootstrap(np.random.default_rng(1)))["spearman"].low

A correlation is undefined for fewer than three pairs, or if one side is constant. It then has a
reason in place of a number.

Items can be compared in three ways:

    per turn     One correlation of all items. It mixes "this system is better" with "this context
                 is easier".
    per system   The correlation of the system means (x̄_s, ȳ_s), one pair for each system.
    within       The mean over the groups g of the correlation within g. Grouped by item (context),
                 it asks whether the metric tells good answers to the same context from bad ones.

The mean within groups has p and an interval from Student's t over the k groups where it is defined:

    mean -+ t_(k-1) s / sqrt k

Groups where it is undefined are left out of the mean; their number and reasons are reported.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from dialeval.agreement.arithmetic import (
    Counts,
    Floats,
    Integers,
    correlation_two_sided_p,
    exact_mean,
    rank,
    student_quantile,
    student_two_sided_p,
    tied_pairs,
    without_rounding_errors,
)
from dialeval.agreement.bootstrap import (
    BOOTSTRAP_FROM,
    Bootstrap,
    Statistic,
    bootstrap_values,
    fisher_interval,
    formula_interval,
    studentised_interval,
)
from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.weighted_correlation import (
    MOST_ITEMS,
    KendallCounts,
    exact_rank_p,
    pearson_r,
    pearson_with_error,
    spearman_of_counts,
)

Name: TypeAlias = Literal["pearson", "spearman", "kendall"]
NAMES: tuple[Name, ...] = ("pearson", "spearman", "kendall")
Numbers: TypeAlias = Sequence[float | None] | Floats
"""Missing numbers are None or NaN."""
Correlate: TypeAlias = Callable[[Numbers, Numbers, Bootstrap | None], Coefficient]
"""`pearson`, `spearman` or `kendall`."""

FEWEST = 3
"""Two pairs always correlate perfectly, so a correlation needs three."""

CONSTANT = "constant"
"""The reason if all items of a side have the same number."""


def pearson(x: Numbers, y: Numbers, bootstrap: Bootstrap | None = None) -> Coefficient:
    """Linear correlation. Pairs with a missing side are left out and counted."""
    return correlations(x, y, bootstrap, ["pearson"])["pearson"]


def spearman(x: Numbers, y: Numbers, bootstrap: Bootstrap | None = None) -> Coefficient:
    """Rank correlation. Pairs with a missing side are left out and counted."""
    return correlations(x, y, bootstrap, ["spearman"])["spearman"]


def kendall(x: Numbers, y: Numbers, bootstrap: Bootstrap | None = None) -> Coefficient:
    """Rank correlation by pairs of items (tau-b). Missing sides are left out and counted."""
    return correlations(x, y, bootstrap, ["kendall"])["kendall"]


def correlations(
    x: Numbers, y: Numbers, bootstrap: Bootstrap | None = None, names: Sequence[Name] = NAMES
) -> dict[Name, Coefficient]:
    """Computes several coefficients at once. They share the draws; each equals what it would be
    alone."""
    pairs = complete_pairs(x, y)
    ties = tied_pairs(pairs.x), tied_pairs(pairs.y)
    if bootstrap:
        pairs = _in_order(pairs, ties)
    found: dict[Name, Coefficient] = {}
    statistics: dict[Name, Callable[[], Statistic]] = {}
    for name in names:
        reason = _why_undefined(name, pairs)
        value, p = None, None
        if not reason:
            value, p, statistics[name] = _COMPUTED[name](pairs.x, pairs.y)
        found[name] = Coefficient(
            value, pairs.n, pairs.n_missing, reason, p, ties_x=ties[0], ties_y=ties[1]
        )
    if bootstrap:
        few = [name for name in statistics if pairs.n < BOOTSTRAP_FROM[name]]
        made = {name: make() for name, make in statistics.items() if name not in few}
        rounds = bootstrap_values(list(made.values()), pairs.n, bootstrap) if made else []
        for (name, statistic), values in zip(made.items(), rounds, strict=True):
            if name == "pearson":
                error, (r, errors) = float(statistic(_once(pairs.n))[0, 1]), values.T
                one = studentised_interval(found[name], error, r, errors, bootstrap.level)
            else:
                one = fisher_interval(found[name], values, bootstrap.level)
            found[name] = one
        for name in few:
            found[name] = formula_interval(name, found[name], bootstrap.level)
    return found


@dataclass(frozen=True)
class Pairs:
    """The items that have both sides."""

    x: Floats
    y: Floats
    n_missing: int

    @property
    def n(self) -> int:
        return len(self.x)


def complete_pairs(x: Numbers, y: Numbers) -> Pairs:
    """Leaves out and counts the items with a missing side."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"cannot pair {first.shape} with {second.shape} numbers")
    there = ~(np.isnan(first) | np.isnan(second))
    return Pairs(first[there], second[there], int((~there).sum()))


def _in_order(pairs: Pairs, ties: tuple[int, int]) -> Pairs:
    """Sorts the items by the side with fewer ties. The interval then does not depend on the order
    of the items, and rounds, which go through the items in that order, read memory in sequence."""
    keys = (pairs.y, pairs.x) if ties[0] <= ties[1] else (pairs.x, pairs.y)
    order = np.lexsort(keys)
    return replace(pairs, x=pairs.x[order], y=pairs.y[order])


def _why_undefined(name: Name, pairs: Pairs) -> str:
    if pairs.n < FEWEST:
        return f"fewer than {FEWEST} pairs"
    if any(side.min() == side.max() for side in (pairs.x, pairs.y)):
        return CONSTANT
    if name == "pearson" and not (np.isfinite(pairs.x).all() and np.isfinite(pairs.y).all()):
        return "infinite values"
    return ""


Computed: TypeAlias = tuple[float, float, Callable[[], Statistic]]
"""Value, p, and a function that makes the statistic for a bootstrap, which is slow to set up."""


def _pearson(x: Floats, y: Floats) -> Computed:
    value = pearson_r(x, y)
    return value, correlation_two_sided_p(value, len(x)), lambda: pearson_with_error(x, y)


def _spearman(x: Floats, y: Floats) -> Computed:
    ranks = rank(x), rank(y)
    value = pearson_r(*ranks)
    few = len(x) <= MOST_ITEMS
    p = exact_rank_p(*ranks) if few else correlation_two_sided_p(value, len(x))
    return value, p, lambda: spearman_of_counts(x, y)


def _kendall(x: Floats, y: Floats) -> Computed:
    counts = KendallCounts(x, y)
    value = float(counts.of_counts(_once(len(x)))[0])
    return value, counts.two_sided_p(), lambda: KendallCounts(x, y, many_rounds=True).of_counts


_COMPUTED: dict[Name, Callable[[Floats, Floats], Computed]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}


def _once(n: int) -> Counts:
    """Returns the weights of the items as they are, each once."""
    return np.ones((1, n))


@dataclass(frozen=True)
class SystemMeans:
    """One pair for each system; NaN if no item of the system has both sides."""

    x: Floats
    y: Floats


def system_means(x: Numbers, y: Numbers, systems: Sequence[Hashable]) -> SystemMeans:
    """Returns the means of each system over its items that have both sides."""
    members = group_members(systems, len(x))
    means = np.full((2, len(members)), np.nan)
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    for i, items in enumerate(members):
        pairs = complete_pairs(first[items], second[items])
        if pairs.n:
            means[:, i] = exact_mean(pairs.x), exact_mean(pairs.y)
    return SystemMeans(without_rounding_errors(means[0]), without_rounding_errors(means[1]))


def within_groups(
    x: Numbers,
    y: Numbers,
    groups: Sequence[Hashable],
    coefficient: Correlate = spearman,
    level: float = 0.95,
    flat: float | None = None,
) -> Coefficient:
    """Returns the mean of the correlations within groups; each group has the same weight.

    flat    the value of a group where x is constant and y is not. None leaves such groups out.
            Metrics that are compared with each other must be judged on the same groups.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)

    def inside(items: Integers) -> Coefficient:
        one = coefficient(first[items], second[items], None)
        is_flat = one.reason == CONSTANT and np.ptp(complete_pairs(first[items], second[items]).y)
        return replace(one, value=flat, reason="") if flat is not None and is_flat else one

    found = [inside(items) for items in group_members(groups, len(x))]
    values = [one.value for one in found if one.value is not None]
    undefined = Counter(one.reason for one in found if one.value is None)
    result = Coefficient(
        value=math.fsum(values) / len(values) if values else None,
        n=sum(one.n for one in found),
        n_missing=sum(one.n_missing for one in found),
        groups=len(values),
        undefined_groups=dict(sorted(undefined.items())),
        ties_x=sum(one.ties_x for one in found),
        ties_y=sum(one.ties_y for one in found),
        reason="" if values else "undefined in every group",
    )
    return _with_student(result, values, level)


def group_members(groups: Sequence[Hashable], n: int) -> list[Integers]:
    """Returns the positions of the items of each group; groups are in the order of their first
    item."""
    if len(groups) != n:
        raise ValueError(f"{len(groups)} groups for {n} items")
    number: dict[Hashable, int] = {}
    belongs = np.array([number.setdefault(group, len(number)) for group in groups], dtype=np.int64)
    order = np.argsort(belongs, kind="stable")
    cuts = np.flatnonzero(np.diff(belongs[order])) + 1
    return list(np.split(order, cuts)) if n else []


def _with_student(result: Coefficient, values: Sequence[float], level: float) -> Coefficient:
    k = len(values)
    if result.value is None or k < 2 or min(values) == max(values):
        return result
    error = float(np.std(values, ddof=1)) / math.sqrt(k)
    half = student_quantile((1 + level) / 2, k - 1) * error
    return replace(
        result,
        p=student_two_sided_p(result.value / error, k - 1),
        low=max(-1.0, result.value - half),
        high=min(1.0, result.value + half),
    )
