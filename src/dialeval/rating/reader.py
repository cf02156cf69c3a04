"""A database of `dialeval rate`: every sample of the job, with what its raters said so far.

It may be read while people rate. Any other SQLite file is told apart by the table that only ours
have. A job in PostgreSQL has no file: `dialeval export URL -o ratings.jsonl` makes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from dialeval.errors import DialevalError
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import SQLITE, Source, is_database
from dialeval.sample import Sample


def recognises(source: Source) -> bool:
    return source.head.startswith(SQLITE)


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    if find_spec("sqlalchemy") is None:
        raise UnreadableError("reading it needs sqlalchemy: pip install 'dialeval[web]'")
    from dialeval.rating.opening import open_store
    from dialeval.rating.results import rated_samples

    if source.reads_once or not is_database(source.path):
        raise UnreadableError("a database is read in place: unpack it, and save it to a file")
    try:
        store = open_store(str(source.path), read_only=True)
        if store is None:
            return
        for number, sample in enumerate(rated_samples(store), 1):
            place.line = number
            yield sample
        place.line = 0
        for problem in store.damaged:
            place.warning("", problem.removeprefix(f"{source.path}: "))
        store.close()
    except DialevalError as error:
        raise UnreadableError(str(error).removeprefix(f"{source.path}: ")) from error


READER = Reader("ratings", "the database of `dialeval rate`: samples and ratings", recognises, read)
