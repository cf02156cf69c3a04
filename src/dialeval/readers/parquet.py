"""Plain tables of Arrow: Parquet, Arrow files, folders of `datasets`, frames and lists of dicts.

    id | context                             | response | references | rating_overall
    1  | [{speaker: user, text: Hi!}, ...]   | Hello.   | [Hi there.] | 4.5

Columns are those of `plain_record.py`, nested as in `storage.sample_schema` or plain text; columns
of ratings follow the rule of `ratings.py`. The line of a problem is the number of the row.
`arrow.py` says how the tables are opened; `data convert` writes such Parquet files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dialeval.errors import did_you_mean
from dialeval.readers import arrow
from dialeval.readers.arrow import InMemory
from dialeval.readers.json_stream import without_unfit
from dialeval.readers.plain_record import NAMES, RESPONSES, advice, maker, renamed, without_path
from dialeval.readers.ratings import half_named, is_reference, rating_columns, read_ratings
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    first = 1 + (source.span.records if source.span else 0)
    rows = arrow.rows(source, lambda names: _wanted(names, options))
    for number, row in enumerate(rows, first):
        place.line = number
        yield from _samples(row, number, source.label, place, options)


def _wanted(names: list[str], options: ReadOptions) -> list[str]:
    named = RESPONSES.union(("variants",))
    if options.texts and named.isdisjoint(options.columns) and named.isdisjoint(names):
        _require("response", names)
    mapped = [without_path(column, names) for column in options.columns.values()]
    for column in (*mapped, *options.ratings):
        _require(column, names)
    columns = rating_columns(names, options)
    if mixed := half_named(columns):
        raise UnreadableError(f"some raters of {mixed!r} are named and others are not")
    used = {*NAMES, *mapped, *(column.column for column in columns)}
    return [name for name in names if name in used or is_reference(name)]


def _require(column: str, names: list[str]) -> None:
    if not names:
        raise UnreadableError("there are no records in it")
    if column not in names:
        raise UnreadableError(
            f"there is no column {column!r}.{did_you_mean(column, names)}"
            f" The file has: {', '.join(names[:30])}. {advice(names)}"
        )


def _samples(
    row: dict[str, Any], number: int, label: str, place: Place, options: ReadOptions
) -> Iterator[Sample]:
    row = without_unfit(row, place, "")
    record = renamed(row, options.columns)
    if isinstance(entries := record.get("ratings"), list):
        record["ratings"] = _from_map(entries, place)
    references = [record[name] for name in sorted(record) if is_reference(name)]
    if any(references):
        record["reference"] = [text for text in references if text]
    errors = place.problems.errors
    rated = read_ratings(row, rating_columns(row, options), place, options)
    sample = maker(label, options.without_names())(record, number, place, rated)
    if place.problems.errors == errors:
        yield sample
    else:
        place.problems.skipped += 1


def _from_map(entries: list[Any], place: Place) -> dict[str, Any] | None:
    """Arrow gives a map as a list of pairs."""
    ratings: dict[str, Any] = {}
    for entry in entries:
        if not isinstance(entry, tuple) or len(entry) != 2:
            place.error("ratings", "expected a map of quality: ratings")
            return None
        if entry[0] in ratings:
            place.error(f"ratings.{entry[0]}", "given twice")
        ratings[str(entry[0])] = entry[1]
    return ratings


def _starts(*marks: bytes) -> Callable[[Source], bool]:
    return lambda source: not source.is_directory and source.head.startswith(marks)


def _is_dataset(source: Source) -> bool:
    return source.is_directory and arrow.is_arrow(source)


READER = Reader(
    "parquet", "Parquet: written by dialeval, or a flat table", _starts(arrow.PARQUET), read
)
ARROW = Reader(
    "arrow", "Arrow files and streams", _starts(arrow.ARROW_FILE, arrow.ARROW_STREAM), read
)
DATASETS = Reader(
    "datasets", "Hugging Face datasets on disk: a folder of save_to_disk", _is_dataset, read
)
RECORDS = Reader(
    "records",
    "what is in memory: lists of dicts, data frames, Arrow tables",
    lambda source: isinstance(source, InMemory),
    read,
)
