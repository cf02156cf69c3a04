"""Input in pieces that several processes read at the same time, with the samples of one reading.

    pieces = divide(samples, size=1 << 20)          of `dialeval.load(...)`; None: not divisible
    pieces = place(pieces, [piece.measure() ...])   those `to_measure`, with what is before them
    reading = piece.reading()
    for line, sample in reading: ...
    found = gather(samples, [reading.report ...], twice)

A file of plain JSON Lines is cut at ends of lines, a plain Parquet file between row groups; every
other file (compressed, CSV, chat logs, folders) is a piece of its own. Line numbers and ids are
those of the whole file. A piece is a value: another machine that sees the file can read it.

`gather` puts together what was wrong in the pieces as one pass over the files would have told it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dialeval.errors import InputError, Problem
from dialeval.limits import Limits
from dialeval.readers.json_stream import json_records
from dialeval.readers.load import Samples
from dialeval.readers.reader import KEPT_PROBLEMS, Place, Problems, ReadOptions, UnreadableError
from dialeval.readers.source import UTF16_MARKS, Source, Span
from dialeval.registry import READERS
from dialeval.sample import Sample

ROWS_TO_READ_AGAIN = 1 << 14
"""Rows of a row group up to which a piece of Parquet is simply read again for the next block."""


@dataclass(frozen=True)
class Piece:
    """A part of a file, or a whole one. `file` is its number among the files of the input."""

    file: int
    path: str
    name: str
    label: str
    limits: Limits
    reader: str
    named: str | None
    options: ReadOptions
    span: Span | None = None
    to_measure: bool = False
    """Whether the span is still a range of bytes that may begin inside a line."""
    reads_again: bool = False
    """Whether its samples are cheap to read a second time."""

    def source(self) -> Source:
        source = Source(self.path, self.label, self.limits)
        source.name, source.span = self.name, self.span
        return source

    def reading(self) -> Reading:
        """Returns the samples with their lines, and then a report."""
        return Reading(self)

    def measure(self) -> Span:
        """Returns where the lines that begin in the span start and end, and how many lines and
        records they are."""
        assert self.span is not None
        source = self.source()
        start, end = (self._line_start(source, one) for one in (self.span.start, self.span.end))
        source.span = Span(start, end)
        records = sum(1 for _ in json_records(source, Place(Problems(0), self.name)))
        lines = sum(block.count(b"\n") for block in source.blocks())
        return Span(start, end, lines, records)

    def _line_start(self, source: Source, at: int) -> int:
        """Returns where the first line at or behind a byte begins."""
        if at == 0:
            return 0
        with source.seekable() as file:
            file.seek(at - 1)
            position = at - 1
            while block := file.read(1 << 16):
                if (found := block.find(b"\n")) >= 0:
                    return position + found + 1
                position += len(block)
            return position


def size(samples: Samples) -> int:
    """Returns the bytes of all files together; a compressed file counts as it is."""
    found = 0
    for source in samples._files:
        if source.is_directory or source.reads_once:
            continue
        source.check()
        found += source._size
    return found


def divide(samples: Samples, size: int) -> list[Piece] | None:
    """Returns the pieces of all files in their order, of about `size` bytes where a file can be
    divided; None where samples are chosen, or come from a pipe or from memory."""
    if not samples.is_whole:
        return None
    pieces: list[Piece] = []
    opened = zip(samples._files, samples._readers, strict=True)
    for number, (source, reader) in enumerate(opened):
        path = source.name if source.is_remote else str(source.path.absolute())
        whole = Piece(
            number,
            path,
            source.name,
            source.label,
            source.limits,
            reader.name,
            samples._format,
            samples._options,
        )
        if reader.name == "jsonl":
            pieces += _lines(whole, source, size)
        elif reader.name == "parquet":
            pieces += _row_groups(whole, source, size)
        else:
            pieces.append(whole)
    return pieces


def _lines(whole: Piece, source: Source, size: int) -> list[Piece]:
    """Pieces of a file of which each line is a record."""
    text = source.text_head.lstrip()
    first = text.partition("\n")[0].rstrip()
    spread = not text.startswith("{") or first.endswith(("{", "[", ","))
    if spread or source.is_packed:
        return [whole]
    with source.seekable() as file:
        start = file.read(2)
        length = file.seek(0, os.SEEK_END)
    if start in UTF16_MARKS:
        return [whole]
    if length <= size:
        return [replace(whole, span=Span(0, length), reads_again=True)]
    return [
        replace(whole, span=Span(at, min(at + size, length)), to_measure=True, reads_again=True)
        for at in range(0, length, size)
    ]


def _row_groups(whole: Piece, source: Source, size: int) -> list[Piece]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if source.is_packed:
        return [whole]
    try:
        with source.seekable() as file:
            table = pq.ParquetFile(file).metadata
    except (pa.ArrowException, OSError, UnreadableError):  # the reader says what is wrong
        return [whole]
    groups = [table.row_group(number) for number in range(table.num_row_groups)]
    pieces: list[Piece] = []
    start = rows = held = before = 0
    for number, group in enumerate(groups, 1):
        rows += group.num_rows
        held += group.total_byte_size
        if held >= size or number == len(groups):
            span = Span(start, number, 0, before)
            pieces.append(replace(whole, span=span, reads_again=rows <= ROWS_TO_READ_AGAIN))
            start, before, rows, held = number, before + rows, 0, 0
    return pieces or [whole]


def place(pieces: Sequence[Piece], spans: Iterable[Span | None]) -> list[Piece]:
    """Returns the pieces with the lines and records that are before them in their file. `spans` are
    what `measure` gave, for those that have to be measured."""
    placed: list[Piece] = []
    lines = records = 0
    file = -1
    for piece, span in zip(pieces, spans, strict=True):
        if piece.file != file:
            file, lines, records = piece.file, 0, 0
        if span is None:
            placed.append(piece)
            continue
        own = Span(span.start, span.end, lines, records)
        placed.append(replace(piece, span=own, to_measure=False))
        lines, records = lines + span.lines, records + span.records
    return placed


@dataclass
class Report:
    """What a reading of a piece found, apart from its samples."""

    reader: str
    problems: list[Problem] = field(default_factory=list)
    errors: int = 0
    warnings: int = 0
    skipped: int = 0
    rated: set[str] = field(default_factory=set)
    samples: int = 0


class Reading:
    """The samples of a piece with their lines; `report` is complete when all were taken."""

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.report = Report(piece.reader)

    def __iter__(self) -> Iterator[tuple[int, Sample]]:
        piece, report = self.piece, self.report
        problems = Problems(KEPT_PROBLEMS)
        at = Place(problems, piece.name)
        own = Samples(
            [(piece.source(), READERS.get(piece.reader))], piece.options, format=piece.named
        )
        try:
            for sample in own._samples_of(0, at):
                report.samples += 1
                report.rated.update(sample.ratings)
                yield at.line, sample
        except UnreadableError as error:
            at.path, at.line = error.path or at.path, error.line
            at.error(error.field, error.problem)
        report.reader = own._readers[0].name
        report.problems = problems.kept
        report.errors, report.warnings = problems.errors, problems.warnings
        report.skipped = problems.skipped


@dataclass(frozen=True, order=True)
class Twice:
    """A sample whose id occurred before: the number of its piece, its row in that, and its line."""

    piece: int
    row: int
    line: int
    id: str


def gather(
    samples: Samples, pieces: Sequence[Piece], reports: Sequence[Report], twice: Sequence[Twice]
) -> None:
    """Gives `samples` the problems of a pass that was made in pieces, as one pass would have told
    them; raises `InputError` if there are errors that are not to be skipped."""
    found = Problems(samples._keep)
    repeated: dict[int, list[Problem]] = {}
    for one in sorted(twice):
        text = f"{one.id[:80]!r} occurs twice"
        problem = Problem(pieces[one.piece].name, one.line, "id", text, "error")
        repeated.setdefault(one.piece, []).append(problem)
    samples.counts, samples._rated = found, set()
    for number, source in enumerate(samples._files):
        own = [index for index, piece in enumerate(pieces) if piece.file == number]
        if source.remark is not None:
            folder, told = source.remark
            Place(found, folder).warning("", told)
        before = found.errors
        for problem in _of_file([(reports[index], repeated.get(index, ())) for index in own]):
            found.add(problem)
        for index in own:
            report, kept = reports[index], reports[index].problems
            errors = sum(problem.severity == "error" for problem in kept)
            found.errors += report.errors - errors
            found.warnings += report.warnings - (len(kept) - errors)
            found.skipped += report.skipped + len(repeated.get(index, ()))
            samples._rated |= report.rated
        samples._readers[number] = READERS.get(reports[own[0]].reader)
        samples._done = number + 1
        is_empty = found.errors == before and not any(reports[index].samples for index in own)
        samples._check_file(number, Place(found, source.name), is_empty)
    if found.errors and samples._bad == "raise":
        errors_kept = [problem for problem in found.kept if problem.severity == "error"]
        raise InputError(errors_kept, found.errors - len(errors_kept))


def _of_file(reports: Sequence[tuple[Report, Sequence[Problem]]]) -> Iterator[Problem]:
    """Yields the problems of a file in their order, and what is said of it as a whole once."""
    unused: dict[str, None] = {}
    whole: dict[Problem, None] = {}
    last: Problem | None = None
    for report, repeated in reports:
        of_lines = []
        for problem in report.problems:
            if problem.code == "unused-columns":
                unused.update(dict.fromkeys(problem.names))
                last = problem
            elif problem.line:
                of_lines.append(problem)
            elif problem not in whole:
                whole[problem] = None
                of_lines.append(problem)
        yield from sorted([*of_lines, *repeated], key=lambda problem: problem.line)
    if last is not None:
        names = tuple(sorted(unused)[:20])
        yield replace(last, problem=f"not used: {', '.join(names)}", names=names)
