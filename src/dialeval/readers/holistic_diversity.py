"""HolisticEval's groups of paraphrased queries: Response_Diversity/WS.csv and CTG.csv.

    Group Id,Question Group,Answer Group
    1,"Do you have any plans ?
    Do you have a plan ?","Yes .
    Certainly , but ..."

A group is one sample: line k of the answers replies to line k of the questions, as a variant. There
is no response of its own and no rating. Ids are `CTG-1`: the file and the group.
"""

from __future__ import annotations

from collections.abc import Iterator

from dialeval.readers.plain_csv import first_row, rows
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample, Variant

HEADER = ["Group Id", "Question Group", "Answer Group"]


def recognises(source: Source) -> bool:
    return [cell.strip() for cell in first_row(source, ",")] == HEADER


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    table = rows(source, place, ",")
    _, header = next(table, (0, []))
    if [cell.strip() for cell in header] != HEADER:
        raise UnreadableError(f"the first line must be: {','.join(HEADER)}", 1, "header")
    for line, cells in table:
        place.line = line
        errors = place.problems.errors
        sample = _sample(cells, source.label, place)
        if place.problems.errors == errors:
            yield sample
        else:
            place.problems.skipped += 1


def _sample(cells: list[str], label: str, place: Place) -> Sample:
    if len(cells) != len(HEADER):
        place.error("", f"{len(cells)} cells, but the header has {len(HEADER)} columns")
        return Sample(label)
    group, questions, answers = (cell.strip() for cell in cells)
    queries = [line.strip() for line in questions.split("\n")]
    responses = [line.strip() for line in answers.split("\n")]
    if not group:
        place.error("Group Id", "missing")
    if len(queries) != len(responses):
        place.error("Answer Group", f"{len(responses)} answers to {len(queries)} questions")
    return Sample(
        id=f"{label}-{group}",
        variants=tuple(map(Variant, queries, responses)),
    )


READER = Reader(
    "holistic-diversity",
    "HolisticEval: Response_Diversity, groups of paraphrased queries",
    recognises,
    read,
)
