"""Which items are compared: all, systems by their means, or the items within a group.

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
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dialeval.agreement.correlation import (
    CONSTANT,
    Coefficient,
    Correlation,
    Numbers,
    complete_pairs,
    spearman,
)
from dialeval.agreement.exact_means import exact_mean, settled
from dialeval.agreement.ranks import Floats, Integers
from dialeval.agreement.student import student_quantile, student_two_sided_p


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
