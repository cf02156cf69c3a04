"""Predictive Engagement (Ghazarian et al. 2020): Eng_Scores_queries_gen_gtruth_replies.csv.

    query,response,human_score,Ruber_Unref_Score,CTX_Unref_Score,...
    how long will it take us to drive to London ?,Not really .,2,"7.99e-06",...

One row per rater: the three rows of a pair stand some rows apart, so all rows are gathered before
the first sample is made. The quality is `engagement`, 1 to 5; its raters are nameless. The scores
of the authors' metrics are not read. Samples are called `engage-0001` in the order in which pairs
first occur; answers to the same query share an item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dialeval.readers import fields
from dialeval.readers.plain_csv import first_row, rows
from dialeval.readers.rating_values import number
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Rating, Sample, Turn

QUALITY = "engagement"
SCALE = (1.0, 5.0)
COLUMNS = ["query", "response", "human_score"]


@dataclass(slots=True)
class _Pair:
    line: int
    said: list[float | None] = field(default_factory=list)


def recognises(source: Source) -> bool:
    return first_row(source, ",")[: len(COLUMNS)] == COLUMNS


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    scale = options.scales.get(QUALITY) or SCALE
    items: dict[str, str] = {}
    for index, ((query, answer), pair) in enumerate(_pairs(source, place, scale).items(), 1):
        place.line = pair.line
        item = items.setdefault(query, f"engage-query-{len(items) + 1:04d}")
        yield Sample(
            id=f"engage-{index:04d}",
            context=(Turn(query, "user"),),
            response=fields.response(answer, place),
            dialogue=item,
            item=item,
            ratings={QUALITY: Rating(tuple(pair.said), scale)},
        )


def _pairs(
    source: Source, place: Place, scale: tuple[float, float]
) -> dict[tuple[str, str], _Pair]:
    table = rows(source, place, ",")
    header = next(table, (0, []))[1]
    if header[: len(COLUMNS)] != COLUMNS:
        raise UnreadableError(f"expected a header that starts with {','.join(COLUMNS)}", 1)
    pairs: dict[tuple[str, str], _Pair] = {}
    for line, cells in table:
        place.line = line
        errors = place.problems.errors
        if len(cells) != len(header):
            place.error("", f"{len(cells)} cells: expected {len(header)}, as in the header")
            said = None
        else:
            said = number(cells[2], "human_score", place, scale)
        if place.problems.errors > errors:
            place.problems.skipped += 1
        else:
            pairs.setdefault((cells[0], cells[1]), _Pair(line)).said.append(said)
    return pairs


READER = Reader(
    "engage", "Predictive Engagement: Eng_Scores_queries_gen_gtruth_replies.csv", recognises, read
)
