"""The directory of a probe: what `dialeval probe -o DIR` asked a live system, as samples.

A query in several wordings is one sample with `variants`; a query that was put again is one sample
whose context holds the first answer. `probe/answers.py` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dialeval.errors import InputError
from dialeval.readers import plain_jsonl
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Sample


def recognises(source: Source) -> bool:
    return source.is_directory and (source.path / "probe.json").is_file()


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    path = source.path / "samples.jsonl"
    if not path.is_file():
        raise UnreadableError(
            "the probe is not done. Repeat the `dialeval probe` command that started it: it goes on"
            " where it stopped"
        )
    place.path = str(path)
    _check(source.path, path)
    yield from plain_jsonl.read(source.beside(path, source.label), place, options)


def _check(directory: Path, samples: Path) -> None:
    """Are these the samples that the probe wrote?"""
    from dialeval.probe.directory import check_samples, read_settings

    try:
        check_samples(samples, read_settings(directory) or {})
    except InputError as error:
        raise UnreadableError(error.problems[0].problem) from error


READER = Reader(
    "probe", "the directory of `dialeval probe`: answers of a live system", recognises, read
)
