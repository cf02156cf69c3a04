"""ConvAI2, chats of people with the bots of the challenge: data_volunteers.json and others.

    [{"dialog": [{"id": 0, "sender": "participant1", "text": "Hello!", "sender_class": "Human"},
                 {"id": 1, "sender": "participant2", "text": "Hi! How are you?",
                  "sender_class": "Bot"}],
      "bot_profile": ["i like to ride horses."], "user_profile": ["i work at a school."],
      "eval_score": 3, "participant2_id": {"class": "Bot", "user_id": "Bot 004"}}]

The exports of July 2018 (export_2018-07-04_train.json and others) have `dialog_id` and no
`sender_class`. The person is participant1 and the bot participant2 there, as in all chats of the
other files.

A chat is a whole dialogue, judged by the person who chatted: quality `eval_score`, 1 to 5, absent
where nothing was said. The profile that the bot was given becomes its facts. There are no ids:
`data_volunteers-0001` is the first chat of that file. Thumbs given to single turns
(`evaluation_score`) and the guess of the profile (`profile_match`) are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, json_records
from dialeval.readers.rating_values import rating
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Sample, Turn

QUALITY = "eval_score"
SCALE = (1.0, 5.0)
PARTICIPANTS = {"participant1": "Human", "participant2": "Bot"}
"""Who is who where a file does not say it."""


def recognises(source: Source) -> bool:
    keys = first_keys(source)
    return "dialog" in keys and not keys.isdisjoint(("eval_score", "bot_profile"))


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for number, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        record = fields.record(value, place)
        samples = _samples(record, f"{source.label}-{number:04d}", place, options)
        yield from fields.usable(samples, place)


def _samples(
    record: Mapping[str, Any], ident: str, place: Place, options: ReadOptions
) -> Iterator[Sample]:
    said = record.get(QUALITY)
    scale = options.scales.get(QUALITY) or SCALE
    yield Sample(
        id=ident,
        context=_turns(record.get("dialog"), place),
        facts=fields.texts(record.get("bot_profile"), "bot_profile", place),
        system=_bot(record, place),
        dialogue=ident,
        ratings={} if said is None else {QUALITY: rating(said, QUALITY, place, scale)},
    )


def _turns(value: object, place: Place) -> tuple[Turn, ...]:
    if not isinstance(value, list):
        place.error("dialog", fields.expected("a list of turns", value))
        return ()
    turns = []
    for index, item in enumerate(value):
        turn = fields.record(item, place)
        named = turn.get("sender_class")
        if named is None:
            named = PARTICIPANTS.get(str(turn.get("sender")))
        sender = fields.name(named, f"dialog[{index}].sender_class", place)
        spoken = fields.text(turn.get("text"), f"dialog[{index}].text", place)
        turns.append(Turn(spoken, fields.SPEAKERS.get(sender.lower(), sender)))
    return tuple(turns)


def _bot(record: Mapping[str, Any], place: Place) -> str:
    """The participant of the class Bot; either of the two may be it."""
    for key in ("participant1_id", "participant2_id"):
        who = record.get(key)
        if isinstance(who, dict) and who.get("class") == "Bot":
            return fields.name(who.get("user_id"), f"{key}.user_id", place)
    return ""


READER = Reader("convai2", "ConvAI2: chats of people with bots, rated as a whole", recognises, read)
