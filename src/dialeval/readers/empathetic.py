"""EmpatheticDialogues (Rashkin et al. 2019), one file per emotion, or the folder of them.

    Dialog_ID,Type,Actor,Text,Label
    hit:4821_conv:9643,situation,none,When my car caught on fire while driving,devastated
    hit:4821_conv:9643,utterance,speaker,I had my car catch on fire while driving!,devastated
    hit:4821_conv:9643,utterance,listener,"Oh my gosh, what did you do?",questioning

The speaker, who has the feeling, is the user and the listener the system. The last turn is the
response that can be judged; the situation, which the listener was not told, is not read, nor are
the labels. Nobody rated anything. A sample is called after its dialogue.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from dialeval.readers.plain_csv import first_row, rows
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample, Turn

HEADER = ["Dialog_ID", "Type", "Actor", "Text", "Label"]
SPEAKERS = {"speaker": "user", "listener": "system"}


def recognises(source: Source) -> bool:
    return bool(_files(source.path)) if source.is_directory else _is_ours(source)


def _is_ours(source: Source) -> bool:
    return first_row(source, ",") == HEADER


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.csv")) if _is_ours(Source(path))]


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    if not source.is_directory:
        yield from _read_file(source, place)
        return
    for path in _files(source.path):
        place.path = str(path)
        yield from _read_file(source.beside(path), place)


def _read_file(source: Source, place: Place) -> Iterator[Sample]:
    table = rows(source, place, ",")
    if next(table, (0, []))[1] != HEADER:
        raise UnreadableError(f"expected the header {','.join(HEADER)}", 1)
    for ident, dialogue in groupby(_usable(table, place), key=lambda row: row[1][0]):
        found = list(dialogue)
        place.line = found[0][0]
        turns = [
            Turn(cells[3], SPEAKERS.get(cells[2], cells[2]))
            for _, cells in found
            if cells[1] == "utterance"
        ]
        if turns:
            yield Sample(
                id=ident, context=tuple(turns[:-1]), response=turns[-1].text, dialogue=ident
            )
        else:
            place.error("Dialog_ID", f"{ident[:80]!r} has no utterance")
            place.problems.skipped += 1


def _usable(
    table: Iterator[tuple[int, list[str]]], place: Place
) -> Iterator[tuple[int, list[str]]]:
    for line, cells in table:
        if len(cells) == len(HEADER) and cells[0].strip():
            yield line, cells
        else:
            place.line = line
            place.error("", f"expected {len(HEADER)} cells, the first of them an id")
            place.problems.skipped += 1


READER = Reader("empathetic", "EmpatheticDialogues: a CSV per emotion", recognises, read)
