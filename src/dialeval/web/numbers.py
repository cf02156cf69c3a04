"""Numbers that stand under or beside each other: with the same decimals, and a true minus."""

from __future__ import annotations

from collections.abc import Sequence

from dialeval.table import format_column

MINUS, NONE = "\N{MINUS SIGN}", "–"


def aligned(values: Sequence[float | None]) -> list[str]:
    """As `format_column`, but whole numbers have no decimals where all of them are whole."""
    whole = all(value is None or value == int(value) for value in values) and any(values)
    texts = [f"{value or 0.0:,.0f}" for value in values] if whole else format_column(values)
    return [
        NONE if value is None else text.replace("-", MINUS)
        for text, value in zip(texts, values, strict=True)
    ]


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
