"""Correlation between what a metric says and what people say.

Spearman's rho is Pearson's r of the ranks, ties sharing their mean rank. Where it is not defined
(fewer than three pairs, or one side constant) there is no number, and a reason in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class Correlation:
    """`value` is None where it is not defined, and `reason` says why. `n` pairs were complete."""

    value: float | None
    n: int
    n_missing: int = 0
    reason: str = ""


def spearman(x: Sequence[float | None], y: Sequence[float | None]) -> Correlation:
    """Rank correlation of two lists, pairs with a missing side left out and counted."""
    import numpy as np

    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a is not None and b is not None]
    missing = len(x) - len(pairs)
    if len(pairs) < 3:
        return Correlation(None, len(pairs), missing, "fewer than 3 pairs")
    ranks = [rank(np.array(side, dtype=np.float64)) for side in zip(*pairs, strict=True)]
    centred = [side - side.mean() for side in ranks]
    norms = [float(np.sqrt(side @ side)) for side in centred]
    if not all(norms):
        return Correlation(None, len(pairs), missing, "constant")
    value = float(centred[0] @ centred[1]) / (norms[0] * norms[1])
    return Correlation(max(-1.0, min(1.0, value)), len(pairs), missing)


def rank(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of the ranks that they take up."""
    import numpy as np

    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ends = np.r_[starts[1:], len(values)]
    shared = np.repeat((starts + ends + 1) / 2, ends - starts)
    ranks = np.empty(len(values))
    ranks[order] = shared
    return ranks
