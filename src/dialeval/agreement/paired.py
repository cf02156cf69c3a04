"""Is one system better than another on the same items?

With d_i the difference of the two scores of item i and D its mean, what D would be if the systems
were equally good is found in two ways:

permutation   which system gave which of the two scores is chance: each d_i keeps or changes its
              sign, mean of s_i d_i (Fisher 1935; Noreen 1989). Exact for every n.
bootstrap     items are drawn again; the mean D* of a draw spreads around D as D would around 0:
              D* - D (Efron and Tibshirani 1993, 16.4). Signs are kept until after centring; taking
              |D*| first, as some tools do, makes the test depend on how large D is. Rejects
              too often on few items (7 % in place of 5 % of 20 items, 6 % of 50).

The bootstrap also gives the 95 % interval of D, the percentiles of D*.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from dialeval.agreement.ranks import Floats
from dialeval.agreement.resampling import Alternative, Resampling, p_value, resample

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
