"""DSTC10 track 5: NAME_eval.json, one record per rated answer or per rated dialogue.

    [{"dialogue_id": "dailydialog-zhao_00001", "model": "GPT2", "context": "well ?\\nit fits .",
      "response": "cash ?", "reference": ["cash or card ?"], "annotations": {"content": [4, 5]}}]
    [{"dialogue_id": "fed-dial_00000", "model": "Meena",
      "dialog": [{"speaker": "human", "text": "Hi!"}, {"speaker": "model", "text": "Hello"}],
      "annotations": {"Coherent": [2, 1, 2, 2, 2]}}]

`model` may be called `model_name`, `dialog` `dialogue`, and `reference` may be absent. Test files
hold items that nobody rated, also as their first ones: `annotations` is absent, null or empty,
and the item is read without ratings, with a warning. A file without any ratings is read with
`--format dstc10`. `dialogue_id` is unique per answer in these files: it is the sample's id. Where
one recurs, the second is called ID-2, with a warning; where there is none, the place in the file is
the id. Answers to the same context share an item. Scales are known for the questionnaires of FED,
USR, Zhao et al. and GRADE. Where the track left out what a rater said, it left no gap: one rater's
ratings need not stand at the same place throughout.
Unlike in `usr`, an answer that equals its only reference (the ground truth itself) keeps it, as in
the track's own evaluation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import all_keys, first_keys, json_records
from dialeval.readers.ratings import known_scales, ratings
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Sample, Turn

FIELDS = frozenset(
    ("dialogue_id", "model", "model_name", "context", "response", "reference", "fact")
)
"""What an answer of the track has besides its ratings."""


def recognises(source: Source) -> bool:
    keys = first_keys(source)
    answer = {"context", "response"} <= keys
    if "annotations" in keys:
        named = not keys.isdisjoint(("dialogue_id", "dialog", "dialogue", "model_name"))
        return named or (answer and keys <= FIELDS | {"annotations"})
    return answer and "dialogue_id" in keys <= FIELDS and "annotations" in all_keys(source)


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    items, names = fields.Items(), Names()
    for number, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        errors = place.problems.errors
        record = fields.record(value, place)
        default = f"{source.label}-{number:05d}"
        sample = _sample(record, default, items, place, options)
        if place.problems.errors == errors:
            yield replace(sample, id=names.unique(sample.id, place))
        else:
            place.problems.skipped += 1


def _sample(
    record: Mapping[str, Any],
    default: str,
    items: fields.Items,
    place: Place,
    options: ReadOptions,
) -> Sample:
    ident = fields.name(record.get("dialogue_id"), "dialogue_id", place) or default
    system = fields.name(record.get("model"), "model", place) or fields.name(
        record.get("model_name"), "model_name", place
    )
    annotations = record.get("annotations")
    if not annotations and (annotations is None or isinstance(annotations, dict)):
        place.warning("annotations", "none: nobody rated this item")
    qualities = map(str, annotations) if isinstance(annotations, dict) else ()
    rated = ratings(annotations, "annotations", place, options, known_scales(qualities))
    facts = fields.texts(record.get("fact"), "fact", place)
    whole = "dialog" if record.get("dialog") is not None else "dialogue"
    if record.get(whole) is not None:
        spoken = fields.turns(record[whole], whole, place)
        context = tuple(Turn(t.text, fields.SPEAKERS.get(t.speaker, t.speaker)) for t in spoken)
        return Sample(ident, context, facts=facts, system=system, dialogue=ident, ratings=rated)
    context = fields.turns(record.get("context"), "context", place)
    item = items.name(context, system)
    return Sample(
        id=ident,
        context=context,
        response=fields.without_prefix(fields.response(record.get("response"), place), context),
        references=fields.texts(record.get("reference"), "reference", place),
        facts=facts,
        system=system,
        dialogue=item,
        item=item,
        ratings=rated,
    )


class Names:
    """Tells repeated ids apart: `a`, `a-2`, `a-3`."""

    def __init__(self) -> None:
        self._seen = fields.IdSet()
        self._again: Counter[str] = Counter()

    def unique(self, ident: str, place: Place) -> str:
        if not self._seen.holds_or_adds(ident):
            return ident
        self._again[ident] += 1
        name = f"{ident}-{self._again[ident] + 1}"
        place.warning("dialogue_id", f"{ident[:80]!r} again: its id here is {name[:90]!r}")
        return name


READER = Reader("dstc10", "DSTC10 track 5: NAME_eval.json", recognises, read)
