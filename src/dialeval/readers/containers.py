"""What a log is kept in: JSON, a table, Parquet, Arrow or memory. Each gives the same records.

    columns(source)              the names that its records have, to recognise a form by
    records(source, place)       (line or row number, record) one at a time

Readers of forms (`chat.py`, `traces.py`) take records, so a form is read from whatever it is kept
in: conversations in JSON Lines, in a column of a CSV file as JSON, or nested in Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dialeval.errors import did_you_mean
from dialeval.readers import arrow
from dialeval.readers.json_stream import all_keys, first_keys, json_records, without_unfit
from dialeval.readers.plain_csv import check_names, first_row, rows
from dialeval.readers.plain_record import ANSWERS, PROMPTS, without_path
from dialeval.readers.reader import Place, ReadOptions, UnreadableError
from dialeval.readers.source import Source

DELIMITERS = (",", ";", "\t")
NEEDED = ("messages", "response", "context", *ANSWERS, *PROMPTS)
"""Fields that a user would not map where hardly any record has them."""


def columns(source: Source) -> frozenset[str]:
    """Returns the keys of the first record, or the names of the columns; empty where there are
    none."""
    if source.known_columns is None:
        source.known_columns = frozenset(_columns(source))
    return source.known_columns


def _columns(source: Source) -> set[str]:
    if arrow.is_arrow(source):
        try:  # a pipe is read once: by the reader
            return set() if source.reads_once else set(arrow.column_names(source))
        except UnreadableError:  # damaged: the reader says so
            return set()
    if source.is_directory:
        return set()
    if _is_json(source):
        return first_keys(source)
    return {cell.strip() for cell in first_row(source, _delimiter(source))}


def records(source: Source, place: Place) -> Iterator[tuple[int, Any]]:
    """(line or row, record) of each."""
    if arrow.is_arrow(source):
        for number, row in enumerate(arrow.rows(source), 1):
            place.line = number
            yield number, without_unfit(row, place, "")
    elif _is_json(source):
        yield from json_records(source, place)
    else:
        yield from _table_records(source, place)


def check_paths(source: Source, options: ReadOptions) -> None:
    """Refuses a column name that does not occur in the start of the file: one error, not one for
    each record."""
    mapped = [(field, options.columns[field]) for field in NEEDED if field in options.columns]
    if not mapped:
        return
    names = columns(source)
    keys = names | all_keys(source) if not arrow.is_arrow(source) and _is_json(source) else names
    for field, column in mapped:
        if without_path(column, keys) not in keys:
            raise UnreadableError(
                f"no record has {column!r}.{did_you_mean(column, keys)}"
                f" The records have: {', '.join(sorted(names)[:30])}",
                field=field,
            )


def _is_json(source: Source) -> bool:
    return source.text_head.lstrip()[:1] in ("{", "[")


def _delimiter(source: Source) -> str:
    return max(DELIMITERS, key=lambda each: len(first_row(source, each)))


def _table_records(source: Source, place: Place) -> Iterator[tuple[int, Any]]:
    table = rows(source, place, _delimiter(source))
    _, header = next(table, (0, []))
    header = [cell.strip() for cell in header]
    check_names(header)
    for line, cells in table:
        place.line = line
        if len(cells) != len(header):
            place.error("", f"{len(cells)} cells, but the header has {len(header)} columns")
            place.problems.skipped += 1
        else:
            yield line, {name: cell for name, cell in zip(header, cells, strict=True) if cell}
