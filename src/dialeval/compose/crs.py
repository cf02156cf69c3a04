"""Correlation re-scaling: from correlations to weights (Zhang et al., MME-CRS, 2022).

    w_ijk = S_ijk^d / sum over k of S_ijk^d                                              (Eq. 1)
    w_jk  = mean over the data sets i that have the quality j of w_ijk                   (Eq. 2)

S_ijk is the Spearman correlation of sub-metric k with quality j on data set i, or 0 where it is
negative. The power d is 2 in the authors' best submission, or `adaptive`: the smallest of 1, 1.5,
2, ... with the largest weight between 1/3 and 1/2. (The paper writes max(S) there, which does not
depend on d; only max(w) can be meant.)

Where no sub-metric correlates positively Eq. 1 is 0/0, of which the paper says nothing: all weights
are then equal, and `Weighting.uniform` says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Power = float | Literal["adaptive"]

LEAST, MOST = 1 / 3, 1 / 2
"""Where the largest weight lies by the adaptive rule."""

ADAPTIVE_POWERS = tuple(1 + step / 2 for step in range(19))
"""1 to 10. Beyond that only equal correlations keep the largest weight from rising to 1."""

Weights = tuple[float, ...]


@dataclass(frozen=True)
class Weighting:
    """The weights of one quality on one data set, in the order of the sub-metrics."""

    weights: Weights
    power: float
    uniform: bool = False
    """Nothing correlates positively, so all are equal."""


def reweigh(correlations: Sequence[float | None], power: Power = 2.0) -> Weighting:
    """Eq. 1. A correlation that is not defined (None) counts as 0, as a negative one does."""
    if not correlations:
        raise ValueError("no sub-metric to weigh")
    positive = [max(0.0, rho) if rho is not None else 0.0 for rho in correlations]
    chosen = adaptive_power(correlations) if power == "adaptive" else float(power)
    if not any(positive):
        return Weighting((1 / len(positive),) * len(positive), chosen, uniform=True)
    return Weighting(_shares(positive, chosen), chosen)


def adaptive_power(correlations: Sequence[float | None]) -> float:
    """The smallest power with the largest weight in [1/3, 1/2]. Where none has it there (one
    sub-metric alone correlates, or four do equally) the one that comes nearest."""
    positive = [max(0.0, rho) if rho is not None else 0.0 for rho in correlations]
    if not any(positive):
        return ADAPTIVE_POWERS[0]

    def distance(power: float) -> float:
        largest = max(_shares(positive, power))
        return max(0.0, LEAST - largest, largest - MOST)

    return min(ADAPTIVE_POWERS, key=distance)


def mean_weights(of_sets: Sequence[Weights]) -> Weights:
    """Eq. 2: every data set counts the same."""
    if not of_sets:
        raise ValueError("no data set to average over")
    return tuple(math.fsum(column) / len(of_sets) for column in zip(*of_sets, strict=True))


def uniform_weights(count: int) -> Weights:
    """MME-Avg: all sub-metrics count the same."""
    return (1 / count,) * count


def _shares(positive: Sequence[float], power: float) -> Weights:
    """Divided by the largest first: a high power of a small number would vanish."""
    largest = max(positive)
    raised = [(rho / largest) ** power for rho in positive]
    total = math.fsum(raised)
    return tuple(value / total for value in raised)
