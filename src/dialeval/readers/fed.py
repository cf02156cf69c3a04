"""FED (Mehri & Eskenazi 2020): fed_data.json, 375 turns and 125 dialogues, five raters each.

    [{"context": "User: Hi!\\nSystem: Hi! What's up?\\nUser: Nothing much",
      "response": "System: You must be bored.",          <- absent: the dialogue is judged
      "system": "Meena",
      "annotations": {"Interesting": [2, 1, 1, 1, 1], "Overall": [2, 1, 3, 3, 4]}}]

Raters may answer in words ("N/A (No errors)"): such answers become None. There are no ids: samples
are called `fed-turn-0001` and `fed-dialogue-0001` in the order of the file. A record whose context
continues that of the record before belongs to the same dialogue (`fed-001`).
"""

from __future__ import annotations

from collections.abc import Iterator

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, json_records
from dialeval.readers.rating_values import ratings
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.scales import FED_DIALOGUE, FED_TURN
from dialeval.readers.source import Source
from dialeval.sample import Sample


def recognises(source: Source) -> bool:
    keys = first_keys(source)
    return {"context", "system", "annotations"} <= keys and "dialogue_id" not in keys


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    turns = dialogues = conversation = 0
    before: str | None = None
    for line, value in json_records(source, place):
        place.line = line
        errors = place.problems.errors
        record = fields.record(value, place)
        text = fields.text(record.get("context"), "context", place)
        if before is None or not text.startswith(before):
            conversation += 1
        before = text
        context = fields.turns_of_lines(text.split("\n"))
        response = record.get("response")
        if response is None:
            dialogues += 1
            known, ident = FED_DIALOGUE, f"fed-dialogue-{dialogues:04d}"
        else:
            turns += 1
            known, ident = FED_TURN, f"fed-turn-{turns:04d}"
            response = fields.without_prefix(fields.response(response, place), context)
        sample = Sample(
            id=ident,
            context=context,
            response=response,
            system=fields.name(record.get("system"), "system", place),
            dialogue=f"fed-{conversation:03d}",
            ratings=ratings(record.get("annotations"), "annotations", place, options, known),
        )
        if place.problems.errors == errors:
            yield sample
        else:
            place.problems.skipped += 1


READER = Reader("fed", "FED: fed_data.json, turns and dialogues", recognises, read)
