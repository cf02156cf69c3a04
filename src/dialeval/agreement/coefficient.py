"""A number that may not exist, and why.

Every agreement statistic divides by a spread, and where people all said the same there is none.
`Agreement` then holds no number but a reason, in words that a table can count.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dialeval.agreement.correlation import Correlation, pearson, spearman
from dialeval.agreement.ranks import Floats


@dataclass(frozen=True)
class Agreement:
    """`value` is None where it is not defined, and `reason` says why.

    `n` is how many items (raters, pairs of raters) it rests on, `n_missing` how many were there
    but could not be used.
    """

    value: float | None
    n: int
    n_missing: int = 0
    reason: str = ""

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def mean_of(found: Sequence[Agreement]) -> Agreement:
    """The mean over those that are defined."""
    return _over(found, statistics.fmean)


def largest_of(found: Sequence[Agreement]) -> Agreement:
    """The largest of those that are defined."""
    return _over(found, max)


def _over(found: Sequence[Agreement], summary: Callable[[list[float]], float]) -> Agreement:
    values = [one.value for one in found if one.value is not None]
    if not values:
        reasons = sorted({one.reason for one in found}) or ["fewer than 2 raters"]
        return Agreement(None, 0, len(found), "; ".join(reasons))
    return Agreement(summary(values), len(values), len(found) - len(values))


def pearson_of(x: Floats, y: Floats) -> Agreement:
    """Pearson's r over the items where neither side is NaN."""
    return _plain(pearson(x, y))


def spearman_of(x: Floats, y: Floats) -> Agreement:
    """Spearman's rho over the items where neither side is NaN."""
    return _plain(spearman(x, y))


def _plain(found: Correlation) -> Agreement:
    return Agreement(found.value, found.n, found.n_missing, found.reason)
