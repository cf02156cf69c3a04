"""Scores that another tool computed: a table with a column `id` and one column for each metric.

A run will do as well: ratings that were collected after scoring are held against it by id.

Commas, semicolons or tabs, whichever makes a header with a column `id`. Like any other file it may
be compressed, and all that is wrong with it is told at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from dialeval.errors import InputError, UsageError, did_you_mean
from dialeval.metric import Direction
from dialeval.readers.plain_csv import column_names, first_row, rows
from dialeval.readers.rating_values import shown
from dialeval.readers.reader import Place, Problems, UnreadableError
from dialeval.readers.source import Source
from dialeval.run import Run, open_run
from dialeval.spreadsheet import restored

Scores = Mapping[str, Mapping[str, float | None]]
"""Metric -> id of the sample -> score."""


def read_scores(path: Path) -> Scores:
    """All of its columns. An empty cell or NaN is a missing score; all else must be a number."""
    problems = Problems()
    place = Place(problems, str(path))
    scores: dict[str, dict[str, float | None]] = {}
    if (path / "manifest.json").is_file():
        return scores_of_run(open_run(path))
    try:
        source = Source(path)
        if source.is_directory:
            raise UsageError(f"{path}: is a folder, not a table of scores")
        if source.is_missing:
            raise UsageError(f"{path}: there is no such file of scores")
        if b"\0" in source.head:
            raise UsageError(f"{path}: is binary, not a table of scores")
        scores = _read(source, place)
    except UnreadableError as error:
        place.line = error.line
        place.error(error.field, error.problem)
    if problems.errors:
        errors = [problem for problem in problems.kept if problem.severity == "error"]
        raise InputError(errors, problems.errors - len(errors))
    if all(value is None for of_metric in scores.values() for value in of_metric.values()):
        raise UsageError(f"{path}: there is no score in it, only empty cells and NaN")
    return scores


def scores_of_run(run: Run) -> Scores:
    """What the metrics of a run say of each sample."""
    scores: dict[str, dict[str, float | None]] = {label: {} for label in run.metrics}
    for batch in run.batches(["id", *run.metrics]):
        ids = batch.column("id").to_pylist()
        for label, of_metric in scores.items():
            of_metric.update(zip(ids, batch.column(label).to_pylist(), strict=True))
    return scores


def known_directions(path: Path) -> dict[str, Direction]:
    """Which way the metrics of a run are better; a table does not say."""
    if not (path / "manifest.json").is_file():
        return {}
    return {metric["label"]: metric["direction"] for metric in open_run(path).manifest["metrics"]}


def _read(source: Source, place: Place) -> dict[str, dict[str, float | None]]:
    table = rows(source, place, _delimiter(source))
    line, cells = next(table, (0, []))
    header = column_names(cells)
    _check_header(source.name, header)
    metrics = [name for name in header if name != "id"]
    scores: dict[str, dict[str, float | None]] = {name: {} for name in metrics}
    seen: set[str] = set()
    for line, cells in table:
        place.line = line
        if len(cells) != len(header):
            place.error("", f"{len(cells)} cells, but the header has {len(header)} columns")
            continue
        row = dict(zip(header, cells, strict=True))
        ident = restored(row["id"].strip())
        if not ident:
            place.error("id", "missing")
        elif ident in seen:
            place.error("id", f"{ident[:80]!r} occurs twice")
        seen.add(ident)
        for name in metrics:
            scores[name][ident] = _number(row[name], name, place)
    if not seen:
        raise UnreadableError("there is a header but no row below it", 1)
    return scores


def _delimiter(source: Source) -> str:
    def fits(delimiter: str) -> tuple[bool, int]:
        names = column_names(first_row(source, delimiter))
        return "id" in names, len(names)

    return max((",", ";", "\t"), key=fits)


def _check_header(path: str, header: list[str]) -> None:
    if not header:
        raise UsageError(f"{path}: the file is empty")
    if "id" not in header:
        raise UsageError(
            f"{path}: a column named 'id' is needed to join the scores.{did_you_mean('id', header)}"
            f" The first line holds: {shown(', '.join(header))}"
        )
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise UsageError(f"{path}: the column {twice[0]!r} occurs twice")
    if "" in header:
        raise UsageError(f"{path}: column {header.index('') + 1} has no name")
    if len(header) == 1:
        raise UsageError(f"{path}: no column of scores beside 'id'")


def _number(text: str, field: str, place: Place) -> float | None:
    try:
        value = float(text) if text.strip() else math.nan
    except ValueError:
        comma = ": write decimals with a point" if "," in text else ""
        place.error(field, f"{shown(text)} is not a number{comma}")
        return None
    return None if math.isnan(value) else value
