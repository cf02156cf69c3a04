"""Tests of differences, their correction, and clusters.

Paired tests ask whether one system is better than another on the same items. d_i is the difference
of the two scores of item i and D the mean difference. Its distribution under the hypothesis that
the systems are equally good comes from one of two methods:

    permutation   Which system gave which of the two scores is chance: each d_i keeps or changes
                  its sign (Fisher 1935; Noreen 1989). The test is exact for every n.
    bootstrap     Items are drawn again; D* - D is distributed as D is around 0 (Efron and
                  Tibshirani 1993, 16.4). The percentiles of D* give the 95 % interval of D. The
                  test rejects too often on few items (7 % in place of 5 % for 20 items, 6 % for
                  50). Signs are kept until after centring; some tools take |D*| first, and their
                  test depends on D.

Williams' test asks whether one metric correlates better with people than another on the same items.
With r1, r2 the metrics' correlations with people, and r12 that of the metrics with each other,

    t = (r1 - r2) sqrt( (n - 1)(1 + r12) / (2 K (n - 1)/(n - 3) + (r1 + r2)^2/4 (1 - r12)^3) )
    K = 1 - r1^2 - r2^2 - r12^2 + 2 r1 r2 r12

has Student's distribution with n - 3 degrees of freedom if there is no difference (Williams 1959;
Steiger 1980, Eq. 7; Graham and Baldwin 2014 brought it to metrics). It is exact for Pearson's r of
normal data. For Spearman's rho it is a common approximation that rejects too often (7 % in place of
5 % in a simulation of 80 items); PERM-BOTH is the safe choice there.

PERM-BOTH is a permutation test of one metric over another (Deutsch, Dror and Roth 2021, TACL 9). If
two metrics are equally good, it is chance which of them gave which of the two scores of an item.
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
(`weighted_correlation.py`). A group with fewer than three items, or with equal human ratings,
orders nothing and is left out. If a swap makes the scores of a group equal, its r counts as 0 in
that round.

Holm's correction (1979) keeps the risk of one false claim among m tests at 5 %, however the tests
depend on each other. With p_(1) <= ... <= p_(m),

    adjusted p_(i) = min(1, max over j <= i of (m - j + 1) p_(j))

Clusters divide a ranking, best first, by one of two rules:

    all   A line is drawn between two neighbours if every system above is significantly better than
          every one below (WMT, Bojar et al. 2016, section 3).
    any   A line is drawn above a system if some system of the current cluster is significantly
          better (mt-metrics-eval, `AssignRanks`). No system of a cluster beats another of it, but
          systems of different clusters may be indistinguishable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval.agreement.arithmetic import (
    Floats,
    dense,
    exact_mean,
    student_two_sided_p,
    weighted_sums,
    without_rounding_errors,
)
from dialeval.agreement.bootstrap import Alternative, Resampling, p_value, resample
from dialeval.agreement.correlation import pearson, spearman
from dialeval.agreement.weighted_correlation import ROUNDING, spearman_of_counts


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Returns the adjusted p in the same order. A test that could not be made (None) does not
    count."""
    made = [place for place, p in enumerate(p_values) if p is not None]
    raw = np.array([p for p in p_values if p is not None], dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = np.maximum.accumulate(raw[order] * np.arange(len(raw), 0, -1))
    adjusted: list[float | None] = [None] * len(p_values)
    for place, value in zip(order, np.minimum(stepped, 1.0), strict=True):
        adjusted[made[place]] = float(value)
    return adjusted


ClusterRule = Literal["all", "any"]


@dataclass(frozen=True)
class Placed:
    """A side in the ranking; `mean` is over `n` items, `cluster` counts from 1."""

    name: str
    cluster: int
    mean: float | None
    n: int


def draw_lines(better: npt.NDArray[np.bool_], rule: ClusterRule = "all") -> list[int]:
    """Draws the cluster of each system. better[i, j] says that i is significantly better than j."""
    clusters: list[int] = []
    start = 0
    for place in range(len(better)):
        if rule == "all":
            line = place > 0 and bool(better[:place, place:].all())
        else:
            line = bool(better[start:place, place].any())
        if line:
            start = place
        clusters.append(clusters[-1] + line if clusters else 1)
    return clusters


PairedMethod = Literal["permutation", "bootstrap"]


@dataclass(frozen=True)
class PairedTest:
    """`difference` is the mean of first minus second; `p` is None if there is nothing to test.

    `low` and `high` bound the difference (bootstrap only). `n` items had both scores.
    """

    method: PairedMethod
    alternative: Alternative
    difference: float | None
    p: float | None
    n: int
    n_missing: int
    rounds: int
    low: float | None = None
    high: float | None = None
    reason: str = ""

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def paired_test(
    method: PairedMethod,
    first: Floats,
    second: Floats,
    resampling: Resampling,
    alternative: Alternative = "two-sided",
) -> PairedTest:
    """Tests the mean difference; the bootstrap also gives its interval. NaN is a missing score."""
    both = ~(np.isnan(first) | np.isnan(second))
    n, missing = int(both.sum()), int((~both).sum())
    differences = first[both] - second[both]
    observed = float(differences.mean()) if n else None
    if observed is None or n < 2:
        reason = "fewer than 2 items have a score on both sides"
        return PairedTest(method, alternative, observed, None, n, missing, 0, reason=reason)
    size = float(np.abs(differences).max())

    def flipped(uniform: Floats) -> Floats:
        means: Floats = np.where(uniform < 0.5, differences, -differences).mean(axis=1)
        return means

    def drawn(uniform: Floats) -> Floats:
        means: Floats = differences[(uniform * n).astype(np.intp)].mean(axis=1)
        return means

    low = high = None
    if method == "permutation":
        null = resample(flipped, n, resampling)
    else:
        draws = resample(drawn, n, resampling)
        low, high = (float(edge) for edge in np.quantile(draws, [0.025, 0.975]))
        null = draws - observed
    p = p_value(null, observed, size, alternative)
    return PairedTest(method, alternative, observed, p, n, missing, resampling.rounds, low, high)


CoefficientName = Literal["pearson", "spearman"]


@dataclass(frozen=True)
class MetricTest:
    """`first` and `second` are the metrics' correlations with people, `difference` first - second.

    `between` is the correlation of the metrics with each other. `p` is None if there is nothing to
    test, and `reason` says why. `rounds` is 0 for a test that does not resample.
    """

    method: Literal["williams", "perm-both"]
    coefficient: CoefficientName
    alternative: Alternative
    first: float | None
    second: float | None
    between: float | None
    difference: float | None
    p: float | None
    n: int
    n_missing: int
    rounds: int = 0
    reason: str = ""

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def williams_test(
    first: Floats,
    second: Floats,
    human: Floats,
    coefficient: CoefficientName = "pearson",
    alternative: Alternative = "two-sided",
) -> MetricTest:
    """Williams' test on the items that have both scores and a rating (NaN is missing)."""
    used = ~(np.isnan(first) | np.isnan(second) | np.isnan(human))
    n, missing = int(used.sum()), int((~used).sum())
    first, second, human = first[used], second[used], human[used]
    correlate = pearson if coefficient == "pearson" else spearman
    pairs = [(first, human), (second, human), (first, second)]
    found = [correlate(x, y) for x, y in pairs]
    r1, r2, between = (one.value for one in found)
    if r1 is None or r2 is None or between is None:
        p, reason = None, next(one.reason for one in found if one.value is None)
    else:
        p = williams_p(r1, r2, between, n, alternative)
        reason = "" if p is not None else "too few items, or metrics that are one"
    difference = None if r1 is None or r2 is None else r1 - r2
    return MetricTest(
        "williams", coefficient, alternative, r1, r2, between, difference, p, n, missing, 0, reason
    )


def williams_p(
    r1: float, r2: float, between: float, n: int, alternative: Alternative = "two-sided"
) -> float | None:
    """p from three correlations and n; None if n < 4 or the formula divides by 0."""
    if n < 4:
        return None
    determinant = 1 - r1**2 - r2**2 - between**2 + 2 * r1 * r2 * between
    # Real data make it negative only by rounding.
    below = 2 * max(0.0, determinant) * (n - 1) / (n - 3)
    below += (r1 + r2) ** 2 / 4 * (1 - between) ** 3
    if below <= 1e-15:
        return None
    t = (r1 - r2) * math.sqrt((n - 1) * (1 + between) / below)
    two_sided = student_two_sided_p(t, n - 3)
    if alternative == "two-sided":
        return two_sided
    return two_sided / 2 if t > 0 else 1 - two_sided / 2


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
