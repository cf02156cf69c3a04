"""Ratings and scores from files.

Ratings come from any file that `dialeval.load` reads. A file of ratings needs no dialogues: scores
are joined to it by id. If no column counts as ratings, people most often have one under another
name, and the error says how to name it.

Scores come from tables with a column `id` and one column for each metric, or from runs. From a
table that `dialeval export` wrote, the scores are read; texts, ratings, parts and notes are not.
Another tool's table has commas, semicolons or tabs, whichever makes a header with a column `id`, or
is JSON; there every column is a metric. Whether lower is better is known of a column that bears the
name of one of our metrics.

Several tables are joined by id. A metric may be in more than one of them if no sample is, and if
runs measured it in the same way. A table may be compressed, and all its errors are reported at
once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from dialeval.agreement.joining import differing_fields
from dialeval.errors import InputError, UsageError, did_you_mean
from dialeval.limits import USUAL, Limits
from dialeval.metric import Direction
from dialeval.readers import arrow
from dialeval.readers.detect import open_sources
from dialeval.readers.json_stream import json_records
from dialeval.readers.load import Samples, read_options
from dialeval.readers.plain_csv import column_names, first_row, rows
from dialeval.readers.ratings import PREFIX, shown
from dialeval.readers.reader import Place, Problems, UnreadableError
from dialeval.readers.source import PathLike, Source, is_database
from dialeval.registry import METRICS
from dialeval.remote import located
from dialeval.runs.run import Run, is_run, open_run
from dialeval.sample import Sample
from dialeval.scores import Signature
from dialeval.text import restored


def load_ratings(
    paths: Sequence[PathLike],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    ratings: Sequence[str] = (),
    scales: Mapping[str, tuple[float, float]] | None = None,
    largest_record: int = USUAL,
) -> Samples:
    """Like `dialeval.load`, but a record may consist of an id and ratings only, and a run stands
    for the samples that it scored."""
    options = replace(read_options(columns or {}, ratings, scales or {}), texts=False)
    files = [file for path in paths for file in _samples_of(path)]
    opened, problems = open_sources(files, format, Limits(largest_record), options.columns)
    if problems:
        raise InputError(problems)
    return Samples(opened, options)


def _samples_of(path: PathLike) -> Sequence[PathLike]:
    """Returns the score files of a run, or the file itself."""
    if not is_run(path) and not (located(path) / "job.json").is_file():
        return [path]
    return open_run(located(path)).score_files


def some_rated(samples: Samples) -> Iterator[Sample]:
    """Yields all samples. If none of them has a rating, the error says how to name columns of
    ratings."""
    rated = False
    for sample in samples:
        rated = rated or bool(sample.ratings)
        yield sample
    if not rated:
        raise _no_ratings(samples)


def _no_ratings(samples: Samples) -> UsageError:
    if all(is_database(name) for name in samples.formats):
        return UsageError(f"{', '.join(samples.formats)}: nobody has rated anything yet")
    columns = [name for problem in samples.problems for name in problem.names]
    name = columns[0] if columns else "overall"
    short = name.removeprefix(PREFIX)
    unread = f" Not used: {', '.join(columns)}." if columns else ""
    return UsageError(
        f"{', '.join(samples.formats)}: no sample has ratings.{unread} Name a column that holds"
        f" them: --rating {name}. Or, in a table, rename it to {PREFIX}{short} ({PREFIX}{short}_1,"
        f' {PREFIX}{short}_2 for several raters); in JSON, write "ratings": {{"{short}": [4, 5]}}'
    )


def remarks(samples: Samples) -> str:
    """Returns the first warning of the last pass and the number of others, without unused
    columns."""
    told = [p for p in samples.problems if p.severity == "warning"]
    odd = [p for p in told if p.code != "unused-columns"]
    count = samples.counts.warnings - (len(told) - len(odd))
    if not odd:
        return ""
    more = f", and {count - 1:,} more (dialeval data check lists them)" if count > 1 else ""
    return f"{odd[0]}{more}"


Scores = Mapping[str, Mapping[str, float | None]]
"""Metric -> id of the sample -> score."""

Row = tuple[int, Mapping[str, Any]]
"""The number of a line, and its cells by column."""

ID, NOTE = "id", ".note"


def read_all_scores(paths: Sequence[Path], largest_record: int = USUAL) -> Scores:
    """Reads the scores of several tables or runs together."""
    _check_runs_agree(paths)
    joined: dict[str, dict[str, float | None]] = {}
    origins: dict[str, dict[str, Path]] = {}
    for path in paths:
        for metric, scores in read_scores(path, largest_record).items():
            known, seen = joined.setdefault(metric, {}), origins.setdefault(metric, {})
            if twice := next((ident for ident in scores if ident in known), None):
                raise UsageError(
                    f"{metric!r} of the sample {twice[:80]!r} is in {seen[twice]} and in {path}."
                    " Leave one of them out, or rename the metric."
                )
            known.update(scores)
            seen.update(dict.fromkeys(scores, path))
    return joined


def _check_runs_agree(paths: Sequence[Path]) -> None:
    """Raises an error if runs measured a metric differently: their scores are not one column."""
    found: dict[str, tuple[Path, Signature]] = {}
    for path in paths:
        if not is_run(path):
            continue
        for label, signature in open_run(path).signatures.items():
            own = Signature.parse(signature.short())
            first, other = found.setdefault(label, (path, own))
            if different := differing_fields([other, own]):
                raise UsageError(
                    f"{first} and {path} measured {label!r} differently"
                    f" ({', '.join(different)}): their scores are not one metric's. Leave one out."
                )


def read_scores(path: Path, largest_record: int = USUAL) -> Scores:
    """Reads the scores of a table or run. An empty cell or NaN is a missing score; others are
    numbers."""
    problems = Problems()
    place = Place(problems, str(path))
    scores: dict[str, dict[str, float | None]] = {}
    if is_run(path):
        return scores_of_run(open_run(path))
    try:
        source = Source(path, limits=Limits(largest_record))
        if source.is_directory:
            raise UsageError(f"{path}: is a folder, not a table of scores")
        if source.is_missing:
            raise UsageError(f"{path}: there is no such file of scores")
        scores = _read(_rows(source, place), place)
    except UnreadableError as error:
        place.line = error.line
        place.error(error.field, error.problem)
    problems.check()
    if all(value is None for of_metric in scores.values() for value in of_metric.values()):
        raise UsageError(f"{path}: there is no score in it, only empty cells and NaN")
    return scores


def scores_of_run(run: Run) -> Scores:
    """Returns the scores of a run, by metric and id."""
    scores: dict[str, dict[str, float | None]] = {label: {} for label in run.metrics}
    for batch in run.batches(["id", *run.metrics]):
        ids = batch.column("id").to_pylist()
        for label, of_metric in scores.items():
            of_metric.update(zip(ids, batch.column(label).to_pylist(), strict=True))
    return scores


def known_directions(paths: Iterable[Path], labels: Iterable[str]) -> dict[str, Direction]:
    """Returns the directions of the metrics of runs. A table holds none, but a label such as
    `bleu:n=2` in it names a metric that we know."""
    known = frozenset(METRICS.working())
    named = {label: label.partition(":")[0] for label in labels}
    of_names = {
        label: METRICS.get(name).direction for label, name in named.items() if name in known
    }
    return of_names | {
        metric["label"]: metric["direction"]
        for path in paths
        if is_run(path)
        for metric in open_run(path).manifest["metrics"]
    }


def _rows(source: Source, place: Place) -> Iterator[Row]:
    if source.head.startswith(arrow.PARQUET):
        return _parquet_rows(source)
    if b"\0" in source.head:
        raise UsageError(f"{source.name}: is binary, not a table of scores")
    if source.text_head.lstrip().startswith(("{", "[")):
        return _json_rows(source, place)
    return _cell_rows(source, place)


def _read(table: Iterator[Row], place: Place) -> dict[str, dict[str, float | None]]:
    scores: dict[str, dict[str, float | None]] = {}
    seen: set[str] = set()
    metrics: dict[tuple[str, ...], list[str]] = {}
    for line, row in table:
        place.line = line
        columns = tuple(row)
        if columns not in metrics:
            metrics[columns] = _scored(columns)
        ident = str(row.get(ID) or "").strip()
        if not ident:
            place.error(ID, "missing")
        elif ident in seen:
            place.error(ID, f"{ident[:80]!r} occurs twice")
        seen.add(ident)
        for name in metrics[columns]:
            scores.setdefault(name, {})[ident] = _number(row[name], name, place)
    return scores


def _scored(columns: Sequence[str]) -> list[str]:
    """Returns the columns that hold scores. `dialeval export` writes a note beside each metric."""
    exported = [
        name.removesuffix(NOTE)
        for name in columns
        if name.endswith(NOTE) and name.removesuffix(NOTE) in columns
    ]
    return exported or [name for name in columns if name != ID]


def _cell_rows(source: Source, place: Place) -> Iterator[Row]:
    # Closed here: an error that somebody keeps would keep the file open.
    with closing(rows(source, place, _delimiter(source))) as table:
        _, cells = next(table, (0, []))
        header = _with_id(column_names(cells))
        _check_header(source.name, header)
        empty = True
        for line, cells in table:
            empty = False
            if len(cells) != len(header):
                place.line = line
                place.error("", f"{len(cells)} cells, but the header has {len(header)} columns")
                continue
            row = dict(zip(header, cells, strict=True))
            yield line, {**row, ID: restored(row[ID].strip())}
    if empty:
        raise UnreadableError("there is a header but no row below it", 1)


def _json_rows(source: Source, place: Place) -> Iterator[Row]:
    for line, record in json_records(source, place):
        if isinstance(record, dict):
            yield line, dict(zip(_with_id(list(record)), record.values(), strict=True))
        else:
            place.line = line
            place.error("", f"expected an object with an id and scores, not {shown(str(record))}")


def _parquet_rows(source: Source) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with source.seekable() as file:
            table = pq.ParquetFile(file, page_checksum_verification=True)
            header = [str(name) for name in table.schema_arrow.names]
            _check_header(source.name, header)
            # The notes tell scores from the rest, and are not read themselves.
            wanted = [ID, *_scored(header)]
            for number, row in enumerate(arrow.rows_within(file, wanted, source.limits), 1):
                yield number, row
    except (pa.ArrowException, OSError, ValueError) as error:
        first_line = (str(error).splitlines() or [""])[0][:200]
        raise UnreadableError(f"not a valid Parquet file: {first_line}", number) from error


def _with_id(columns: Sequence[str]) -> list[str]:
    """`dialogue_id`, as in submissions to DSTC10, is the id if there is no other."""
    return [ID if name == "dialogue_id" and ID not in columns else name for name in columns]


def _delimiter(source: Source) -> str:
    def fits(delimiter: str) -> tuple[bool, int]:
        names = _with_id(column_names(first_row(source, delimiter)))
        return ID in names, len(names)

    return max((",", ";", "\t"), key=fits)


def _check_header(path: str, header: Sequence[str]) -> None:
    if not header:
        raise UsageError(f"{path}: the file is empty")
    if ID not in header:
        raise UsageError(
            f"{path}: a column named 'id' is needed to join the scores.{did_you_mean(ID, header)}"
            f" The first line holds: {shown(', '.join(header))}"
        )
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise UsageError(f"{path}: the column {twice[0]!r} occurs twice")
    if "" in header:
        raise UsageError(f"{path}: column {header.index('') + 1} has no name")
    if len(header) == 1:
        raise UsageError(f"{path}: no column of scores beside 'id'")


def _number(cell: Any, field: str, place: Place) -> float | None:
    if cell is None:
        return None
    text = cell if isinstance(cell, str) else repr(cell)
    try:
        value = float(text) if text.strip() else math.nan
    except ValueError:
        comma = ": write decimals with a point" if "," in text and isinstance(cell, str) else ""
        place.error(field, f"{shown(text)} is not a number{comma}")
        return None
    return None if math.isnan(value) else value
