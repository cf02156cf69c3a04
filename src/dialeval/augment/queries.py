"""Files of queries: what `dialeval augment` writes and `dialeval probe` reads.

    {"id": "chat-1", "context": [{"speaker": "system", "text": "Hello!"}], "query": "Who are you?",
     "variants": [{"query": "Who might you be?", "how": "verbs", "by": "ws"}]}

One JSON object per line. `read_queries` takes less than that, too:

- `queries`: JSON with `query`, or with a `context` that ends in it, or with nothing but texts
- `text`: a query per line
- every file of dialogues that `dialeval.load` reads: the query is the last turn of the user before
  the response. Where rival systems answered the same context, it is asked once. Of a chat log every
  turn of the user is a query, also the last one that nobody answered.

Problems are reported as for dialogues: all of them, with file, line and field.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any

from dialeval.datasets.locate import name_hint, resolve
from dialeval.errors import InputError, JobError, Problem, UsageError
from dialeval.limits import USUAL, Limits
from dialeval.readers import fields
from dialeval.readers.detect import detect
from dialeval.readers.fields import IdSet
from dialeval.readers.json_stream import first_keys, json_records
from dialeval.readers.load import Bad, FromFiles, check_system_prompt, read_options
from dialeval.readers.reader import Place, Reader, ReadOptions, SystemPrompt, UnreadableError
from dialeval.readers.source import PathLike, Source
from dialeval.registry import READERS
from dialeval.sample import Sample, Turn
from dialeval.storage import atomic_path
from dialeval.text import WORD

# A query: what is put to a chatbot, after what was said before, and its variants.


@dataclass(frozen=True, slots=True)
class QueryVariant:
    """The same query in other words.

    how      how it was made: `verbs`, `eda swap`, `beam 1`
    by       the augmenter that made it: `ws`, `ctg`; empty where the file had it
    context  the turns before it, where they are not those of the query: another dialogue
    """

    query: str
    how: str = ""
    by: str = ""
    context: tuple[Turn, ...] | None = None

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"query": self.query, "how": self.how}
        if self.by:
            record["by"] = self.by
        if self.context is not None:
            record["context"] = _turn_records(self.context)
        return record


@dataclass(frozen=True, slots=True)
class Query:
    """What a user says to a system.

    id        unique within a file
    query     the words of the user
    context   the turns before it
    facts     instructions, knowledge or persona lines that the system is to see
    variants  the query in other words
    """

    id: str
    query: str
    context: tuple[Turn, ...] = ()
    facts: tuple[str, ...] = ()
    variants: tuple[QueryVariant, ...] = ()

    @property
    def history(self) -> tuple[Turn, ...]:
        """All turns; the last one is the query."""
        return (*self.context, Turn(self.query, "user"))

    def to_record(self) -> dict[str, Any]:
        """Returns a line of our own JSONL; `read_queries` reads it back unchanged."""
        record: dict[str, Any] = {
            "id": self.id,
            "context": _turn_records(self.context),
            "query": self.query,
        }
        if self.facts:
            record["facts"] = list(self.facts)
        record["variants"] = [variant.to_record() for variant in self.variants]
        return record


def _turn_records(turns: Iterable[Turn]) -> list[dict[str, str]]:
    return [
        {"speaker": turn.speaker, "text": turn.text} if turn.speaker else {"text": turn.text}
        for turn in turns
    ]


def normalised_query(text: str) -> str:
    """Returns the words of a text, whatever its case and spacing: two that share it ask the same
    thing.

    Lower case, punctuation apart, contractions in one word, which is also how HolisticEval's
    released queries are written.
    """
    return " ".join(re.sub(r"(?<=\w)([.,!?;:\")\]]+)(?=\s|$)", r" \1", text.lower()).split())


# Where a variant differs from its query, word by word, for people to see at a glance.

LONGEST = 500
"""Words up to which texts are compared: time grows with the square, and nobody reads more."""

_PIECES = re.compile(rf"{WORD.pattern}|\s+|[^\w\s]")


def changed_pieces(original: str, variant: str) -> list[tuple[str, bool]]:
    """Returns the variant in pieces that spell it, each with whether it is new; of a long text none
    is."""
    before = [piece for piece in _PIECES.findall(original) if not piece.isspace()]
    pieces = _PIECES.findall(variant)
    places = [place for place, piece in enumerate(pieces) if not piece.isspace()]
    after = [pieces[place] for place in places]
    if max(len(before), len(after)) > LONGEST:
        return [(variant, False)]
    new = {
        places[index]
        for what, _, _, start, end in SequenceMatcher(None, before, after, False).get_opcodes()
        if what != "equal"
        for index in range(start, end)
    }
    return [(piece, place in new) for place, piece in enumerate(pieces)]


__all__ = ["Queries", "Query", "QueryVariant", "read_queries", "write_queries"]

Read = Callable[[Source, Place, ReadOptions], Iterator[Query]]


def read_queries(
    *paths: PathLike,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    system_prompt: SystemPrompt = "leave-out",
    largest_record: int = USUAL,
    bad: Bad = "raise",
    limit: int | None = None,
) -> Queries:
    """Queries from files, folders, data sets by name or `-`; arguments as in `dialeval.load`.

    `format` may be that of a file of dialogues, `queries` or `text`. With `system_prompt="facts"`
    the system that is asked is told what the assistant of a chat log was told.
    """
    if not paths:
        raise UsageError("no file given")
    options = replace(read_options(columns or {}, (), {}, system_prompt), unanswered=True)
    limits = Limits(largest_record)
    opened, problems, formats = [], [], set()
    labels: Counter[str] = Counter()
    for target in (target for path in paths for target in resolve(path)):
        source = Source(target.path, limits=limits)
        labels[source.label] += 1
        if (times := labels[source.label]) > 1:  # ids are made of it: they must not clash
            source.label = f"{source.label}-{times}"
        try:
            source.check()
            name, read = _read(source, format or target.format or None)
            opened.append((source, read))
            formats.add(name)
        except UnreadableError as error:
            hint = name_hint(source.name) if source.is_missing else ""
            problems.append(Problem(source.name, error.line, error.field, error.problem + hint))
    if problems:
        raise InputError(problems)
    check_system_prompt(system_prompt, formats)
    return Queries(opened, options, bad, limit)


def given_or_read(
    queries: PathLike | Sequence[PathLike] | Iterable[Query],
    *,
    format: str | None = None,
    system_prompt: SystemPrompt = "leave-out",
    largest_record: int = USUAL,
    limit: int | None = None,
) -> list[Query]:
    """Returns queries as they are given, or reads them from the files that are named instead."""
    given: list[Any] = [queries] if isinstance(queries, str | os.PathLike) else list(queries)
    if not any(isinstance(one, str | os.PathLike) for one in given):
        return given[:limit]
    return list(
        read_queries(
            *given,
            format=format,
            system_prompt=system_prompt,
            largest_record=largest_record,
            limit=limit,
        )
    )


class Queries(FromFiles[Query]):
    """The queries of some files; see `read_queries`."""

    def __init__(
        self,
        sources: Iterable[tuple[Source, Read]],
        options: ReadOptions,
        bad: Bad = "raise",
        limit: int | None = None,
    ) -> None:
        opened = list(sources)
        super().__init__([source for source, _ in opened], bad)
        self._reads = [read for _, read in opened]
        self._options = options
        self._limit = limit

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(source.path for source in self._files if not source.is_stdin)

    def fraction(self) -> float | None:
        """Returns how much of the input was read in this pass, by bytes; None where that is
        unknown."""
        return self._read_fraction()

    def __iter__(self) -> Iterator[Query]:
        return islice(self._read(), self._limit)

    def _items_of(self, number: int, place: Place) -> Iterator[Query]:
        return self._reads[number](self._files[number], place, self._options)


def write_queries(queries: Iterable[Query], destination: str | os.PathLike[str]) -> int:
    """Writes JSON Lines, whole or not at all, and returns how many queries there were."""
    path, count = Path(destination), 0
    try:
        with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            for query in queries:
                file.write(json.dumps(query.to_record(), ensure_ascii=False) + "\n")
                count += 1
    except OSError as error:
        raise JobError(f"cannot write {path}: {error.strerror or error}") from error
    return count


def _read(source: Source, format: str | None) -> tuple[str, Read]:
    """Reads the format of this source, as it was named or by its content, and how to read it."""
    records: tuple[str, Read] = ("queries", _read_records)
    lines: tuple[str, Read] = ("text", _read_lines)
    if format is not None:
        named = {name: (name, read) for name, read in (records, lines)}
        return named.get(format) or _from_dialogues(READERS.get(format))
    keys = set() if source.is_directory else first_keys(source)
    if "query" in keys or ("context" in keys and not keys & {"response", "variants"}):
        return records
    start = "" if source.is_directory else source.text_head.lstrip()
    if start.startswith(('"', '["')):
        return records
    try:
        return _from_dialogues(detect(source))
    except UnreadableError:
        if not start or "\0" in start or start[0] in "{[" or source.path.suffix not in ("", ".txt"):
            raise
    return lines


def _read_lines(source: Source, place: Place, options: ReadOptions) -> Iterator[Query]:
    number = 0
    for line, content in source.lines(place):
        place.line = line
        if text := content.strip():
            number += 1
            yield Query(f"{source.label}-{number:06d}", text)


def _read_records(source: Source, place: Place, options: ReadOptions) -> Iterator[Query]:
    for number, (line, value) in enumerate(json_records(source, place), start=1):
        place.line = line
        errors = place.problems.errors
        record = {"query": value} if isinstance(value, str) else fields.record(value, place)
        query = _query(record, f"{source.label}-{number:06d}", place, options)
        if place.problems.errors == errors:
            yield query
        else:
            place.problems.skipped += 1


def _query(record: Mapping[str, Any], default: str, place: Place, options: ReadOptions) -> Query:
    get = {**record, **{field: record.get(name) for field, name in options.columns.items()}}.get
    turns = fields.turns(get("context"), "context", place)
    text = get("query")
    if text is None and turns:
        text, turns = turns[-1].text, turns[:-1]
    if isinstance(text, str) and not text.strip():
        place.error("query", "empty: there is nothing to ask")
    return Query(
        fields.name(get("id"), "id", place) or default,
        fields.text(text, "query", place),
        turns,
        fields.texts(get("facts"), "facts", place),
        _variants(get("variants"), place),
    )


def _variants(value: object, place: Place) -> tuple[QueryVariant, ...]:
    """Returns a list of {query, how}, or of texts."""
    if value is None:
        return ()
    if not isinstance(value, list):
        place.error("variants", fields.expected("a list of {query, how}", value))
        return ()
    found = []
    for index, item in enumerate(value):
        field = f"variants[{index}]"
        record = {"query": item} if isinstance(item, str) else item
        if not isinstance(record, dict):
            place.error(field, fields.expected("an object with query and how", item))
            continue
        query = fields.text(record.get("query"), f"{field}.query", place)
        how = fields.name(record.get("how"), f"{field}.how", place)
        by = fields.name(record.get("by"), f"{field}.by", place)
        before = record.get("context")
        context = None if before is None else fields.turns(before, f"{field}.context", place)
        found.append(QueryVariant(query, how, by, context))
    return tuple(found)


def _from_dialogues(reader: Reader) -> tuple[str, Read]:
    def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Query]:
        seen, again = IdSet(), 0
        for sample in reader.read(source, place, options):
            query = query_of(sample)
            if query is None:
                place.warning("context", "no turn of a user: there is nothing to ask. Left out")
            elif seen.holds_or_adds(repr(query.history)):
                again += 1
            else:
                yield query
        if again:
            place.line = 0
            place.warning("", f"{again} samples have the context of an earlier one: asked once")

    return reader.name, read


def query_of(sample: Sample) -> Query | None:
    """Returns what the user last said before the response, or last in the dialogue; None if
    nothing."""
    named = any(turn.speaker == "user" for turn in sample.context)
    for place in range(len(sample.context) - 1, -1, -1):
        turn: Turn = sample.context[place]
        if turn.text.strip() and (
            turn.speaker == "user" or not (named or turn.speaker == "system")
        ):
            return Query(sample.id, turn.text, sample.context[:place], sample.facts)
    return None
