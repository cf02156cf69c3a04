"""What services hand out: ChatGPT's and Claude's exports, and batches of OpenAI.

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

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dialeval.readers import fields
from dialeval.readers.chat import chat_of_record
from dialeval.readers.containers import columns, records
from dialeval.readers.messages import Chat
from dialeval.readers.plain_record import PROMPTS, renamed
from dialeval.readers.reader import Place, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.sample import Sample

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
