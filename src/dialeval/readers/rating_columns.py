"""Which columns of a table hold ratings: a rule that needs the header only.

    rating_overall              quality `overall`, one anonymous rater
    rating_overall_1            quality `overall`, rater `1`; also rater2, r2, annotator2
    rating_overall__ann         quality `overall`, rater `ann`: two underscores before any name

Columns that the user names (`--rating human_score`) are ratings whatever they are called, and then
no others are; the name of a quality (`--rating overall`) stands for all columns of it. Columns of
numbers are never guessed to be ratings: they may be scores of a machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dialeval.readers.rating_values import number, rating
from dialeval.readers.reader import Place, ReadOptions
from dialeval.sample import Rating

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
    """The quality that a name in `--rating`, of a column or of a quality, is about."""
    return _parse(name).quality


def half_named(columns: Sequence[RatingColumn]) -> str | None:
    """A quality of which some raters are named and others are not, so that nobody can be told."""
    anonymous = {column.quality for column in columns if not column.rater}
    return next((c.quality for c in columns if c.rater and c.quality in anonymous), None)


def read_ratings(
    row: Mapping[str, Any], columns: Sequence[RatingColumn], place: Place, options: ReadOptions
) -> dict[str, Rating]:
    """The ratings of one row. An empty cell is silence: the rater keeps the place."""
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
