"""The rated chats of people with the bots of two ConvAI challenges.

ConvAI2, chats of people with the bots of the challenge: data_volunteers.json and others.

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

ConvAI, the Conversational Intelligence Challenge of NIPS 2017: train_full.json and others.

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
from dialeval.readers.ratings import Scale, number, rating
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Rating, Ratings, Sample, Turn

QUALITY = "eval_score"
CONVAI2_SCALE = (1.0, 5.0)
PARTICIPANTS = {"participant1": "Human", "participant2": "Bot"}
"""Who is who where a file does not say it."""


def recognises_convai2(source: Source) -> bool:
    keys = first_keys(source)
    return "dialog" in keys and not keys.isdisjoint(("eval_score", "bot_profile"))


def read_convai2(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for position, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        record = fields.record(value, place)
        samples = _samples_convai2(record, f"{source.label}-{position:04d}", place, options)
        yield from fields.usable(samples, place)


def _samples_convai2(
    record: Mapping[str, Any], ident: str, place: Place, options: ReadOptions
) -> Iterator[Sample]:
    said = record.get(QUALITY)
    scale = options.scales.get(QUALITY) or CONVAI2_SCALE
    yield Sample(
        id=ident,
        context=_turns_convai2(record.get("dialog"), place),
        facts=fields.texts(record.get("bot_profile"), "bot_profile", place),
        system=_bot(record, place),
        dialogue=ident,
        ratings={} if said is None else {QUALITY: rating(said, QUALITY, place, scale)},
    )


def _turns_convai2(value: object, place: Place) -> tuple[Turn, ...]:
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
    """Returns the participant of the class Bot; either of the two may be it."""
    for key in ("participant1_id", "participant2_id"):
        who = record.get(key)
        if isinstance(who, dict) and who.get("class") == "Bot":
            return fields.name(who.get("user_id"), f"{key}.user_id", place)
    return ""


CONVAI2_READER = Reader(
    "convai2",
    "ConvAI2: chats of people with bots, rated as a whole",
    recognises_convai2,
    read_convai2,
)


QUALITIES = ("quality", "breadth", "engagement")
CONVAI2017_SCALE = (1.0, 5.0)
SILENCE = 0


def recognises_convai2017(source: Source) -> bool:
    return first_keys(source) >= {"thread", "users", "evaluation"}


def read_convai2017(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for count, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        record = fields.record(value, place)
        samples = _samples_convai2017(record, f"{source.label}-{count:04d}", place, options)
        yield from fields.usable(samples, place)


def _samples_convai2017(
    record: Mapping[str, Any], nameless: str, place: Place, options: ReadOptions
) -> Iterator[Sample]:
    ident = fields.name(record.get("dialogId"), "dialogId", place) or nameless
    speakers = _speakers(record.get("users"), place)
    passage = fields.name(record.get("context"), "context", place)
    yield Sample(
        id=ident,
        context=_turns_convai2017(record.get("thread"), speakers, place),
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


def _turns_convai2017(value: object, speakers: Mapping[str, str], place: Place) -> tuple[Turn, ...]:
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
        scale = options.scales.get(quality) or CONVAI2017_SCALE
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


CONVAI2017_READER = Reader(
    "convai2017",
    "ConvAI 2017: chats about a passage, rated for quality, breadth and engagement",
    recognises_convai2017,
    read_convai2017,
)
