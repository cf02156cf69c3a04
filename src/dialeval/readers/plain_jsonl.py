"""Plain records, one JSON object per line (or one JSON array of them).

    {"id": "1", "context": ["Hi!", "Hello, who are you?"], "response": "I am Bob.",
     "references": ["My name is Bob."], "system": "v2", "ratings": {"overall": [4, 5]}}

`plain_record.py` lists the fields. What `Sample.to_record` writes is read back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, json_records
from dialeval.readers.plain_record import ALIASES, NAMES, maker
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Ratings, Sample

NO_RATINGS: Ratings = {}


def recognises(source: Source) -> bool:
    return not first_keys(source).isdisjoint(("response", "context", "variants"))


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    make = maker(source.label, options)
    problems = place.problems
    known = {*NAMES, *ALIASES, *options.columns.values(), *options.ratings}
    unknown: dict[str, None] = {}
    number = 0
    for line, record in json_records(source, place):
        number += 1
        place.line = line
        errors = problems.errors
        if type(record) is dict:
            sample = make(record, number, place, NO_RATINGS)
            if not record.keys() <= known:
                unknown.update(dict.fromkeys(key for key in record if key not in known))
            if problems.errors == errors:
                yield sample
                continue
        else:
            fields.record(record, place)
        problems.skipped += 1
    if unknown:
        place.line = 0
        names = tuple(sorted(unknown)[:20])
        place.warning("", f"not used: {', '.join(names)}", "unused-columns", names)


READER = Reader("jsonl", "JSON Lines with context, response, references, ratings", recognises, read)
