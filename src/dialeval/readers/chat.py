"""Chat logs, as chatbots and data sets keep them: every answer of the assistant is judged.

    {"id": "a1", "model": "v2", "messages": [
        {"role": "system", "content": "You are a helpful pirate."},
        {"role": "user", "content": "Hi!"},
        {"role": "assistant", "content": "Ahoy!", "ratings": {"overall": 5}}]}        chat
    {"id": "x1", "conversations": [{"from": "human", "value": "Hi!"},
                                   {"from": "gpt", "value": "Ahoy!"}]}                sharegpt
    {"conversation_id": "c1", "model": "vicuna-13b", "turn": 1, "conversation": [
        {"role": "user", "content": "Hi!"}, {"role": "assistant", "content": "Ahoy!"}]}   wildchat
    {"conversation_id": "c1", "role": "user", "content": "Hi!"}                       messages

The first three hold a conversation in each record: the chats of OpenAI and Anthropic, ShareGPT,
WildChat and LMSYS-Chat. In the fourth each record (or row of a table) is a message; neighbours with
the same conversation belong together, and without such a column the file is one conversation. All
are read from JSON, tables, Parquet and Arrow (`containers.py`); `messages.py` says which messages
are judged and shown.

An answer's id is `a1#1`: the dialogue's id and the turn's place among the turns, counted from 0. A
dialogue without an id is called after its file: `chats-000001`.

- `references` and `ratings` may stand in the message, or in the record for its last answer. What
  the record calls `facts` is kept.
- A log of requests has what was answered beside the messages: `response`, `completion`, `output` or
  `choices`. Then only that is judged, as earlier answers stand in records of their own. `request`
  may hold the messages. Requests may call them `input`, with `instructions` beside it (OpenAI's
  Responses), or `prompt`.
- `system` beside messages is the name of the chatbot, or a system prompt as in Anthropic's
  requests: a prompt where it is a list, is long, or stands beside a `model` and has several words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.containers import check_paths, columns, records
from dialeval.readers.messages import Chat, last_answer, messages_in, references, text_of
from dialeval.readers.plain_record import renamed
from dialeval.readers.ratings import ratings
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Sample

IDS = ("id", "conversation_id", "dialogue_id", "session_id", "thread_id", "custom_id")
ANSWERED = ("response", "completion", "output", "choices")
ASKED = ("input", "prompt")
"""What else requests call their messages, or the one text that was asked."""
LONG_NAME = 60
"""Characters: what is longer is no name of a chatbot."""


def _conversations(key: str) -> Callable[[Source, Place, ReadOptions], Iterator[Sample]]:
    def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
        check_paths(source, options)
        for number, (line, value) in enumerate(records(source, place), 1):
            place.line = line
            errors = place.problems.errors
            if isinstance(value, list):
                value = {key: value}
            record = renamed(fields.record(value, place), options.columns)
            chat = chat_of_record(record, key, place, options)
            if place.problems.errors == errors:
                name = _dialogue(record, place)
                yield from chat.samples(name or f"{source.label}-{number:06d}")
            else:
                place.problems.skipped += 1

    return read


def _dialogue(record: Mapping[str, Any], place: Place) -> str:
    for key in IDS:
        if name := fields.name(record.get(key), key, place):
            return name
    return ""


def chat_of_record(record: Mapping[str, Any], key: str, place: Place, options: ReadOptions) -> Chat:
    """Returns the conversation in a record: its messages are under `key`, or as in a request."""
    request = record.get("request")
    if isinstance(request, Mapping) and record.get(key) is None:
        record = {**request, **record}
    key = next((one for one in ("messages", key, *ASKED) if record.get(one) is not None), key)
    name, instructions = _system(record, key, place)
    facts = fields.texts(record.get("facts"), "facts", place)
    chat = Chat(place, options, facts, name)
    chat.instruct(instructions)
    if isinstance(told := record.get("instructions"), str):
        chat.instruct(told)
    messages = _messages(record.get(key))
    if key in ASKED:
        messages = messages_in(messages, "user") or messages
    if not isinstance(messages, list):
        place.error(key, _no_messages(messages))
        return chat
    errors = place.problems.errors
    beside = next((one for one in ANSWERED if record.get(one) is not None), "")
    chat.add_all(messages, key, judged=not beside)
    if beside:
        answer = last_answer(messages_in({beside: record[beside]}, "assistant"))
        if answer is not None:
            chat.add({"model": name, **answer}, beside)
    if not chat.answers and not chat.is_unanswered and place.problems.errors == errors:
        place.warning(beside or key, "no answer of an assistant: nothing to judge")
    if chat.answers:
        said = ratings(record.get("ratings"), "ratings", place, options)
        chat.rate_last(references(record, "", place), said)
    return chat


def _no_messages(found: object) -> str:
    if isinstance(found, str) and found.lstrip().startswith(("[", "{")):
        return (
            "the text is no JSON. pandas writes lists into CSV files in Python's notation:"
            " save them with to_json or to_parquet"
        )
    return "missing" if found is None else fields.expected("a list", found)


def _messages(value: Any) -> Any:
    """A cell of a table may hold messages as JSON, and `datasets` may hold a list for each key."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, Mapping) and value and all(isinstance(v, list) for v in value.values()):
        lists = list(value.values())
        if len({len(each) for each in lists}) == 1:
            return [dict(zip(value, each, strict=True)) for each in zip(*lists, strict=True)]
    return value


def _system(record: Mapping[str, Any], key: str, place: Place) -> tuple[str, str]:
    """Returns the name of the chatbot, and its instructions."""
    model = fields.name(record.get("model"), "model", place)
    system = record.get("system")
    if system is None:
        return model, ""
    if isinstance(system, list) or key == "conversations":
        return model, text_of(system, "system", place)
    name = fields.name(system, "system", place)
    is_prompt = len(name) > LONG_NAME or "\n" in name or (model and len(name.split()) > 1)
    return (model, name) if is_prompt else (name or model, "")


def _rows_of_messages(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    chat, current, number = Chat(place, options), "", 0
    errors = place.problems.errors
    for line, value in records(source, place):
        place.line = line
        record = renamed(fields.record(value, place), options.columns)
        key = next((one for one in (*IDS[1:], "dialogue") if record.get(one) is not None), "")
        dialogue = fields.name(record.get(key), key, place)
        if number == 0 or dialogue != current:
            yield from _finished(chat, current or f"{source.label}-{number:06d}", place, errors)
            system = fields.name(record.get("system"), "system", place)
            chat, current, number = Chat(place, options, (), system), dialogue, number + 1
            errors = place.problems.errors
            place.line = line
        chat.add(record, "message")
    yield from _finished(chat, current or f"{source.label}-{number:06d}", place, errors)


def _finished(chat: Chat, dialogue: str, place: Place, errors: int) -> Iterator[Sample]:
    if place.problems.errors == errors:
        yield from chat.samples(dialogue)
    else:
        place.problems.skipped += 1


def _has(key: str) -> Callable[[Source], bool]:
    """Plain records may call something else so: the id of a conversation."""

    def recognises(source: Source) -> bool:
        names = columns(source)
        return key in names and not {"context", "response"} <= names

    return recognises


def _is_chat(source: Source) -> bool:
    names = columns(source)
    text = "" if source.is_directory else source.text_head.lstrip()
    return (
        "messages" in names
        or {"request", "response"} <= names
        or ("choices" in names and not names.isdisjoint(ASKED))
        or (text.startswith("[[") and '"role"' in text[:1000])
    )


def _is_message_rows(source: Source) -> bool:
    return {"role", "content"} <= columns(source)


READER = Reader(
    "chat",
    "chat logs: records with messages of role and content (OpenAI, Anthropic)",
    _is_chat,
    _conversations("messages"),
)
SHAREGPT = Reader(
    "sharegpt",
    "ShareGPT: records with conversations of from and value",
    _has("conversations"),
    _conversations("conversations"),
)
WILDCHAT = Reader(
    "wildchat",
    "WildChat, LMSYS-Chat: records with a conversation and a model",
    _has("conversation"),
    _conversations("conversation"),
)
MESSAGES = Reader(
    "messages",
    "a message in each record or row: role, content, perhaps conversation_id",
    _is_message_rows,
    _rows_of_messages,
)
