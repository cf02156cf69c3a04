"""One record with plain field names -> one sample. JSONL, CSV and Parquet share it.

| field | value |
|---|---|
| `response` | text; null: the whole dialogue is judged |
| `context` | text with a line per turn, a list of texts, or a list of {speaker, text} |
| `references`, `reference` | a text or a list |
| `facts`, `fact` | a text or a list |
| `system`, `model` | the chatbot's name |
| `id`, `dialogue`, `item` | text or a whole number |
| `ratings` | see `rating_values.py` |
| `variants` | a list of {query, response} |

Context lines that all start with `User:` or `System:` lose these prefixes, and so does the
response. Other keys are ignored. A record without an id is called after its file and its number in
it: `chats-000012`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.rating_values import rating, ratings
from dialeval.readers.reader import Place, ReadOptions
from dialeval.sample import Rating, Ratings, Sample, Turn, Variant

FIELDS = (
    "id", "dialogue", "item", "system", "context", "response", "references", "facts", "ratings",
    "variants",
)  # fmt: skip
ALIASES = {"model": "system", "reference": "references", "fact": "facts"}
NAMES = frozenset((*FIELDS, *ALIASES))

Maker = Callable[[Mapping[str, Any], int, Place, Ratings], Sample]


def maker(label: str, options: ReadOptions) -> Maker:
    """A function from (record, its number in the file, place, ratings from columns) to a sample."""

    def make(record: Mapping[str, Any], number: int, place: Place, rated: Ratings) -> Sample:
        if options.columns:
            record = renamed(record, options.columns)
        get = record.get
        context: Any = get("context")
        turns = fields.turns(context, "context", place)
        response = get("response")
        if type(response) is not str or not response or response.isspace():
            response = _unusual_response(record, turns, place, options)
        if (
            response
            and turns
            and turns[0].speaker
            and (type(context) is str or type(context[0]) is str)
        ):
            response = fields.without_prefix(response, turns)
        ident = get("id")
        if type(ident) is not str:
            ident = fields.name(ident, "id", place)
        if (own := get("ratings")) is not None:
            rated = {**ratings(own, "ratings", place, options), **rated}
        if options.ratings:
            rated = {**rated, **_named_ratings(record, options, place)}
        variants = get("variants")
        return Sample(
            ident or f"{label}-{number:06d}",
            turns,
            response,
            _texts(record, "references", "reference", place),
            _texts(record, "facts", "fact", place),
            _name(record, "system", place) or _name(record, "model", place),
            _name(record, "dialogue", place),
            _name(record, "item", place),
            rated,
            () if variants is None else _variants(variants, place),
        )

    return make


def renamed(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The record with the user's column names replaced by ours. What they replace is not used."""
    result = {
        key: value
        for key, value in record.items()
        if key not in columns and ALIASES.get(key, key) not in columns
    }
    for field, column in columns.items():
        if column in record:
            result[ALIASES.get(field, field)] = record[column]
    return result


def _unusual_response(
    record: Mapping[str, Any], turns: tuple[Turn, ...], place: Place, options: ReadOptions
) -> str | None:
    response = record.get("response")
    if not options.texts and "response" not in record:
        return ""
    if response is not None:
        return fields.response(response, place)
    if record.get("variants") is None:
        if "response" not in record:
            place.error("response", "missing. Write null to have the whole dialogue judged")
        elif not turns:
            place.error("context", "there is neither a response nor a context to judge")
    return None


def _texts(record: Mapping[str, Any], plural: str, single: str, place: Place) -> tuple[str, ...]:
    found: tuple[str, ...] = ()
    if (value := record.get(plural)) is not None:
        found = fields.texts(value, plural, place)
    if (value := record.get(single)) is not None:
        found += fields.texts(value, single, place)
    return found


def _name(record: Mapping[str, Any], key: str, place: Place) -> str:
    value = record.get(key)
    return value if type(value) is str else "" if value is None else fields.name(value, key, place)


def _named_ratings(
    record: Mapping[str, Any], options: ReadOptions, place: Place
) -> dict[str, Rating]:
    return {
        key: rating(record[key], key, place, options.scales.get(key))
        for key in options.ratings
        if key in record
    }


def _variants(value: object, place: Place) -> tuple[Variant, ...]:
    if not isinstance(value, list):
        place.error("variants", fields.expected("a list of {query, response}", value))
        return ()
    found = []
    for index, item in enumerate(value):
        field = f"variants[{index}]"
        if not isinstance(item, dict):
            place.error(field, fields.expected("an object with query and response", item))
            continue
        query = fields.text(item.get("query"), f"{field}.query", place)
        found.append(Variant(query, fields.text(item.get("response"), f"{field}.response", place)))
    return tuple(found)
