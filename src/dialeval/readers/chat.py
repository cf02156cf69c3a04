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

Exports of ChatGPT and Claude, and batches of OpenAI:

    {"conversation_id": "c1", "current_node": "n2", "mapping": {
        "n1": {"parent": null, "message": {"author": {"role": "user"},
                                           "content": {"content_type": "text", "parts": ["Hi!"]}}},
        "n2": {"parent": "n1", "message": {"author": {"role": "assistant"}, ...}}}}      chatgpt
    {"uuid": "c1", "chat_messages": [{"sender": "human", "text": "Hi!"},
                                     {"sender": "assistant", "text": "Ahoy!"}]}          claude
    {"custom_id": "r1", "method": "POST", "url": "/v1/chat/completions",
     "body": {"model": "gpt-4o", "messages": [...]}}
    {"custom_id": "r1", "response": {"body": {"choices": [...]}}, "error": null}   openai-batch

A conversation in ChatGPT is a tree, as questions can be edited and answers made again. The path
from `current_node` back to the root is what the user saw last, and is read; other branches are not.
Nodes of tools, calls of tools, thoughts and hidden nodes were not seen, so they are left out.

In Claude's export the parts in `content` count where they hold a text: `text` may be empty, or have
remarks in place of other parts. Attached files are left out.

A batch has its requests in one file and their answers in another. dialeval reads a file that holds
both, in any order, joined by `custom_id`; memory holds all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.containers import check_paths, columns, records
from dialeval.readers.messages import Chat, last_answer, messages_in, references, text_of
from dialeval.readers.plain_record import PROMPTS, renamed
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


Conversation = Callable[[Mapping[str, Any], Place, ReadOptions], Chat]


def _reads(conversation: Conversation, *ids: str) -> Callable[..., Iterator[Sample]]:
    """Returns a reader of records that are a conversation each, called by the first of `ids`."""

    def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
        for number, (line, value) in enumerate(records(source, place), 1):
            place.line = line
            errors = place.problems.errors
            record = renamed(fields.record(value, place), options.columns)
            chat = conversation(record, place, options)
            name = next((record[key] for key in ids if record.get(key)), "")
            name = fields.name(name, ids[0], place) or f"{source.label}-{number:06d}"
            if place.problems.errors > errors:
                place.problems.skipped += 1
                continue
            if not chat.answers and not chat.is_unanswered:
                place.warning("", "no answer of an assistant: nothing to judge")
            yield from chat.samples(name)

    return read


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# ---- ChatGPT -----------------------------------------------------------------------------------

SHOWN = ("text", "multimodal_text")
"""Types of content that people see. Others are code for a tool, what it printed, or thoughts."""


def _chatgpt(record: Mapping[str, Any], place: Place, options: ReadOptions) -> Chat:
    chat = Chat(place, options, (), fields.name(record.get("default_model_slug"), "model", place))
    for name, message in _path(record, place):
        metadata, content = _object(message.get("metadata")), _object(message.get("content"))
        parts = content.get("parts")
        if (
            metadata.get("is_visually_hidden_from_conversation")
            or message.get("recipient", "all") not in ("all", None)
            or content.get("content_type", "text") not in SHOWN
            or not isinstance(parts, list)
            or not any(not isinstance(part, str) or part.strip() for part in parts)
        ):
            continue
        said = {
            "role": _object(message.get("author")).get("role"),
            "content": [_part(part) for part in parts],
            "model": metadata.get("model_slug"),
        }
        chat.add(said, f"mapping.{name}.message")
    return chat


def _path(record: Mapping[str, Any], place: Place) -> list[tuple[str, Mapping[str, Any]]]:
    """Returns the messages from the root to the current node, by the names of their nodes."""
    nodes, name = _object(record.get("mapping")), record.get("current_node")
    if not isinstance(name, str) or name not in nodes:
        place.error("current_node", "names no node of the mapping")
        return []
    found: dict[str, Mapping[str, Any]] = {}
    while isinstance(name, str) and name in nodes and name not in found:
        node = _object(nodes[name])
        found[name] = _object(node.get("message"))
        name = node.get("parent")
    return [(name, message) for name, message in reversed(found.items()) if message]


def _part(part: object) -> object:
    """Speech has its transcription; a picture is a part without text."""
    if not isinstance(part, Mapping):
        return part
    if isinstance(part.get("text"), str):
        return part["text"]
    return {"type": part.get("content_type") or "unknown"}


def _is_chatgpt(source: Source) -> bool:
    return {"mapping", "current_node"} <= columns(source) or (
        {"title", "create_time", "mapping"} <= columns(source)
    )


# ---- Claude ------------------------------------------------------------------------------------


def _claude(record: Mapping[str, Any], place: Place, options: ReadOptions) -> Chat:
    chat = Chat(place, options, (), fields.name(record.get("model"), "model", place))
    messages = record.get("chat_messages")
    if not isinstance(messages, list):
        found = "missing" if messages is None else fields.expected("a list", messages)
        place.error("chat_messages", found)
        return chat
    for index, message in enumerate(messages):
        where = f"chat_messages[{index}]"
        if isinstance(message, Mapping):
            message = {"sender": message.get("sender"), "content": _said(message)}
        chat.add(message, where)
    return chat


def _said(message: Mapping[str, Any]) -> object:
    parts = message.get("content")
    has_text = isinstance(parts, list) and any(_object(part).get("text") for part in parts)
    return parts if has_text or message.get("text") is None else message["text"]


# ---- Batches of OpenAI -------------------------------------------------------------------------


def _batch(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    asked: dict[str, tuple[int, Mapping[str, Any]]] = {}
    told: dict[str, tuple[int, object]] = {}
    for line, value in records(source, place):
        place.line = line
        record = fields.record(value, place)
        name = fields.text(record.get("custom_id"), "custom_id", place)
        request = _request(record)
        if (request and name in asked) or ("response" in record and name in told):
            place.error("custom_id", f"{name[:80]!r} occurs twice")
        if request:
            asked[name] = line, request
        if "response" in record:
            response = _object(record["response"])
            told[name] = line, response.get("body")
            if record.get("error") or response.get("status_code", 200) != 200:
                place.warning("response", "the request failed: left out")
                told[name] = line, None
    place.line = 0
    together = "Put both into one file: cat input.jsonl output.jsonl > batch.jsonl"
    silent = len(asked.keys() - told.keys())
    if alone := len(told.keys() - asked.keys()):
        where = "have no request: it is in the input file of the batch"
        place.error("", f"{alone} of {len(told)} answers {where}. {together}")
        place.problems.skipped += alone
    elif not told:
        place.error("", f"requests of a batch without their answers. {together}")
    elif silent:
        place.warning("", f"{silent} of {len(asked)} requests have no answer: left out")
    for name, (line, request) in asked.items():
        place.line, answer = told.get(name, (line, None))
        if answer is not None:
            errors = place.problems.errors
            chat = chat_of_record({**request, "response": answer}, "messages", place, options)
            if place.problems.errors == errors:
                yield from chat.samples(name)
            else:
                place.problems.skipped += 1


def _request(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the body of a request: that of a line of the input, or beside an answer."""
    request = _object(record.get("request")) or record
    return _object(request.get("body")) or (request if request is not record else {})


def _is_batch(source: Source) -> bool:
    names = columns(source)
    if "custom_id" not in names or {"method", "url", "body"} <= names:
        return "custom_id" in names
    is_plain = not names.isdisjoint(("messages", "context", *PROMPTS))
    # The keys of a record that is longer than the start of the file are those at any depth.
    return {"response", "error"} <= names and (not is_plain or {"status_code", "body"} <= names)


CHATGPT = Reader(
    "chatgpt",
    "ChatGPT's data export: conversations.json with a mapping of nodes",
    _is_chatgpt,
    _reads(_chatgpt, "conversation_id", "id"),
)
CLAUDE = Reader(
    "claude",
    "Claude's data export: conversations.json with chat_messages",
    lambda source: "chat_messages" in columns(source),
    _reads(_claude, "uuid"),
)
BATCH = Reader(
    "openai-batch",
    "a batch of OpenAI: its requests and answers in one file, by custom_id",
    _is_batch,
    _batch,
)
