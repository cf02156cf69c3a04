"""Topical-Chat (Gopalakrishnan et al. 2019): valid_freq.json and others, every turn rated.

    {"t_c04d2b82": {"article_url": "https://...", "config": "D",
                    "content": [{"message": "Hello! Do you like rock music?", "agent": "agent_1",
                                 "sentiment": "Happy", "turn_rating": "Good"}, ...]}}

Every turn is a sample: the turns before it are its context, and the speaker of the rated turn is
`system`. The partner rated it in words, from Poor to Excellent; here they are 1 to 5 of the quality
`turn_rating`, None where nothing was said. Ids are `t_c04d2b82-01`, in the order of the turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, object_members
from dialeval.readers.rating_values import number, shown
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Rating, Sample, Turn

QUALITY = "turn_rating"
SCALE = (1.0, 5.0)
WORDS = {"Poor": 1.0, "Not Good": 2.0, "Passable": 3.0, "Good": 4.0, "Excellent": 5.0}


def recognises(source: Source) -> bool:
    text = source.text_head.lstrip()
    return (
        text.startswith("{")
        and '"turn_rating"' in text
        and '"content"' in text
        and "turn_rating" not in _outer_keys(source)
    )


def _outer_keys(source: Source) -> set[str]:
    """The keys of a whole record on the first line; that of JSON Lines is not ours."""
    return first_keys(source) if source.text_head.partition("\n")[0].endswith("}") else set()


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    scale = options.scales.get(QUALITY) or SCALE
    for line, ident, value in object_members(source, place):
        place.line = line
        conversation = fields.record(value, place)
        yield from fields.usable(_samples(ident, conversation, place, scale), place)


def _samples(
    ident: str, conversation: Mapping[str, Any], place: Place, scale: tuple[float, float]
) -> Iterator[Sample]:
    content = conversation.get("content")
    if not isinstance(content, list):
        place.error("content", fields.expected("a list of turns", content))
        return
    spoken: list[Turn] = []
    for index, value in enumerate(content):
        turn = fields.record(value, place)
        message = fields.text(turn.get("message"), f"content[{index}].message", place)
        agent = fields.name(turn.get("agent"), f"content[{index}].agent", place)
        said = _said(turn.get("turn_rating"), f"content[{index}].turn_rating", place, scale)
        yield Sample(
            id=f"{ident}-{index + 1:02d}",
            context=tuple(
                Turn(before.text, "system" if before.speaker == agent else "user")
                for before in spoken
            ),
            response=message,
            dialogue=ident,
            ratings={QUALITY: Rating((said,), scale)},
        )
        spoken.append(Turn(message, agent))


def _said(value: object, field: str, place: Place, scale: tuple[float, float]) -> float | None:
    if not isinstance(value, str) or not value.strip():
        return number(value, field, place, scale)
    if (rated := WORDS.get(value.strip())) is None:
        place.warning(field, f"{shown(value)} is none of {', '.join(WORDS)}: dropped")
    return rated


READER = Reader(
    "topical-chat", "Topical-Chat: conversations whose turns are rated", recognises, read
)
