"""Ratings: values, columns of tables that hold them, and scales that are known.

Values are checked: they are numbers, finite, within their scale, one per rater.

    "ratings": {"overall": 4}                               one anonymous rater
    "ratings": {"overall": [4, 5, null]}                    three; the last gave no answer
    "ratings": {"overall": {"values": [4, 5], "scale": [1, 5], "raters": ["ann", "bob"]}}
    "ratings": {"overall": {"values": [4, 2], "comments": ["", "He said so before."]}}

An answer that is no number ("N/A (No errors)" in the FED data) becomes None, with a warning, so
that the other raters keep their places. A number outside its scale, an infinite one or a true/false
is an error: it would be counted, and wrongly.

Which columns of a table hold ratings is a rule that needs the header only:

    rating_overall              quality `overall`, one anonymous rater
    rating_overall_1            quality `overall`, rater `1`; also rater2, r2, annotator2
    rating_overall__ann         quality `overall`, rater `ann`: two underscores before any name

Columns that the user names (`--rating human_score`) are ratings whatever they are called, and then
no others are; the name of a quality (`--rating overall`) stands for all columns of it. Columns of
numbers are never guessed to be ratings: they may be scores of a machine.

The scales are those that people used in the published data sets, by quality. Sources: Mehri &
Eskenazi 2020 (FED: the turn and the dialogue questionnaire; USR), Huang et al. 2020 (GRADE), Zhao
et al. 2020 (DailyDialog, PersonaChat), Gupta et al. 2019 (DailyDialog), Merdivan et al. 2020
(HUMOD), Galley et al. 2019 (DSTC7).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialeval.readers.fields import expected, kind
from dialeval.readers.reader import Place, ReadOptions
from dialeval.sample import Rating, Ratings

Scale = tuple[float, float]

NO_SCALES: Mapping[str, Scale] = {}
KEYS = frozenset({"values", "scale", "raters", "comments"})
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
    """Reads one quality, in any of the three forms above. A scale given here wins over the
    record's."""
    raters: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    if isinstance(value, dict):
        if unknown := sorted(set(map(str, value)) - KEYS):
            place.error(field, f"unknown key {unknown[0]!r}: expected {', '.join(sorted(KEYS))}")
        if "values" not in value:
            place.error(f"{field}.values", "missing")
        own = _scale(value.get("scale"), f"{field}.scale", place)
        scale = scale or own
        raters = _raters(value.get("raters"), f"{field}.raters", place)
        comments = _comments(value.get("comments"), f"{field}.comments", place)
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
    if comments and len(comments) != len(numbers):
        place.error(f"{field}.comments", f"{len(comments)} comments for {len(numbers)} ratings")
    return Rating(numbers, scale, raters, comments)


def number(value: object, field: str, place: Place, scale: Scale | None = None) -> float | None:
    """Reads a rating as a float; None where there is none."""
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
    """Returns a value from the file, quoted and cut for a message."""
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


def _comments(value: object, field: str, place: Place) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str | None) for one in value):
        place.error(field, expected("a list of texts", value))
        return ()
    return tuple(one or "" for one in value) if any(value) else ()


def _raters(value: object, field: str, place: Place) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(rater, str) for rater in value):
        place.error(field, "expected a list of names")
        return ()
    if len(set(value)) != len(value):
        place.error(field, "a rater is named twice")
    return tuple(value)


PREFIX = "rating_"
_NAMED = re.compile(r"(.+?)__(.+)")
_NUMBERED = re.compile(r"(.+?)_((?:r|rater|annotator|judge|worker)?_?\d+)", re.IGNORECASE)
_REFERENCE = re.compile(r"references?_?\d+")


@dataclass(frozen=True, slots=True)
class RatingColumn:
    """A column that holds what one rater said about one quality."""

    column: str
    quality: str
    rater: str


def rating_columns(header: Iterable[str], options: ReadOptions) -> list[RatingColumn]:
    header = list(header)
    own = [_parse(column) for column in header if column.startswith(PREFIX)]
    if not options.ratings:
        return own
    found: dict[str, RatingColumn] = {}
    for name in options.ratings:
        of_quality = [] if name in header else [one for one in own if one.quality == name]
        found |= {one.column: one for one in of_quality or [_parse(name)]}
    return list(found.values())


def _parse(column: str) -> RatingColumn:
    if not column.startswith(PREFIX):
        return RatingColumn(column, column, "")
    rest = column.removeprefix(PREFIX)
    if match := _NAMED.fullmatch(rest) or _NUMBERED.fullmatch(rest):
        return RatingColumn(column, match[1], match[2])
    return RatingColumn(column, rest or column, "")


def quality_of(name: str) -> str:
    """Returns the quality that a name in `--rating`, of a column or of a quality, is about."""
    return _parse(name).quality


def half_named(columns: Sequence[RatingColumn]) -> str | None:
    """Returns a quality of which some raters are named and others are not, so that nobody can be
    told."""
    anonymous = {column.quality for column in columns if not column.rater}
    return next((c.quality for c in columns if c.rater and c.quality in anonymous), None)


def read_ratings(
    row: Mapping[str, Any], columns: Sequence[RatingColumn], place: Place, options: ReadOptions
) -> dict[str, Rating]:
    """Reads the ratings of one row. An empty cell is silence: the rater keeps the place."""
    found: dict[str, Rating] = {}
    for column in columns:
        value = row.get(column.column)
        scale = options.scales.get(column.quality)
        if isinstance(value, list | dict):
            found[column.quality] = rating(value, column.column, place, scale)
            continue
        said = number(value, column.column, place, scale)
        before = found.get(column.quality)
        if before is None:
            found[column.quality] = Rating((said,), scale, (column.rater,) if column.rater else ())
        else:
            raters = (*before.raters, column.rater) if column.rater else before.raters
            found[column.quality] = Rating((*before.values, said), scale, raters)
    return {quality: made for quality, made in found.items() if made.given}


def is_reference(column: str) -> bool:
    """`reference_1`, `references2`: a further reference."""
    return _REFERENCE.fullmatch(column) is not None


FED_TURN: Mapping[str, Scale] = {
    **dict.fromkeys(
        ("Interesting", "Engaging", "Specific", "Relevant", "Correct", "Semantically appropriate"),
        (0.0, 2.0),
    ),
    "Understandable": (0.0, 1.0),
    "Fluent": (0.0, 2.0),
    "Overall": (0.0, 4.0),
}
FED_DIALOGUE: Mapping[str, Scale] = {
    **dict.fromkeys(
        ("Coherent", "Error recovery", "Diverse", "Depth", "Likeable", "Understanding"),
        (0.0, 2.0),
    ),
    "Consistent": (0.0, 1.0),
    **dict.fromkeys(("Flexible", "Informative", "Inquisitive"), (0.0, 2.0)),
    "Overall": (0.0, 4.0),
}
USR: Mapping[str, Scale] = {
    "Understandable": (0.0, 1.0),
    "Natural": (1.0, 3.0),
    "Maintains Context": (1.0, 3.0),
    "Engaging": (1.0, 3.0),
    "Uses Knowledge": (0.0, 1.0),
    "Overall": (1.0, 5.0),
}
ZHAO: Mapping[str, Scale] = dict.fromkeys(
    ("content", "grammar", "relevance", "appropriateness"), (1.0, 5.0)
)
ZHAO_TRACK: Mapping[str, Scale] = dict.fromkeys(
    ("content", "grammar", "relevance", "overall"), (1.0, 5.0)
)
"""The DSTC10 track calls `appropriateness` `overall`."""

GUPTA: Mapping[str, Scale] = {"overall": (1.0, 5.0)}
ZHAO_PERSONA: Mapping[str, Scale] = {"appropriateness": (1.0, 5.0)}
HUMOD: Mapping[str, Scale] = {"relevance": (1.0, 5.0), "language_usage": (1.0, 3.0)}
DSTC7: Mapping[str, Scale] = dict.fromkeys(("informativeness", "overall", "relevance"), (1.0, 5.0))
GRADE: Mapping[str, Scale] = {"coherence": (1.0, 5.0)}
GRADE_TRACK: Mapping[str, Scale] = {"relevance": (1.0, 5.0)}

_SETS = (
    FED_TURN, FED_DIALOGUE, USR, ZHAO, ZHAO_TRACK, ZHAO_PERSONA, GRADE_TRACK, GUPTA, HUMOD, DSTC7,
)  # fmt: skip


def known_scales(qualities: Iterable[str]) -> Mapping[str, Scale]:
    """Returns the scales of the questionnaire that asks for exactly these qualities; empty if none
    does.

    `Overall` alone says nothing: it goes to 4 in FED and to 5 in USR.
    """
    asked = set(qualities)
    return next((scales for scales in _SETS if asked == scales.keys()), {})
