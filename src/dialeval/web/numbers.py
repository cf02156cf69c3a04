"""A number then and now, and whether that is better."""

from __future__ import annotations

from dialeval.report.look import aligned


def then_and_now(before: float | None, after: float | None) -> tuple[str, str, str]:
    """Two numbers and their difference, which has a sign."""
    difference = None if before is None or after is None else after - before
    first, second, change = aligned([before, after, difference])
    return first, second, f"+{change}" if difference and difference > 0 else change


def verdict(difference: float | None, direction: str) -> str:
    """`better`, `worse`, or nothing where the metric has no good end or nothing moved."""
    if not difference or direction == "neither":
        return ""
    return "better" if (difference > 0) == (direction == "higher") else "worse"
