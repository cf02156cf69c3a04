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
5 % in a simulation of 80 items); `perm_both` is the safe choice there.

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
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dialeval.agreement.bootstrap import Alternative, Resampling, p_value, resample
from dialeval.agreement.correlation import pearson, spearman
from dialeval.agreement.ranks import Floats
from dialeval.agreement.student import student_two_sided_p


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
    """A side in the ranking; `mean` is over its own items, `cluster` counts from 1."""

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
