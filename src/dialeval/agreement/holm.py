"""Holm's correction: many comparisons, and still at most 5 % risk of one false claim.

With m values of p in ascending order p_(1) <= ... <= p_(m),

    adjusted p_(i) = min(1, max over j <= i of (m - j + 1) p_(j))       (Holm 1979)

It needs no assumption about how the tests depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


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
