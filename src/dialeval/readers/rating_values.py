"""What people said, checked: numbers, finite, within their scale, one per rater.

    "ratings": {"overall": 4}                               one anonymous rater
    "ratings": {"overall": [4, 5, null]}                    three; the last gave no answer
    "ratings": {"overall": {"values": [4, 5], "scale": [1, 5], "raters": ["ann", "bob"]}}

An answer that is no number ("N/A (No errors)" in the FED data) becomes None, with a warning, so
that the other raters keep their places. A number outside its scale, an infinite one or a true/false
is an error: it would be counted, and wrongly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from dialeval.readers.fields import expected, kind
from dialeval.readers.reader import Place, ReadOptions
from dialeval.sample import Rating, Ratings

Scale = tuple[float, float]

NO_SCALES: Mapping[str, Scale] = {}
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)


def ratings(
    value: object,
    field: str,
    place: Place,
    options: ReadOptions,
    known: Mapping[str, Scale] = NO_SCALES,
) -> Ratings:
    """Ratings of all qualities; `known` holds the scales that the format prescribes."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        place.error(field, expected("an object of quality: ratings", value))
        return {}
    return {
        str(quality): rating(
            given, f"{field}.{quality}", place, options.scales.get(quality) or known.get(quality)
        )
        for quality, given in value.items()
    }


def rating(value: object, field: str, place: Place, scale: Scale | None) -> Rating:
    """One quality, in any of the three forms above. A scale given here wins over the record's."""
    raters: tuple[str, ...] = ()
    if isinstance(value, dict):
        if unknown := sorted(set(map(str, value)) - {"values", "scale", "raters"}):
            place.error(field, f"unknown key {unknown[0]!r}: expected values, scale, raters")
        if "values" not in value:
            place.error(f"{field}.values", "missing")
        own = _scale(value.get("scale"), f"{field}.scale", place)
        scale = scale or own
        raters = _raters(value.get("raters"), f"{field}.raters", place)
        value = value.get("values", [])
        if not isinstance(value, list):
            place.error(f"{field}.values", expected("a list of numbers", value))
            return Rating(())
    many = value if isinstance(value, list) else [value]
    numbers = tuple(
        number(item, f"{field}[{index}]" if value is many else field, place, scale)
        for index, item in enumerate(many)
    )
    if raters and len(raters) != len(numbers):
        place.error(f"{field}.raters", f"{len(raters)} raters for {len(numbers)} ratings")
    return Rating(numbers, scale, raters)


def number(value: object, field: str, place: Place, scale: Scale | None = None) -> float | None:
    """A rating as a float; None where there is none."""
    if value is None:
        return None
    if isinstance(value, bool):
        place.error(field, f"{str(value).lower()} is not a rating: write 0 or 1")
        return None
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            if value.strip():
                place.warning(field, f"{shown(value)} is not a number: dropped")
            return None
    elif not isinstance(value, int | float):
        place.error(field, f"expected a number, not {kind(value)}")
        return None
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        place.error(field, f"{result} is not a rating: it must be a finite number")
        return None
    if scale is not None and not scale[0] <= result <= scale[1]:
        place.error(field, f"{result:g} is outside its scale {scale[0]:g} to {scale[1]:g}")
        return None
    return result


def shown(value: str) -> str:
    """A value from the file, quoted and cut for a message."""
    return repr(value if len(value) <= 40 else value[:37] + "...")


def _scale(value: object, field: str, place: Place) -> Scale | None:
    if value is None:
        return None
    if isinstance(value, Sequence) and len(value) == 2:
        low, high = (number(end, field, place) for end in value)
        if low is not None and high is not None and low < high:
            return low, high
    place.error(field, "expected [lowest, highest]")
    return None


def _raters(value: object, field: str, place: Place) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(rater, str) for rater in value):
        place.error(field, "expected a list of names")
        return ()
    if len(set(value)) != len(value):
        place.error(field, "a rater is named twice")
    return tuple(value)
