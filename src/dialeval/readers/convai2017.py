"""ConvAI, the Conversational Intelligence Challenge of NIPS 2017: train_full.json and others.

    [{"dialogId": -155769874, "context": "Though much of Enlightenment political thought ...",
      "users": [{"id": "Bob", "userType": "Human"}, {"id": "Alice", "userType": "Bot"}],
      "thread": [{"userId": "Bob", "text": "Hi", "evaluation": 0, "time": 9},
                 {"userId": "Alice", "text": "Who uses the four stages?", "evaluation": 2}],
      "evaluation": [{"userId": "Bob", "quality": 2, "breadth": 1, "engagement": 3},
                     {"userId": "Alice", "quality": 0, "breadth": 0, "engagement": 0}]}]

People talk about a passage with a bot or with each other, and rate the dialogue as a whole: the
qualities are `quality`, `breadth` and `engagement`, 1 to 5, and 0 where nothing was said. The files
of single days have `quality` only. A bot's rating does not count; but those files name the speaker
who was rated, not the one who rated, so where only one of the two ratings is there, it is the
person's, whatever its name. Of two people both ratings count.

The passage becomes a fact. The bot is `system` and the person `user`; two people keep their names.
Thumbs for single messages (`thread[].evaluation`) and times are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, json_records
from dialeval.readers.rating_values import Scale, number
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Rating, Ratings, Sample, Turn

QUALITIES = ("quality", "breadth", "engagement")
SCALE = (1.0, 5.0)
SILENCE = 0


def recognises(source: Source) -> bool:
    return first_keys(source) >= {"thread", "users", "evaluation"}


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for count, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        record = fields.record(value, place)
        samples = _samples(record, f"{source.label}-{count:04d}", place, options)
        yield from fields.usable(samples, place)


def _samples(
    record: Mapping[str, Any], nameless: str, place: Place, options: ReadOptions
) -> Iterator[Sample]:
    ident = fields.name(record.get("dialogId"), "dialogId", place) or nameless
    speakers = _speakers(record.get("users"), place)
    passage = fields.name(record.get("context"), "context", place)
    yield Sample(
        id=ident,
        context=_turns(record.get("thread"), speakers, place),
        facts=(passage,) if passage.strip() else (),
        dialogue=ident,
        ratings=_ratings(record.get("evaluation"), speakers, place, options),
    )


def _speakers(value: object, place: Place) -> dict[str, str]:
    """Id -> what we call the speaker. Raw files name Java classes: `org...communication.Bot`."""
    types = {
        fields.name(user.get("id"), f"users[{index}].id", place): fields.name(
            user.get("userType"), f"users[{index}].userType", place
        )
        for index, user in _objects(value, "users", place)
    }
    bots = {ident for ident, kind in types.items() if kind.endswith("Bot")}
    if not bots:
        return {ident: ident for ident in types}
    return {ident: "system" if ident in bots else "user" for ident in types}


def _turns(value: object, speakers: Mapping[str, str], place: Place) -> tuple[Turn, ...]:
    turns = []
    for index, said in _objects(value, "thread", place):
        who = fields.name(said.get("userId"), f"thread[{index}].userId", place)
        if who not in speakers:
            place.error(f"thread[{index}].userId", f"{who!r} is none of the users")
        spoken = fields.text(said.get("text"), f"thread[{index}].text", place)
        turns.append(Turn(spoken, speakers.get(who, who)))
    return tuple(turns)


def _ratings(
    value: object, speakers: Mapping[str, str], place: Place, options: ReadOptions
) -> Ratings:
    said = _objects(value, "evaluation", place)
    ratings = {}
    for quality in QUALITIES:
        scale = options.scales.get(quality) or SCALE
        values = _given(said, quality, speakers, place, scale)
        if values:
            ratings[quality] = Rating(values, scale)
    return ratings


def _given(
    said: Sequence[tuple[int, Mapping[str, Any]]],
    quality: str,
    speakers: Mapping[str, str],
    place: Place,
    scale: Scale,
) -> tuple[float, ...]:
    given: list[tuple[str, float]] = []
    for index, evaluation in said:
        if evaluation.get(quality) != SILENCE:
            rated = number(evaluation.get(quality), f"evaluation[{index}].{quality}", place, scale)
            who = fields.name(evaluation.get("userId"), f"evaluation[{index}].userId", place)
            given += [] if rated is None else [(speakers.get(who, who), rated)]
    if len(given) > 1:
        given = [(speaker, rated) for speaker, rated in given if speaker != "system"]
    return tuple(rated for _, rated in given)


def _objects(value: object, field: str, place: Place) -> list[tuple[int, Mapping[str, Any]]]:
    if not isinstance(value, list):
        missing = "missing" if value is None else fields.expected("a list", value)
        place.error(field, missing)
        return []
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            place.error(f"{field}[{index}]", fields.expected("an object", item))
    return [(index, item) for index, item in enumerate(value) if isinstance(item, dict)]


READER = Reader(
    "convai2017",
    "ConvAI 2017: chats about a passage, rated for quality, breadth and engagement",
    recognises,
    read,
)
