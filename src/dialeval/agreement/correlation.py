"""Correlation between what a metric says and what people say.

    pearson    r, with p from Student's t                               (product_moment.py)
    spearman   r of the ranks, ties sharing their mean rank; p likewise (product_moment.py), of
               at most 8 items by counting all their orders             (exact_p.py)
    kendall    tau-b; p exact for few items without ties, else normal   (kendall.py)

p is two-sided, of the hypothesis that there is no correlation. A confidence interval needs a
`Bootstrap`, which holds the generator (few items have one from a formula: `few_items.py`):

    correlations(scores, ratings, Bootstrap(np.random.default_rng(1)))["spearman"].low

Where a correlation is not defined (fewer than three pairs, or one side constant) there is no
number, and a reason in its place. 0 would say that there is no agreement, which nobody measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from dialeval.agreement.bootstrap import (
    Bootstrap,
    Interval,
    Statistic,
    fisher_interval,
    resample,
    studentised_interval,
)
from dialeval.agreement.exact_p import MOST_ITEMS, exact_two_sided_p
from dialeval.agreement.few_items import BOOTSTRAP_FROM, interval_of_few
from dialeval.agreement.kendall import KendallCounts
from dialeval.agreement.product_moment import pearson_r, pearson_with_error, spearman_of_counts
from dialeval.agreement.ranks import Counts, Floats, rank, tied_pairs
from dialeval.agreement.student import correlation_two_sided_p

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
        rounds = resample(list(made.values()), pairs.n, bootstrap) if made else []
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
    p = exact_two_sided_p(*ranks) if few else correlation_two_sided_p(value, len(x))
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
