"""Tables with a header: CSV with commas or semicolons, and TSV.

    id,context,response,reference_1,reference_2,system,rating_overall_1,rating_overall_2
    1,Hi!|||Who are you?,I am Bob.,My name is Bob.,Bob.,v2,4,5

Columns are named as in `plain_record.py`; other names are mapped with `columns`. Turns of a context
and several references are separated by `|||`, or by line breaks inside the cell where no `|||`
occurs. `ratings.py` says which columns are ratings; columns that are not used are named in a
warning. A cell holds at most 131072 characters unless `--largest-record` says otherwise, so that a
quote that is never closed is an error and not a memory problem. Line numbers are those where a row
starts.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Generator, Iterator
from typing import Any

from dialeval.errors import did_you_mean
from dialeval.limits import Limits
from dialeval.readers.plain_record import (
    NAMES,
    PROMPTS,
    RESPONSES,
    advice,
    maker,
    renamed,
    unread,
    without_path,
)
from dialeval.readers.ratings import (
    RatingColumn,
    half_named,
    is_reference,
    rating_columns,
    read_ratings,
    shown,
)
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample
from dialeval.text import restored

SEPARATOR = "|||"
READ = NAMES - {"references", "reference", "ratings", "variants"}
"""The fields that a cell can hold as they are; references are gathered from several columns."""
JOINED = {"id", "dialogue", "item", "system", "model"}
"""Names that tie tables together."""


def rows(
    source: Source, place: Place, delimiter: str
) -> Generator[tuple[int, list[str]], None, None]:
    """(line where it starts, cells) of each row that is not blank."""
    parser = csv.reader(
        (line + "\n" for _, line in source.lines(place)), delimiter=delimiter, strict=True
    )
    while True:
        line = parser.line_num + 1
        try:
            cells = _next_row(parser, source.limits)
        except csv.Error as error:
            place.line = line
            place.error("", _row_problem(error, source.limits))
            place.problems.skipped += 1
            continue
        if cells is None:
            return
        if len(cells) > source.limits.columns:
            problem = f"the table has more than {source.limits.columns:,} columns"
            raise UnreadableError(source.limits.exceeded(problem), line)
        if any("\0" in cell for cell in cells):
            place.line = line
            place.warning("", "holds NUL: replaced by U+FFFD")
            cells = [cell.replace("\0", "\ufffd") for cell in cells]
        if cells and cells != [""]:
            yield line, cells


def _next_row(parser: Iterator[list[str]], limits: Limits) -> list[str] | None:
    """Python keeps one limit for all tables, so it is set for this row alone."""
    before = csv.field_size_limit(limits.cell)
    try:
        return next(parser, None)
    finally:
        csv.field_size_limit(before)


def _row_problem(error: csv.Error, limits: Limits) -> str:
    if "field limit" in str(error):
        return limits.exceeded(
            f"a cell is longer than {limits.cell:,} characters, perhaps as a quote is not closed"
        )
    return f"{error}: is a quote not closed, or not doubled inside a cell?"


def first_row(source: Source, delimiter: str) -> list[str]:
    """Returns the cells of the first row, to recognise a table by; empty where it is none."""
    lines = iter(source.text_head.split("\n"))
    try:
        return next(csv.reader((line + "\n" for line in lines), delimiter=delimiter), [])
    except csv.Error:
        return []


def column_names(cells: list[str]) -> list[str]:
    return [
        cell.strip().lower() if cell.strip().lower() in NAMES else cell.strip() for cell in cells
    ]


def _delimiter(source: Source, options: ReadOptions) -> str:
    """Comma or semicolon: whichever finds more of the columns that we know."""
    known = {*NAMES, *options.columns.values(), *options.ratings}
    known |= {column.partition(".")[0] for column in options.columns.values()}

    def found(delimiter: str) -> tuple[int, int]:
        names = column_names(first_row(source, delimiter))
        return len(known.intersection(names)), len(names)

    return max((",", ";"), key=found)


def _read_csv(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    return _read(source, place, options, _delimiter(source, options))


def _read_tsv(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    return _read(source, place, options, "\t")


def _read(source: Source, place: Place, options: ReadOptions, delimiter: str) -> Iterator[Sample]:
    table = rows(source, place, delimiter)
    line, cells = next(table, (0, []))
    place.line = line
    header = column_names(cells)
    _check_header(header, options)
    columns = rating_columns(header, options)
    if mixed := half_named(columns):
        raise UnreadableError(f"some raters of {mixed!r} are named and others are not", 1, "header")
    if ignored := _ignored(header, columns, options):
        listed = f"not used: {', '.join(ignored)}. Name columns of ratings with --rating"
        place.warning("header", listed, "unused-columns", ignored)
    make = maker(source.label, options.without_names())
    number = 0
    for number, (line, cells) in enumerate(table, 1):
        place.line = line
        if len(cells) != len(header):
            place.error("", f"{len(cells)} cells, but the header has {len(header)} columns")
            place.problems.skipped += 1
            continue
        errors = place.problems.errors
        row = dict(zip(header, cells, strict=True))
        rated = read_ratings(row, columns, place, options)
        if options.columns:
            row = renamed(row, options.columns)
        record = {key: _value(key, cell, row) for key, cell in row.items() if key in READ}
        record["references"] = _references(row)
        sample = make(record, number, place, rated)
        if place.problems.errors == errors:
            yield sample
        else:
            place.problems.skipped += 1
    if not number:
        raise UnreadableError("there is a header but no row below it", 1)


def _ignored(
    header: list[str], columns: list[RatingColumn], options: ReadOptions
) -> tuple[str, ...]:
    rated = {column.column for column in columns}
    return tuple(
        name
        for name in (*unread(header, options.columns), "ratings", "variants")
        if name in header and name not in rated and not is_reference(name)
    )


def _value(key: str, cell: Any, row: dict[str, Any]) -> Any:
    if not isinstance(cell, str):  # from inside a cell that holds JSON
        return cell
    if key == "context":
        is_lookup = SEPARATOR not in cell and not row.keys().isdisjoint(PROMPTS)
        return cell if is_lookup else split_cell(cell)
    if key in PROMPTS or key == "history":
        return cell or None
    if key in ("facts", "fact"):
        return [part for part in split_cell(cell) if part]
    return restored(cell) if key in JOINED else cell


def split_cell(cell: str) -> list[str]:
    """Returns the parts of a cell: separated by `|||`, or by line breaks where that does not
    occur."""
    parts = cell.split(SEPARATOR) if SEPARATOR in cell else cell.split("\n")
    return [part.strip() for part in parts]


def _references(row: dict[str, Any]) -> list[str]:
    """Returns all references of a row; empty cells mean that there are fewer."""
    return [
        part
        for column, cell in row.items()
        if column in ("references", "reference") or is_reference(column)
        for part in (split_cell(cell) if isinstance(cell, str) else cell)
        if part
    ]


def check_names(header: list[str]) -> None:
    """Raises an error unless every column has a name of its own."""
    if not header:
        raise UnreadableError("the file is empty")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise UnreadableError(f"the column {twice[0]!r} occurs twice", 1, "header")


def _check_header(header: list[str], options: ReadOptions) -> None:
    check_names(header)
    named = [without_path(column, header) for column in options.columns.values()]
    if options.texts and "response" not in options.columns and RESPONSES.isdisjoint(header):
        named.insert(0, "response")
    for column in named:
        if column not in header:
            raise UnreadableError(
                f"there is no column {column!r}.{did_you_mean(column, header)} The first line must"
                f" name the columns; it holds: {shown(', '.join(header))}. {advice(header)}",
                1,
                "header",
            )
    for one in rating_columns(header, options):
        if one.column not in header:
            others = [name for name in header if name not in NAMES and not is_reference(name)]
            raise UnreadableError(
                f"there is no column of ratings {one.column!r}.{did_you_mean(one.column, others)}"
                f" Columns that could hold ratings: {shown(', '.join(others)) or 'none'}",
                1,
                "header",
            )


def _recognises(delimiters: str) -> Callable[[Source], bool]:
    def recognises(source: Source) -> bool:
        return any(
            len(names) > 1 and not RESPONSES.isdisjoint(names)
            for names in (column_names(first_row(source, each)) for each in delimiters)
        )

    return recognises


CSV = Reader("csv", "a table with a header; commas or semicolons", _recognises(",;"), _read_csv)
TSV = Reader("tsv", "a table with a header; tabs", _recognises("\t"), _read_tsv)
