"""DSTC10 track 5: NAME_eval.json, one record per rated answer or per rated dialogue.

    [{"dialogue_id": "dailydialog-zhao_00001", "model": "GPT2", "context": "well ?\\nit fits .",
      "response": "cash ?", "reference": ["cash or card ?"], "annotations": {"content": [4, 5]}}]
    [{"dialogue_id": "fed-dial_00000", "model": "Meena",
      "dialog": [{"speaker": "human", "text": "Hi!"}, {"speaker": "model", "text": "Hello"}],
      "annotations": {"Coherent": [2, 1, 2, 2, 2]}}]

`model` may be called `model_name`, and `reference` may be absent. `dialogue_id` is unique per
answer in these files: it is the sample's id. Answers to the same context share an item. Scales are
known for the questionnaires of FED, USR, Zhao et al. and GRADE. Where the track left out what a
rater said, it left no gap: one rater's ratings need not stand at the same place throughout.
Unlike in `usr`, an answer that equals its only reference (the ground truth itself) keeps it, as in
the track's own evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, json_records
from dialeval.readers.ratings import known_scales, ratings
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Sample, Turn


def recognises(source: Source) -> bool:
    keys = first_keys(source)
    return "annotations" in keys and not keys.isdisjoint(("dialogue_id", "dialog", "model_name"))


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    items = fields.Items()
    for number, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        errors = place.problems.errors
        record = fields.record(value, place)
        sample = _sample(record, f"{source.label}-{number:05d}", items, place, options)
        if place.problems.errors == errors:
            yield sample
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
    if annotations is None:
        place.error("annotations", "missing")
    qualities = map(str, annotations) if isinstance(annotations, dict) else ()
    rated = ratings(annotations, "annotations", place, options, known_scales(qualities))
    facts = fields.texts(record.get("fact"), "fact", place)
    if record.get("dialog") is not None:
        spoken = fields.turns(record["dialog"], "dialog", place)
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


READER = Reader("dstc10", "DSTC10 track 5: NAME_eval.json", recognises, read)
