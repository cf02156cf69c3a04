"""USR (Mehri & Eskenazi 2020): tc_usr_data.json and pc_usr_data.json, 60 contexts x 5 or 6 answers.

    [{"context": "hello \\n hi there \\n", "fact": "your persona: i like cats .\\n",
      "responses": [{"response": "do you like cats ? \\n", "model": "Original Ground Truth",
                     "Understandable": [1, 1, 1], "Overall": [5, 5, 4]}, ...]}]

The answer of the model `Original Ground Truth` is the reference of the other answers; it is judged
too, without a reference. Every list of a response is a quality. Answers to one context share an
item. There are no ids: `tc_usr_data-0003-2` is the second answer to the third context of that file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, json_records
from dialeval.readers.rating_values import ratings
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.scales import USR
from dialeval.readers.source import Source
from dialeval.sample import Sample

GROUND_TRUTH = "Original Ground Truth"
TEXTS = ("response", "model")


def recognises(source: Source) -> bool:
    return {"context", "responses"} <= first_keys(source)


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for number, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        samples = _samples(fields.record(value, place), source.label, number, place, options)
        yield from fields.usable(samples, place)


def _samples(
    record: Mapping[str, Any], label: str, number: int, place: Place, options: ReadOptions
) -> Iterator[Sample]:
    item = f"{label}-{number:04d}"
    context = fields.turns(record.get("context"), "context", place)
    facts = tuple(fact.strip() for fact in fields.texts(record.get("fact"), "fact", place))
    answers = record.get("responses")
    if not isinstance(answers, list):
        place.error("responses", fields.expected("a list", answers))
        return
    objects = [answer for answer in answers if isinstance(answer, dict)]
    truths = tuple(
        truth.strip()
        for answer in objects
        if answer.get("model") == GROUND_TRUTH and isinstance(truth := answer.get("response"), str)
    )
    if len(objects) < len(answers):
        place.error("responses", "expected objects with response and model")
    for index, answer in enumerate(objects, 1):
        system = fields.name(answer.get("model"), f"responses[{index - 1}].model", place)
        rated = {key: said for key, said in answer.items() if key not in TEXTS}
        yield Sample(
            id=f"{item}-{index}",
            context=context,
            response=fields.response(answer.get("response"), place).strip(),
            references=() if system == GROUND_TRUTH else truths,
            facts=facts,
            system=system,
            dialogue=item,
            item=item,
            ratings=ratings(rated, f"responses[{index - 1}]", place, options, USR),
        )


READER = Reader("usr", "USR: tc_usr_data.json, pc_usr_data.json", recognises, read)
