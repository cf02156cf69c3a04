"""What a metric is held against, where several people rated an item.

    mean rating   the mean of those who rated it                        (HolisticEval, FED, USR)
    one rater     one column
    maximum       correlate with each rater; take the largest value and, apart from it, the
                  smallest p                                            (PONE's released code)

The maximum rises with the number of raters also for a metric that knows nothing, and its p is not
corrected for having looked several times. It is here to compare with PONE's tables.

Ratings are items x raters, NaN where a rater did not rate an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dialeval.agreement.correlation import Correlation
from dialeval.agreement.exact_means import settled
from dialeval.agreement.grouping import WithinGroups
from dialeval.agreement.ranks import Floats
from dialeval.errors import UsageError

TargetKind = Literal["mean", "rater", "max-over-raters"]


@dataclass(frozen=True)
class Target:
    """Which of the three, and for one rater their name or number (from 1)."""

    kind: TargetKind = "mean"
    rater: str = ""

    def __str__(self) -> str:
        return f"rater:{self.rater}" if self.kind == "rater" else self.kind

    @classmethod
    def parse(cls, text: str) -> Target:
        """`mean`, `max-over-raters`, `rater:NAME` or `rater:NUMBER`."""
        if text == "mean":
            return cls("mean")
        if text == "max-over-raters":
            return cls("max-over-raters")
        kind, _, rater = text.partition(":")
        if kind == "rater" and rater:
            return cls("rater", rater)
        raise UsageError(
            f"no target {text!r}: it is mean, max-over-raters, or rater:NAME (or rater:2 for the"
            " second rater)"
        )


@dataclass(frozen=True)
class MaximumOverRaters:
    """`value` is None where no rater gives a defined correlation, and `reason` says why."""

    value: float | None
    p: float | None
    rater: int | None
    """Column of the rater with the largest value. The smallest p may be another's."""
    raters: tuple[Correlation | WithinGroups, ...]
    n_undefined: int
    reason: str = ""


def mean_rating(ratings: Floats) -> Floats:
    """Mean over the raters who answered, per item; NaN where nobody did."""
    given = (~np.isnan(ratings)).sum(axis=1)
    sums = np.nansum(np.sort(ratings, axis=1), axis=1)
    means: Floats = np.divide(sums, given, out=np.full(len(sums), np.nan), where=given > 0)
    return settled(means)


def maximum_of(found: Sequence[Correlation | WithinGroups]) -> MaximumOverRaters:
    """PONE's rule, from the correlation with each rater."""
    raters = tuple(found)
    values = {i: one.value for i, one in enumerate(raters) if one.value is not None}
    p_values = [one.p for one in raters if one.p is not None]
    if not values:
        reasons = sorted({one.reason for one in raters})
        why = f"undefined with each rater: {', '.join(reasons)}" if raters else "no raters"
        return MaximumOverRaters(None, None, None, raters, len(raters), why)
    best = max(values, key=values.__getitem__)
    return MaximumOverRaters(
        values[best], min(p_values, default=None), best, raters, len(raters) - len(values)
    )
