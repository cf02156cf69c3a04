"""Chat logs as chatbots keep them: every answer of the assistant is judged.

    {"id": "a1", "model": "v2", "messages": [
        {"role": "system", "content": "You are a helpful pirate."},
        {"role": "user", "content": "Hi!"},
        {"role": "assistant", "content": "Ahoy!", "ratings": {"overall": 5}}]}

One JSON object per line, or one array of them. Each assistant message becomes a sample with all
turns before it as its context. Its id is `a1#1`: the dialogue's id and the turn's place among the
turns, counted from 0. A dialogue without an id is called after its file: `chats-000001`.

- `system` (and `developer`) messages are instructions to the assistant, no turns and no facts of
  the conversation: they are left out, unless `system_prompt="facts"` (`--system-prompt facts`)
  makes `facts` of them, which raters see. What the record calls `facts` is kept in any case.
- `tool` and `function` messages, and assistant messages that only call tools, were not said to the
  user: they are neither judged nor shown as turns.
- Roles: user, human; assistant, model, bot, system-bot. Content is text, or a list of parts, of
  which those of type `text` are joined by line breaks.
- `references` and `ratings` may stand in the message, or in the record for its last answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dialeval.readers import fields
from dialeval.readers.json_stream import first_keys, json_records
from dialeval.readers.rating_values import ratings, shown
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Ratings, Sample, Turn

INSTRUCTIONS = ("system", "developer")
TOOLS = ("tool", "function")


def recognises(source: Source) -> bool:
    return "messages" in first_keys(source)


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    for number, (line, value) in enumerate(json_records(source, place), 1):
        place.line = line
        errors = place.problems.errors
        chat = _parse(fields.record(value, place), place, options)
        if place.problems.errors == errors:
            yield from _samples(chat, chat.id or f"{source.label}-{number:06d}")
        else:
            place.problems.skipped += 1


@dataclass(slots=True)
class _Answer:
    """An answer to judge: its place among the turns, and what was known and said about it."""

    turn: int
    facts: int
    system: str
    references: tuple[str, ...]
    ratings: Ratings


@dataclass(slots=True)
class _Chat:
    id: str
    turns: list[Turn] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    answers: list[_Answer] = field(default_factory=list)


def _samples(chat: _Chat, dialogue: str) -> Iterator[Sample]:
    for answer in chat.answers:
        yield Sample(
            id=f"{dialogue}#{answer.turn}",
            context=tuple(chat.turns[: answer.turn]),
            response=chat.turns[answer.turn].text,
            references=answer.references,
            facts=tuple(chat.facts[: answer.facts]),
            system=answer.system,
            dialogue=dialogue,
            ratings=answer.ratings,
        )


def _parse(record: Mapping[str, Any], place: Place, options: ReadOptions) -> _Chat:
    chat = _Chat(fields.name(record.get("id"), "id", place))
    chat.facts += fields.texts(record.get("facts"), "facts", place)
    system = fields.name(record.get("system"), "system", place) or fields.name(
        record.get("model"), "model", place
    )
    messages = record.get("messages")
    if not isinstance(messages, list):
        problem = "missing" if messages is None else fields.expected("a list", messages)
        place.error("messages", problem)
        return chat
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            place.error(where, fields.expected("an object with role and content", message))
            continue
        role = fields.text(message.get("role"), f"{where}.role", place).lower()
        if role in INSTRUCTIONS:
            instructions = _content(message, where, place)
            if options.system_prompt == "facts":
                chat.facts.append(instructions)
        elif role in TOOLS or not role:
            continue
        elif role not in fields.SPEAKERS:
            place.error(f"{where}.role", f"unknown role {shown(role)}: expected user or assistant")
        elif (speaker := fields.SPEAKERS[role]) == "user":
            chat.turns.append(Turn(_content(message, where, place), speaker))
        elif not _only_calls_tools(message):
            chat.answers.append(
                _Answer(
                    turn=len(chat.turns),
                    facts=len(chat.facts),
                    system=fields.name(message.get("model"), f"{where}.model", place) or system,
                    references=_references(message, f"{where}.", place),
                    ratings=ratings(message.get("ratings"), f"{where}.ratings", place, options),
                )
            )
            chat.turns.append(Turn(_answer(message, where, place), speaker))
    if chat.answers:
        last = chat.answers[-1]
        last.references += _references(record, "", place)
        last.ratings = {
            **ratings(record.get("ratings"), "ratings", place, options),
            **last.ratings,
        }
    else:
        place.warning("messages", "no answer of an assistant: nothing to judge")
    return chat


def _only_calls_tools(message: Mapping[str, Any]) -> bool:
    calls = message.get("tool_calls") or message.get("function_call")
    return bool(calls) and message.get("content") in (None, "", [])


def _answer(message: Mapping[str, Any], where: str, place: Place) -> str:
    content = _content(message, where, place)
    if not content.strip() and isinstance(message.get("content"), str | list):
        place.warning(f"{where}.content", "empty: kept, as a system that says nothing")
    return content


def _content(message: Mapping[str, Any], field: str, place: Place) -> str:
    content = message.get("content")
    if not isinstance(content, list):
        return fields.text(content, f"{field}.content", place)
    parts = []
    for index, part in enumerate(content):
        if isinstance(part, dict) and part.get("type", "text") == "text":
            parts.append(fields.text(part.get("text"), f"{field}.content[{index}].text", place))
        elif not isinstance(part, dict):
            place.error(f"{field}.content[{index}]", fields.expected("an object", part))
        else:
            kind = str(part.get("type"))[:40]
            place.warning(f"{field}.content[{index}]", f"a part of type {kind!r} is left out")
    return "\n".join(parts)


def _references(holder: Mapping[str, Any], prefix: str, place: Place) -> tuple[str, ...]:
    plural = fields.texts(holder.get("references"), f"{prefix}references", place)
    return plural + fields.texts(holder.get("reference"), f"{prefix}reference", place)


READER = Reader("chat", "chat logs: JSON Lines with messages of role and content", recognises, read)
