"""Chat logs: which messages are judged, and with which context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval.errors import UsageError
from dialeval.readers import load
from dialeval.sample import Turn

from .conftest import Read


def chat(*messages: dict[str, Any], **fields: Any) -> str:
    return json.dumps({"messages": messages, **fields}) + "\n"


def said(role: str, content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **fields}


def test_each_answer_is_a_sample_with_all_turns_before_it(read: Read) -> None:
    reading = read(
        chat(said("user", "a"), said("assistant", "b"), said("human", "c"), said("bot", "d"), id=7)
    )
    assert reading.format == "chat"
    assert [sample.id for sample in reading.samples] == ["7#1", "7#3"]
    last = reading.samples[1]
    assert last.context == (Turn("a", "user"), Turn("b", "system"), Turn("c", "user"))
    assert (last.response, last.dialogue) == ("d", "7")


PIRATE = [said("system", "Be a pirate."), said("user", "a"), said("assistant", "b")]


def test_a_system_prompt_is_neither_a_turn_nor_a_fact(read: Read) -> None:
    sample = read(chat(*PIRATE, facts=["Ships sink."])).samples[0]
    assert sample.facts == ("Ships sink.",)
    assert sample.context == (Turn("a", "user"),)


def test_a_system_prompt_becomes_a_fact_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(chat(*PIRATE))
    [sample] = load(path, system_prompt="facts")
    assert sample.facts == ("Be a pirate.",)
    assert load(path, system_prompt="facts").about()["read"]["system_prompt"] == "facts"
    with pytest.raises(UsageError, match="one of leave-out, facts"):
        load(path, system_prompt="turns")  # type: ignore[arg-type]
    plain = tmp_path / "plain.csv"
    plain.write_text("response\nb\n")
    with pytest.raises(UsageError, match="is for chat logs"):
        load(plain, system_prompt="facts")


def test_tool_messages_and_pure_tool_calls_are_neither_judged_nor_shown(read: Read) -> None:
    reading = read(
        chat(
            said("user", "weather?"),
            said("assistant", None, tool_calls=[{"id": "1"}]),
            said("tool", "sunny"),
            said("assistant", "It is sunny."),
        )
    )
    assert [sample.context for sample in reading.samples] == [(Turn("weather?", "user"),)]
    assert not reading.problems


def test_text_parts_are_joined_and_other_parts_reported(read: Read) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    reading = read(chat(said("user", parts), said("assistant", [{"type": "text", "text": "c"}])))
    assert reading.samples[0].context == (Turn("a\nb", "user"),)
    assert reading.samples[0].response == "c"
    assert reading.problems == [
        ":1: messages[0].content[1]: a part of type 'image_url' is left out"
    ]


def test_an_unknown_role_makes_the_dialogue_unusable(read: Read) -> None:
    reading = read(chat(said("narrator", "a"), said("assistant", "b")))
    assert not reading.samples
    assert reading.problems == [
        ":1: messages[0].role: unknown role 'narrator': expected user or assistant"
    ]


def test_ratings_stand_in_the_message_or_in_the_record_for_its_last_answer(read: Read) -> None:
    reading = read(
        chat(
            said("user", "a"),
            said("assistant", "b", ratings={"overall": 1}),
            said("user", "c"),
            said("assistant", "d"),
            ratings={"overall": 5},
            references=["D"],
        )
    )
    first, last = reading.samples
    assert first.ratings["overall"].values == (1.0,)
    assert last.ratings["overall"].values == (5.0,)
    assert (first.references, last.references) == ((), ("D",))


def test_an_assistant_message_without_content_is_an_error(read: Read) -> None:
    reading = read(chat(said("user", "a"), {"role": "assistant"}))
    assert reading.problems[0] == ":1: messages[1].content: missing"


def test_a_log_without_answers_is_a_warning(read: Read) -> None:
    assert "nothing to judge" in read(chat(said("user", "a"))).problems[0]
