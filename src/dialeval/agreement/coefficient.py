"""The value that every statistic of agreement returns: a coefficient with its interval.

A statistic divides by a spread. Where all ratings are equal there is no spread, and `Coefficient`
holds a reason in place of a number: 0 would say that there is no agreement, which nobody measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Coefficient:
    """`value` is None where the coefficient is undefined, and `reason` says why."""

    value: float | None
    n: int = 0
    """Number of items (raters, pairs of raters) that it rests on."""
    n_missing: int = 0
    """Number of items that could not be used."""
    reason: str = ""
    p: float | None = None
    low: float | None = None
    """Ends of the interval: None if no interval was requested, or `no_interval` says why."""
    high: float | None = None
    no_interval: str = ""
    ties_x: int = 0
    """Number of pairs of items with the same x; within groups, of pairs in the same group."""
    ties_y: int = 0
    groups: int | None = None
    """Number of groups in the mean, if the coefficient is a mean over groups."""
    undefined_groups: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of groups that are left out of the mean."""
    rater: str = ""
    """The rater with the largest coefficient, if it is a maximum over raters."""

    @property
    def groups_undefined(self) -> int | None:
        return None if self.groups is None else sum(self.undefined_groups.values())

    def to_record(self) -> dict[str, Any]:
        """Returns a coefficient without p and interval, ready for JSON."""
        return {name: getattr(self, name) for name in ("value", "n", "n_missing", "reason")}

    def to_estimate(self) -> dict[str, Any]:
        """Value, p and interval, and the other facts that are known, ready for JSON."""
        numbers = {name: getattr(self, name) for name in ("value", "p", "low", "high")}
        facts = ("reason", "rater", "groups", "groups_undefined", "no_interval")
        known = {name: getattr(self, name) for name in facts}
        return numbers | {name: fact for name, fact in known.items() if fact not in ("", None)}


def mean_of(found: Sequence[Coefficient]) -> Coefficient:
    """Returns the mean of the coefficients that are defined; `n` counts them."""
    return _summarise(found, statistics.fmean)


def largest_of(found: Sequence[Coefficient]) -> Coefficient:
    """Returns the largest of the coefficients that are defined; `n` counts them."""
    return _summarise(found, max)


def _summarise(
    found: Sequence[Coefficient], summary: Callable[[list[float]], float]
) -> Coefficient:
    values = [one.value for one in found if one.value is not None]
    if not values:
        reasons = sorted({one.reason for one in found}) or ["fewer than 2 raters"]
        return Coefficient(None, 0, len(found), "; ".join(reasons))
    return Coefficient(summary(values), len(values), len(found) - len(values))


def maximum_over_raters(found: Mapping[str, Coefficient]) -> Coefficient:
    """PONE's rule: the largest correlation with any rater and, independently, the smallest p.

    The maximum rises with the number of raters even for a metric that knows nothing, and its p is
    not corrected for several tests. It exists for comparison with PONE's tables. It has no
    interval: resampling would show the spread of one rater, not of the best of several.
    """
    values = {rater: one.value for rater, one in found.items() if one.value is not None}
    if not found:
        return Coefficient(None, reason="no raters")
    if not values:
        reasons = ", ".join(sorted({one.reason for one in found.values()}))
        first = next(iter(found.values()))
        return replace(first, reason=f"undefined with each rater: {reasons}")
    best = max(values, key=values.__getitem__)
    p_values = [one.p for one in found.values() if one.p is not None]
    return replace(
        found[best], p=min(p_values, default=None), low=None, high=None, no_interval="", rater=best
    )


def record_of(value: Any) -> dict[str, Any]:
    """Returns a dataclass that holds coefficients, ready for JSON."""
    return {one.name: _jsonable(getattr(value, one.name)) for one in fields(value)}


def _jsonable(value: Any) -> Any:
    if isinstance(value, Coefficient):
        return value.to_record()
    if is_dataclass(value):
        return record_of(value)
    if isinstance(value, Mapping):
        return {key: _jsonable(one) for key, one in value.items()}
    return [_jsonable(one) for one in value] if isinstance(value, list | tuple) else value
