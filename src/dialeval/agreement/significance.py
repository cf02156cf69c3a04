"""Holm's correction: many comparisons, and still at most 5 % risk of one false claim.

With m values of p in ascending order p_(1) <= ... <= p_(m),

    adjusted p_(i) = min(1, max over j <= i of (m - j + 1) p_(j))       (Holm 1979)

It needs no assumption about how the tests depend on each other.

Significance clusters: a ranking that claims no more than the data show.

Systems stand in the order of their means, best first, and each pair is compared (`findings.py`,
`metric_ranking.py`). Lines are then drawn by one of two rules:

all   between two neighbours where every system above is significantly better than every one below
      (WMT, Bojar et al. 2016, section 3). What a line says is true of every pair across it.
any   above a system than which some system of the current cluster is significantly better
      (mt-metrics-eval, `AssignRanks`). No system of a cluster beats another of it, but systems of
      different clusters may be indistinguishable.

Is one system better than another on the same items?

With d_i the difference of the two scores of item i and D its mean, what D would be if the systems
were equally good is found in two ways:

permutation   which system gave which of the two scores is chance: each d_i keeps or changes its
              sign, mean of s_i d_i (Fisher 1935; Noreen 1989). Exact for every n.
bootstrap     items are drawn again; the mean D* of a draw spreads around D as D would around 0:
              D* - D (Efron and Tibshirani 1993, 16.4). Signs are kept until after centring; taking
              |D*| first, as some tools do, makes the test depend on how large D is. Rejects
              too often on few items (7 % in place of 5 % of 20 items, 6 % of 50).

The bootstrap also gives the 95 % interval of D, the percentiles of D*.

Williams' test: does one metric correlate better with people than another on the same items?

Both correlations share the human ratings, so they depend on each other. With r1, r2 the metrics'
correlations with people, r12 that of the metrics with each other, n items,

    t = (r1 - r2) sqrt( (n - 1)(1 + r12) / (2 K (n - 1)/(n - 3) + (r1 + r2)^2/4 (1 - r12)^3) )
    K = 1 - r1^2 - r2^2 - r12^2 + 2 r1 r2 r12

has Student's distribution with n - 3 degrees of freedom when there is no difference (Williams
1959; Steiger 1980, Eq. 7; brought to metrics by Graham and Baldwin 2014). Exact for Pearson's r of
normal data; of Spearman's rho an approximation that is widely used but rejects too often (7 % in
place of 5 % in a simulation of 80 items): `perm_both` is the safe choice there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dialeval.agreement.bootstrap import Alternative, Resampling, p_value, resample
from dialeval.agreement.coefficient import pearson_of, spearman_of
from dialeval.agreement.ranks import Floats
from dialeval.agreement.student import student_two_sided_p


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p in the order given. A test that could not be made (None) is not counted."""
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
    """A system in the ranking; `mean` is over its own items, `cluster` counts from 1."""

    name: str
    cluster: int
    mean: float | None
    n: int


def draw_lines(better: npt.NDArray[np.bool_], rule: ClusterRule = "all") -> list[int]:
    """The cluster of each system, best first; better[i, j]: i is significantly better than j."""
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
    """`difference` is the mean of first minus second; `p` is None where there is nothing to test.

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


def paired_permutation(
    first: Floats,
    second: Floats,
    resampling: Resampling,
    alternative: Alternative = "two-sided",
) -> PairedTest:
    """Sign flips of the paired differences. NaN is a missing score."""
    return _paired("permutation", first, second, resampling, alternative)


def paired_bootstrap(
    first: Floats,
    second: Floats,
    resampling: Resampling,
    alternative: Alternative = "two-sided",
) -> PairedTest:
    """Centred bootstrap of the mean difference, with its interval. NaN is a missing score."""
    return _paired("bootstrap", first, second, resampling, alternative)


def _paired(
    method: PairedMethod,
    first: Floats,
    second: Floats,
    resampling: Resampling,
    alternative: Alternative,
) -> PairedTest:
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

    `between` is the correlation of the metrics with each other. `p` is None where there is nothing
    to test, and `reason` says why. `rounds` is 0 for a test that does not resample.
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
    """Of two metrics on the items that have both scores and a rating (NaN is missing)."""
    used = ~(np.isnan(first) | np.isnan(second) | np.isnan(human))
    n, missing = int(used.sum()), int((~used).sum())
    first, second, human = first[used], second[used], human[used]
    correlate = pearson_of if coefficient == "pearson" else spearman_of
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
    """From three correlations and n; None for n < 4, or where the formula divides by 0."""
    if n < 4:
        return None
    determinant = 1 - r1**2 - r2**2 - between**2 + 2 * r1 * r2 * between
    # Of correlations of real data it is never negative but for rounding.
    below = 2 * max(0.0, determinant) * (n - 1) / (n - 3)
    below += (r1 + r2) ** 2 / 4 * (1 - between) ** 3
    if below <= 1e-15:
        return None
    t = (r1 - r2) * math.sqrt((n - 1) * (1 + between) / below)
    two_sided = student_two_sided_p(t, n - 3)
    if alternative == "two-sided":
        return two_sided
    return two_sided / 2 if t > 0 else 1 - two_sided / 2
