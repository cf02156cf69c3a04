"""Williams' test: does one metric correlate better with people than another on the same items?

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
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from dialeval.agreement.coefficient import pearson_of, spearman_of
from dialeval.agreement.ranks import Floats
from dialeval.agreement.resampling import Alternative
from dialeval.agreement.student import student_two_sided_p

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
