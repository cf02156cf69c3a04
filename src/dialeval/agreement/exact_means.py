"""Means that do not hang on the order of their parts, and ties that rounding does not break.

Items rated .2 and .4 are tied with items rated .6 and .0, but the sums differ in their last bit. A
rank correlation would take that for an order.
"""

from __future__ import annotations

import math

import numpy as np

from dialeval.agreement.ranks import Floats

DIGITS = 12


def exact_mean(values: Floats) -> float:
    """The same for any order; NaN where a value is not finite."""
    return math.fsum(values) / len(values) if np.isfinite(values).all() else math.nan


def settled(means: Floats) -> Floats:
    """Cut to 12 digits of the largest: means that differ by rounding alone become equal."""
    known = np.abs(means[np.isfinite(means)])
    largest = float(known.max(initial=0.0))
    return np.round(means, DIGITS - math.ceil(math.log10(largest))) if largest else means
