"""Correlation between what a metric says and what people say.

    pearson    r, with p from Student's t
    spearman   r of the ranks, ties sharing their mean rank; p likewise, of
               at most 8 items by counting all their orders
    kendall    tau-b; p exact for few items without ties, else normal

p is two-sided, of the hypothesis that there is no correlation. A confidence interval needs a
`Bootstrap`, which holds the generator (few items have one from a formula: `bootstrap.py`):

    correlations(scores, ratings, Bootstrap(np.random.default_rng(1)))["spearman"].low

Where a correlation is not defined (fewer than three pairs, or one side constant) there is no
number, and a reason in its place. 0 would say that there is no agreement, which nobody measured.

Which items are compared: all, systems by their means, or the items within a group.

    per turn     one correlation of all items: mixes "this system is better" with "this context is
                 easier"
    per system   the correlation of the system means (x̄_s, ȳ_s), one pair for each system
    within       mean over the groups g of the correlation within g. Grouped by item (context), it
                 asks whether the metric tells good answers to the same context from bad ones.

The mean within groups has p and an interval from Student's t over the k groups where it is defined:

    mean -+ t_(k-1) s / sqrt k

Groups where it is not defined are left out of the mean, counted, and their reasons told.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from dialeval.agreement.bootstrap import (
    BOOTSTRAP_FROM,
    Bootstrap,
    Interval,
    Statistic,
    bootstrap_values,
    fisher_interval,
    interval_of_few,
    studentised_interval,
)
from dialeval.agreement.ranks import Counts, Floats, Integers, exact_mean, rank, settled, tied_pairs
from dialeval.agreement.student import (
    correlation_two_sided_p,
    student_quantile,
    student_two_sided_p,
)
from dialeval.agreement.weighted_correlation import (
    MOST_ITEMS,
    KendallCounts,
    exact_rank_p,
    pearson_r,
    pearson_with_error,
    spearman_of_counts,
)

__all__ = ["Correlation", "correlations", "kendall", "pearson", "rank", "spearman"]

Name: TypeAlias = Literal["pearson", "spearman", "kendall"]
NAMES: tuple[Name, ...] = ("pearson", "spearman", "kendall")
Numbers: TypeAlias = Sequence[float | None] | Floats
"""Missing ones are None or NaN."""
Coefficient: TypeAlias = Callable[[Numbers, Numbers, Bootstrap | None], "Correlation"]
"""`pearson`, `spearman` or `kendall`."""

FEWEST = 3
"""Two pairs always correlate perfectly."""

CONSTANT = "constant"
"""Why there is no correlation where all items of a side have the same number."""


@dataclass(frozen=True)
class Correlation:
    """`value` is None where it is not defined, and `reason` says why. `n` pairs were complete."""

    name: Name
    value: float | None
    n: int
    n_missing: int = 0
    p: float | None = None
    low: float | None = None
    high: float | None = None
    """Also None without a bootstrap, and where `no_interval` says why there is none."""
    ties_x: int = 0
    """Pairs of items with the same x, of n(n - 1)/2."""
    ties_y: int = 0
    reason: str = ""
    no_interval: str = ""


def pearson(x: Numbers, y: Numbers, bootstrap: Bootstrap | None = None) -> Correlation:
    """Linear correlation. Pairs with a missing side are left out and counted."""
    return correlations(x, y, bootstrap, ["pearson"])["pearson"]


def spearman(x: Numbers, y: Numbers, bootstrap: Bootstrap | None = None) -> Correlation:
    """Rank correlation. Pairs with a missing side are left out and counted."""
    return correlations(x, y, bootstrap, ["spearman"])["spearman"]


def kendall(x: Numbers, y: Numbers, bootstrap: Bootstrap | None = None) -> Correlation:
    """Rank correlation by pairs of items (tau-b). Missing sides are left out and counted."""
    return correlations(x, y, bootstrap, ["kendall"])["kendall"]


def correlations(
    x: Numbers, y: Numbers, bootstrap: Bootstrap | None = None, names: Sequence[Name] = NAMES
) -> dict[Name, Correlation]:
    """Several at once. They share the draws, and each equals what it would be alone."""
    pairs = complete_pairs(x, y)
    ties = tied_pairs(pairs.x), tied_pairs(pairs.y)
    if bootstrap:
        pairs = _in_order(pairs, ties)
    found: dict[Name, Correlation] = {}
    statistics: dict[Name, Callable[[], Statistic]] = {}
    for name in names:
        reason = _why_undefined(name, pairs)
        value, p = None, None
        if not reason:
            value, p, statistics[name] = _COMPUTED[name](pairs.x, pairs.y)
        found[name] = Correlation(
            name, value, pairs.n, pairs.n_missing, p, None, None, *ties, reason
        )
    if bootstrap:
        few = [name for name in statistics if pairs.n < BOOTSTRAP_FROM[name]]
        made = {name: make() for name, make in statistics.items() if name not in few}
        rounds = bootstrap_values(list(made.values()), pairs.n, bootstrap) if made else []
        for (name, statistic), values in zip(made.items(), rounds, strict=True):
            found[name] = _with_interval(found[name], statistic, values, bootstrap.level)
        for name in few:
            interval = interval_of_few(name, found[name].value or 0.0, pairs.n, bootstrap.level)
            found[name] = _between(found[name], interval)
    return found


@dataclass(frozen=True)
class Pairs:
    """What two lists have in common: both sides of an item are there."""

    x: Floats
    y: Floats
    n_missing: int

    @property
    def n(self) -> int:
        return len(self.x)


def complete_pairs(x: Numbers, y: Numbers) -> Pairs:
    """Leaves out and counts the pairs with a missing side."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"cannot pair {first.shape} with {second.shape} numbers")
    there = ~(np.isnan(first) | np.isnan(second))
    return Pairs(first[there], second[there], int((~there).sum()))


def _in_order(pairs: Pairs, ties: tuple[int, int]) -> Pairs:
    """Ascending on the side with fewer ties. Then the interval does not hang on the order in which
    the items came, and rounds, which go through the items in that order, read memory in a row."""
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
"""Value, p, and what makes the statistic for a bootstrap: it sorts, so only where one is wanted."""


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


def _with_interval(
    correlation: Correlation, statistic: Statistic, rounds: Floats, level: float
) -> Correlation:
    value, n = correlation.value, correlation.n
    if value is None:
        return correlation
    interval: Interval
    if correlation.name == "pearson":
        error = float(statistic(_once(n))[0, 1])
        interval = studentised_interval(value, error, rounds[:, 0], rounds[:, 1], n, level)
    else:
        interval = fisher_interval(value, rounds, n, level)
    return _between(correlation, interval)


def _between(correlation: Correlation, ends: Interval) -> Correlation:
    return replace(correlation, low=ends.low, high=ends.high, no_interval=ends.reason)


def _once(n: int) -> Counts:
    """The items as they are, each once."""
    return np.ones((1, n))


@dataclass(frozen=True)
class WithinGroups:
    """`value` is None where no group has a defined correlation, and `reason` says why."""

    value: float | None
    n: int
    """Complete pairs, in all groups."""
    n_missing: int
    n_groups: int
    """Groups in the mean."""
    n_undefined: int
    """Groups left out of it."""
    p: float | None = None
    low: float | None = None
    high: float | None = None
    undefined: dict[str, int] = field(default_factory=dict)
    """How many groups were left out, by reason."""
    ties_x: int = 0
    """Pairs of items within a group with the same x."""
    ties_y: int = 0
    reason: str = ""


@dataclass(frozen=True)
class SystemMeans:
    """One pair for each system, NaN for a system without an item that has both sides."""

    x: Floats
    y: Floats


def system_means(x: Numbers, y: Numbers, systems: Sequence[Hashable]) -> SystemMeans:
    """Both means of a system are over its items with both sides."""
    members = group_members(systems, len(x))
    means = np.full((2, len(members)), np.nan)
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    for i, items in enumerate(members):
        pairs = complete_pairs(first[items], second[items])
        if pairs.n:
            means[:, i] = exact_mean(pairs.x), exact_mean(pairs.y)
    return SystemMeans(settled(means[0]), settled(means[1]))


def within_groups(
    x: Numbers,
    y: Numbers,
    groups: Sequence[Hashable],
    coefficient: Coefficient = spearman,
    level: float = 0.95,
    flat: float | None = None,
) -> WithinGroups:
    """The mean of the correlations within groups, each group counting alike.

    flat    what a group counts as where x is the same for all items and y is not; None: it is left
            out. Metrics that are compared must be held against the same groups.
    """
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)

    def inside(items: Integers) -> Correlation:
        one = coefficient(first[items], second[items], None)
        is_flat = one.reason == CONSTANT and np.ptp(complete_pairs(first[items], second[items]).y)
        return replace(one, value=flat, reason="") if flat is not None and is_flat else one

    found = [inside(items) for items in group_members(groups, len(x))]
    values = [one.value for one in found if one.value is not None]
    undefined = Counter(one.reason for one in found if one.value is None)
    result = WithinGroups(
        value=math.fsum(values) / len(values) if values else None,
        n=sum(one.n for one in found),
        n_missing=sum(one.n_missing for one in found),
        n_groups=len(values),
        n_undefined=len(found) - len(values),
        undefined=dict(sorted(undefined.items())),
        ties_x=sum(one.ties_x for one in found),
        ties_y=sum(one.ties_y for one in found),
        reason="" if values else "undefined in every group",
    )
    return _with_student(result, values, level)


def group_members(groups: Sequence[Hashable], n: int) -> list[Integers]:
    """The positions of the items of each group, groups in the order in which they first occur."""
    if len(groups) != n:
        raise ValueError(f"{len(groups)} groups for {n} items")
    number: dict[Hashable, int] = {}
    belongs = np.array([number.setdefault(group, len(number)) for group in groups], dtype=np.int64)
    order = np.argsort(belongs, kind="stable")
    cuts = np.flatnonzero(np.diff(belongs[order])) + 1
    return list(np.split(order, cuts)) if n else []


def _with_student(result: WithinGroups, values: Sequence[float], level: float) -> WithinGroups:
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
