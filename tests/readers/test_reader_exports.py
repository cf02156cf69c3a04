"""What services hand out: exports of ChatGPT and Claude, batches of OpenAI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialeval.sample import Turn

from .conftest import Read
from .test_reader_logs import ASKED, SAID, assert_the_exchange, lines, the_only


def node(parent: str | None, role: str, *parts: Any, **message: Any) -> dict[str, Any]:
    said = {
        "id": "m",
        "author": {"role": role, "name": None, "metadata": {}},
        "content": {"content_type": "text", "parts": list(parts)},
        "status": "finished_successfully",
        "recipient": "all",
        "metadata": {},
    }
    return {"message": {**said, **message}, "parent": parent, "children": []}


HIDDEN = {"is_visually_hidden_from_conversation": True}
CHATGPT: dict[str, Any] = {
    "title": "Rum",
    "create_time": 1700000000.1,
    "update_time": 1700000009.1,
    "mapping": {
        "root": {"id": "root", "message": None, "parent": None, "children": ["sys"]},
        "sys": node("root", "system", "", metadata=HIDDEN),
        "about": node("sys", "user", "I am Bob.", metadata=HIDDEN),
        "first": node("about", "user", "Which rum?"),
        "edited": node("about", "user", ASKED.text),
        "old": node("first", "assistant", "Any."),
        "call": node(
            "edited",
            "assistant",
            recipient="browser",
            content={"content_type": "code", "language": "unknown", "text": "search('rum')"},
        ),
        "found": node("call", "tool", "Tortuga has rum."),
        "thought": node("found", "assistant", content={"content_type": "thoughts", "thoughts": []}),
        "blank": node("thought", "assistant", ""),
        "new": node("blank", "assistant", SAID, metadata={"model_slug": "gpt-4o"}),
        "why": node(
            "new",
            "user",
            content={
                "content_type": "multimodal_text",
                "parts": [{"content_type": "image_asset_pointer", "width": 1}, "Why?"],
            },
        ),
        "because": node("why", "assistant", "Experience."),
    },
    "moderation_results": [],
    "current_node": "because",
    "conversation_id": "c-1",
    "default_model_slug": "auto",
    "id": "c-1",
}


def test_a_conversation_of_chatgpt_is_the_branch_that_ends_in_its_current_node(read: Read) -> None:
    reading = read(json.dumps([CHATGPT]), "conversations.json")
    assert reading.format == "chatgpt"
    first, second = reading.samples
    assert_the_exchange(first, "gpt-4o")
    assert (first.id, first.dialogue) == ("c-1#1", "c-1")
    assert second.context == (ASKED, Turn(SAID, "system"), Turn("Why?", "user"))
    assert (second.response, second.system) == ("Experience.", "auto")
    (told,) = reading.problems
    assert "a part of type 'image_asset_pointer' is left out" in told
    other = read(json.dumps([{**CHATGPT, "current_node": "old"}]), "conversations.json")
    assert the_only(other.samples).response == "Any."


def test_a_long_conversation_of_chatgpt_is_known_by_its_start(read: Read) -> None:
    nodes = {**CHATGPT["mapping"], "first": node("about", "user", "rum " * 100_000)}
    reading = read(json.dumps([{**CHATGPT, "mapping": nodes}]), "conversations.json")
    assert (reading.format, len(reading.samples)) == ("chatgpt", 2)


@pytest.mark.parametrize("current", [None, "nowhere", 3])
def test_a_tree_without_its_current_node_is_told(read: Read, current: object) -> None:
    reading = read(lines({**CHATGPT, "current_node": current}, CHATGPT))
    assert reading.problems[0] == ":1: current_node: names no node of the mapping"
    assert (reading.skipped, len(reading.samples)) == (1, 2)


def test_nodes_in_a_circle_end(read: Read) -> None:
    circle = {"a": node("b", "assistant", SAID), "b": node("a", "user", ASKED.text)}
    reading = read(lines({**CHATGPT, "mapping": circle, "current_node": "a"}))
    assert the_only(reading.samples).response == SAID


def claude(*messages: dict[str, Any]) -> dict[str, Any]:
    about = {"created_at": "2024-05-29T13:46:19Z", "account": {"uuid": "u"}}
    return {"uuid": "c-2", "name": "Rum", **about, "chat_messages": list(messages)}


def test_a_conversation_of_claude_is_read(read: Read) -> None:
    thought = {"type": "thinking", "thinking": "Rum?"}
    record = claude(
        {"uuid": "1", "sender": "human", "text": ASKED.text, "content": [], "attachments": []},
        {
            "uuid": "2",
            "sender": "assistant",
            "text": "This block is not supported.",
            "content": [thought, {"type": "text", "text": SAID, "citations": []}],
        },
        {"uuid": "3", "sender": "human", "text": "Why?"},
        {"uuid": "4", "sender": "assistant", "text": "Experience."},
    )
    reading = read(json.dumps([record]), "conversations.json")
    assert (reading.format, reading.problems) == ("claude", [])
    first, second = reading.samples
    assert_the_exchange(first)
    assert (first.id, second.id, second.response) == ("c-2#1", "c-2#3", "Experience.")
    wrong = read(lines({**record, "chat_messages": "none"}))
    assert wrong.problems[0] == ":1: chat_messages: expected a list, not text"


REQUEST = {
    "custom_id": "r-1",
    "method": "POST",
    "url": "/v1/chat/completions",
    "body": {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": ASKED.text}]},
}
CHOICES = [{"index": 0, "message": {"role": "assistant", "content": SAID, "refusal": None}}]
ANSWER = {
    "id": "batch_req_1",
    "custom_id": "r-1",
    "response": {
        "status_code": 200,
        "request_id": "q",
        "body": {"object": "chat.completion", "model": "gpt-4o-mini-2024", "choices": CHOICES},
    },
    "error": None,
}


@pytest.mark.parametrize(
    "records",
    [
        [REQUEST, ANSWER],
        [ANSWER, REQUEST],
        [{**ANSWER, "request": REQUEST}],
        [{**ANSWER, "request": REQUEST["body"]}],
    ],
)
def test_a_batch_of_openai_is_read_where_its_requests_are_there(
    read: Read, records: list[dict[str, Any]]
) -> None:
    reading = read(lines(*records))
    assert (reading.format, reading.problems) == ("openai-batch", [])
    sample = the_only(reading.samples)
    assert_the_exchange(sample, "gpt-4o-mini")
    assert sample.id == "r-1#1"


def test_half_a_batch_says_what_is_missing_and_what_to_do(read: Read) -> None:
    (answers,) = read(lines(ANSWER, {**ANSWER, "custom_id": "r-2"})).problems
    assert "2 of 2 answers have no request: it is in the input file of the batch." in answers
    assert "cat input.jsonl output.jsonl > batch.jsonl" in answers
    (requests,) = read(lines(REQUEST)).problems
    assert "requests of a batch without their answers. Put both into one file" in requests


def test_requests_of_a_batch_that_failed_are_left_out(read: Read) -> None:
    failed = {**ANSWER, "custom_id": "r-2", "response": None, "error": {"code": "expired"}}
    asked = [{**REQUEST, "custom_id": name} for name in ("r-1", "r-2", "r-3")]
    reading = read(lines(*asked, ANSWER, failed))
    assert [sample.id for sample in reading.samples] == ["r-1#1"]
    assert ":5: response: the request failed: left out" in reading.problems
    assert ": 1 of 3 requests have no answer: left out" in reading.problems
    twice = read(lines(REQUEST, ANSWER, ANSWER))
    assert twice.problems == [":3: custom_id: 'r-1' occurs twice"]


def test_plain_records_with_a_custom_id_stay_plain(read: Read) -> None:
    record = {"custom_id": "a", "prompt": "Hi!", "response": SAID, "error": None}
    assert read(lines(record)).format == "jsonl"
