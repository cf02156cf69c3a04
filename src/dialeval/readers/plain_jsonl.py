"""Plain records, one JSON object per line (or one JSON array of them).

    {"id": "1", "context": ["Hi!", "Hello, who are you?"], "response": "I am Bob.",
     "references": ["My name is Bob."], "system": "v2", "ratings": {"overall": [4, 5]}}

`plain_record.py` lists the fields. What `Sample.to_record` writes is read back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dialeval.readers import fields
from dialeval.readers.containers import check_paths
from dialeval.readers.json_stream import first_keys, first_record, json_records
from dialeval.readers.messages import is_message
from dialeval.readers.plain_record import RESPONSES, advice, maker, unread
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Ratings, Sample

NO_RATINGS: Ratings = {}
MOST_KINDS = 1000
"""Sets of keys that are remembered, so that each is looked at once."""


def recognises(source: Source) -> bool:
    keys = first_keys(source)
    return not keys.isdisjoint(("context", "variants")) or not keys.isdisjoint(RESPONSES)


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    if options.texts and not _is_mapped(options) and not recognises(source):
        raise UnreadableError(_unknown(source))
    check_paths(source, options)
    make = maker(source.label, options)
    problems = place.problems
    seen: set[frozenset[str]] = set()
    unknown: dict[str, None] = {}
    number = source.span.records if source.span else 0
    for line, record in json_records(source, place):
        number += 1
        place.line = line
        errors = problems.errors
        if type(record) is dict:
            sample = make(record, number, place, NO_RATINGS)
            if (keys := frozenset(record)) not in seen:
                if len(seen) == MOST_KINDS:
                    seen.clear()
                seen.add(keys)
                names = unread(record, options.columns)
                unknown.update(dict.fromkeys(name for name in names if name not in options.ratings))
            if problems.errors == errors:
                yield sample
                continue
        else:
            fields.record(record, place)
        problems.skipped += 1
    if unknown:
        place.line = 0
        names = sorted(unknown)[:20]
        place.warning("", f"not used: {', '.join(names)}", "unused-columns", tuple(names))


def _is_mapped(options: ReadOptions) -> bool:
    return not RESPONSES.isdisjoint(options.columns)


def _unknown(source: Source) -> str:
    """Returns what unknown records hold, and what to type."""
    record = first_record(source)
    if not isinstance(record, dict):
        names = sorted(first_keys(source))
        found = f"they hold {', '.join(names[:12])}" if names else "they are no objects"
        return f"records of an unknown form: {found}. {advice(())}"
    texts, lists = _paths(record)
    found = f"records of an unknown form: they hold {', '.join(list(record)[:12])}"
    if lists:
        return f"{found}. If {lists[0]} is the conversation, add --map messages={lists[0]}"
    return f"{found}. {advice(texts)}"


def _paths(value: Any, path: str = "", depth: int = 0) -> tuple[list[str], list[str]]:
    """Returns where texts stand, and where lists of messages do."""
    texts: list[str] = []
    lists: list[str] = []
    items = value.items() if isinstance(value, dict) else enumerate(value[:3])
    for key, held in items:
        place = f"{path}.{key}" if path else str(key)
        if isinstance(held, str) and held.strip():
            texts.append(place)
        elif isinstance(held, list) and held and is_message(held[0]):
            lists.append(place)
        elif isinstance(held, dict | list) and depth < 4:
            inner = _paths(held, place, depth + 1)
            texts += inner[0]
            lists += inner[1]
    return texts, lists


READER = Reader(
    "jsonl",
    "JSON Lines with context or prompt, response or completion, references, ratings",
    recognises,
    read,
)
