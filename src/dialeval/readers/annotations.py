"""Ratings from annotation tools: Label Studio (JSON) and Argilla (records as JSON).

Label Studio, `Export > JSON`: a task holds the texts in `data`, and an annotation for each rater.

    [{"id": 7, "data": {"context": "Hi!", "response": "Ahoy!"},
      "annotations": [{"completed_by": 3, "was_cancelled": false,
        "result": [{"from_name": "overall", "type": "rating", "value": {"rating": 4}}]}]}]

Argilla, `dataset.records.to_json(path)`: a record holds the texts in `fields`, and for each
question the answers of users.

    [{"id": "7", "fields": {"context": "Hi!", "response": "Ahoy!"}, "metadata": {"system": "bot"},
      "responses": {"overall": [{"user_id": "u1", "value": 4}]}}]

A quality is what the tool calls a question. Answers that are numbers (stars, numbers, a label or
choice such as "4") are ratings; free text and several choices are not, and a warning counts them.
Answers that a rater skipped, and drafts, are left out. A rater is called by the tool's id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, json_records
from dialeval.readers.plain_record import maker
from dialeval.readers.ratings import number
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Rating, Ratings, Sample

Said = dict[str, dict[str, object]]
"""Quality -> rater -> answer."""


def _is_label_studio(source: Source) -> bool:
    return {"data", "annotations"} <= first_keys(source)


def _is_argilla(source: Source) -> bool:
    return {"fields", "responses"} <= first_keys(source)


def _read_label_studio(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for line, value in json_records(source, place):
        place.line = line
        task = fields.record(value, place)
        said: Said = {}
        for one in _mappings(task.get("annotations")):
            if one.get("was_cancelled"):
                continue
            rater = _rater(one.get("completed_by"))
            for result in _mappings(one.get("result")):
                answer = _label_studio_answer(result)
                said.setdefault(str(result.get("from_name", "")), {})[rater] = answer
        yield from _sample(task, task.get("data"), said, source, place, options)


def _label_studio_answer(result: Mapping[str, Any]) -> object:
    """`{"rating": 4}`, `{"number": 4}`, `{"choices": ["4"]}`; several choices are no number."""
    values = list(result["value"].values()) if isinstance(result.get("value"), dict) else []
    answer = values[0] if len(values) == 1 else None
    return answer[0] if isinstance(answer, list) and len(answer) == 1 else answer


def _read_argilla(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for line, value in json_records(source, place):
        place.line = line
        record = fields.record(value, place)
        given = record.get("responses")
        said: Said = {}
        for quality, answers in given.items() if isinstance(given, dict) else ():
            for one in _mappings(answers):
                if one.get("status") in (None, "submitted"):
                    said.setdefault(str(quality), {})[_rater(one.get("user_id"))] = one.get("value")
        texts = {**_mapping(record.get("metadata")), **_mapping(record.get("fields"))}
        yield from _sample(record, texts, said, source, place, options)


def _sample(
    record: Mapping[str, Any],
    texts: object,
    said: Said,
    source: Source,
    place: Place,
    options: ReadOptions,
) -> Iterator[Sample]:
    """Yields a sample of the texts and the answers; the id of the texts wins over that of the
    tool."""
    errors = place.problems.errors
    flat = {"id": record.get("id"), **_mapping(texts)}
    flat.pop("ratings", None)
    sample = maker(source.label, options)(flat, place.line, place, _ratings(said, place, options))
    if place.problems.errors == errors:
        yield sample
    else:
        place.problems.skipped += 1


def _ratings(said: Said, place: Place, options: ReadOptions) -> Ratings:
    raters = sorted({rater for answers in said.values() for rater in answers})
    found = {}
    for quality, answers in said.items():
        scale = options.scales.get(quality)
        values = tuple(
            _number(answers.get(rater), f"{quality}[{rater}]", place, scale) for rater in raters
        )
        if any(value is not None for value in values):
            found[quality] = Rating(values, scale, tuple(raters))
    return found


def _number(
    answer: object, field: str, place: Place, scale: tuple[float, float] | None
) -> float | None:
    if isinstance(answer, list | dict):
        place.warning(field, "several answers or a structure, not a number: dropped")
        return None
    return number(answer, field, place, scale)


def _rater(value: object) -> str:
    """Returns the id of a person, also where the tool writes all about them: `{"id": 3, "email":
    ...}`."""
    return str(value.get("id", "")) if isinstance(value, dict) else str(value or "")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


LABEL_STUDIO = Reader(
    "label-studio", "Label Studio: tasks with annotations, as JSON", _is_label_studio,
    _read_label_studio,
)  # fmt: skip
ARGILLA = Reader("argilla", "Argilla: records with responses, as JSON", _is_argilla, _read_argilla)
