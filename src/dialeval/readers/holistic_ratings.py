"""HolisticEval (Pang et al. 2020): context_data_release.csv and fluency_data_release.csv.

    111,"Weed ! You know ?","Impossible ! I have a lot to learn .",4,2,1,1,1,1,2,2,2,2
    123,"Impossible ! I have a lot to learn .",3,2,4,3,2,4,3,4,3,4

No header. Thirteen cells are id, query, response and ten ratings of `coherence`; twelve are id,
response and ten ratings of `fluency`; both 1 to 5, ten raters called `1` to `10`. An id means
different things in the two files, so it is written `holistic-coherence-111`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dialeval.readers import fields
from dialeval.readers.plain_csv import first_row, rows
from dialeval.readers.rating_values import number
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Rating, Sample, Turn

RATERS = tuple(str(rater) for rater in range(1, 11))
QUALITIES = {13: "coherence", 12: "fluency"}
SCALE = (1.0, 5.0)
_RATING = re.compile(r"\s*[1-5](\.\d+)?\s*", re.ASCII)


def recognises(source: Source) -> bool:
    cells = first_row(source, ",")
    return len(cells) in QUALITIES and all(map(_RATING.fullmatch, cells[-len(RATERS) :]))


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for line, cells in rows(source, place, ","):
        place.line = line
        errors = place.problems.errors
        if quality := QUALITIES.get(len(cells)):
            sample = _sample(cells, quality, place, options)
            if place.problems.errors == errors:
                yield sample
                continue
        else:
            place.error("", f"{len(cells)} cells: expected 13 (with a query) or 12 (without)")
        place.problems.skipped += 1


def _sample(cells: list[str], quality: str, place: Place, options: ReadOptions) -> Sample:
    ident, *texts = cells[: -len(RATERS)]
    if not ident.strip():
        place.error("id", "missing")
    scale = options.scales.get(quality) or SCALE
    said = tuple(
        number(cell, f"{quality}[{rater}]", place, scale)
        for rater, cell in zip(RATERS, cells[-len(RATERS) :], strict=True)
    )
    return Sample(
        id=f"holistic-{quality}-{ident.strip()}",
        context=tuple(Turn(query, "user") for query in texts[:-1]),
        response=fields.response(texts[-1], place),
        ratings={quality: Rating(said, scale, RATERS)},
    )


READER = Reader(
    "holistic", "HolisticEval: context_data_release.csv, fluency_data_release.csv", recognises, read
)
