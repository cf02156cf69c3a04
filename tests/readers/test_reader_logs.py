"""The logs that people have, each as its tool writes it, load without options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.readers import check, load
from dialeval.sample import Sample, Turn

from .conftest import Read

ASKED = Turn("Which port has the best rum?", "user")
SAID = "Tortuga, matey."


def lines(*records: Any) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def the_only(samples: list[Sample]) -> Sample:
    assert len(samples) == 1
    return samples[0]


def assert_the_exchange(sample: Sample, system: str = "") -> None:
    assert (sample.context, sample.response) == ((ASKED,), SAID)
    assert (sample.system, sample.facts) == (system, ())


SHAREGPT = {
    "id": "QWJhYvA_0",
    "conversations": [
        {"from": "human", "value": ASKED.text},
        {"from": "gpt", "value": SAID},
        {"from": "human", "value": "Why?"},
        {"from": "gpt", "value": "Experience.\n\n```python\nprint('rum')\n```"},
    ],
}


def test_sharegpt_keeps_code_blocks_as_they_are(read: Read) -> None:
    reading = read(json.dumps([SHAREGPT], indent=2), "sharegpt.json")
    assert reading.format == "sharegpt"
    assert not reading.problems
    first, second = reading.samples
    assert_the_exchange(first)
    assert second.id == "QWJhYvA_0#3"
    assert second.response == "Experience.\n\n```python\nprint('rum')\n```"


def test_the_system_of_sharegpt_is_a_prompt_and_its_tools_do_not_speak(read: Read) -> None:
    record = {
        "conversations": [
            {"from": "human", "value": ASKED.text},
            {"from": "function_call", "value": '{"name": "ports"}'},
            {"from": "observation", "value": "[1, 2]"},
            {"from": "gpt", "value": SAID},
        ],
        "system": "Pirate.",
        "tools": "[]",
    }
    assert_the_exchange(the_only(read(lines(record)).samples))
    told = the_only(read(lines(record), system_prompt="facts").samples)
    assert told.facts == ("Pirate.",)


LMSYS = {
    "conversation_id": "33f6a6a8",
    "model": "vicuna-13b",
    "conversation": [
        {"content": ASKED.text, "role": "user"},
        {"content": SAID, "role": "assistant"},
    ],
    "turn": 1,
    "language": "English",
    "openai_moderation": [{"flagged": False, "categories": {"hate": False}}],
    "redacted": False,
}


def test_lmsys_chat_is_read_from_parquet(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00006.parquet"
    pq.write_table(pa.Table.from_pylist([LMSYS]), path)
    loaded = load(path)
    sample = the_only(list(loaded))
    assert_the_exchange(sample, "vicuna-13b")
    assert sample.dialogue == "33f6a6a8"
    assert loaded.formats == {str(path): "wildchat"}


def test_conversations_of_wildchat_with_the_same_hash_do_not_clash(read: Read) -> None:
    turn = {"language": "English", "redacted": False, "toxic": False, "turn_identifier": 7}
    record = {
        "conversation_hash": "cf1267ca",
        "model": "gpt-4-0314",
        "timestamp": "2023-04-09 00:00:22+00:00",
        "conversation": [{**said, **turn} for said in LMSYS["conversation"]],  # type: ignore[attr-defined]
    }
    reading = read(lines(record, record))
    assert not reading.problems
    assert len(reading.samples) == 2
    assert_the_exchange(reading.samples[1], "gpt-4-0314")


@pytest.mark.parametrize("asked", ["prompt", "question", "query", "input", "instruction"])
@pytest.mark.parametrize("said", ["response", "completion", "answer", "output"])
def test_prompts_and_completions_are_found_by_name(read: Read, asked: str, said: str) -> None:
    assert_the_exchange(the_only(read(lines({asked: ASKED.text, said: SAID})).samples))
    table = read(
        f"{asked.title()},{said.title()}\n{ASKED.text},{SAID!r}\n".replace("'", '"'), "a.csv"
    )
    assert table.format == "csv"
    assert_the_exchange(the_only(table.samples))
    assert not table.problems


def test_prompts_are_found_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"prompt": [ASKED.text], "completion": [SAID]}), path)
    assert_the_exchange(the_only(list(load(path))))


def test_a_prompt_of_many_lines_is_one_turn(read: Read) -> None:
    sample = the_only(read(lines({"prompt": "Fix:\n\n- a\n- b", "completion": "Done."})).samples)
    assert sample.context == (Turn("Fix:\n\n- a\n- b", "user"),)


def test_prompts_and_completions_may_be_messages(read: Read) -> None:
    record = {
        "prompt": [
            {"role": "system", "content": "Pirate."},
            {"role": "user", "content": ASKED.text},
        ],
        "completion": [{"role": "assistant", "content": SAID}],
    }
    assert_the_exchange(the_only(read(lines(record)).samples))
    assert read(lines(record), system_prompt="facts").samples[0].facts == ("Pirate.",)


def test_an_answer_beside_a_response_is_told_as_unused(read: Read) -> None:
    reading = read(lines({"question": ASKED.text, "answer": "gold", "response": SAID}))
    assert_the_exchange(the_only(reading.samples))
    assert reading.problems == [": not used: answer"]


def test_plain_records_stay_plain_whatever_else_they_hold(read: Read) -> None:
    plain = {"context": [ASKED.text], "response": SAID}
    for more in (
        {"conversation": "c1"},
        {"conversations": 3},
        {"attributes": {"a": 1}},
        {"timestamp": "2024", "session_id": "s1", "input": None, "output": "x"},
    ):
        reading = read(lines({**plain, **more}))
        assert reading.format == "jsonl", more
        assert the_only(reading.samples).response == SAID


def test_a_log_of_inputs_and_outputs_keeps_its_references_and_ratings(read: Read) -> None:
    record = {"timestamp": "2024", "session_id": "s1", "input": ASKED.text, "output": SAID}
    sample = the_only(read(lines({**record, "reference": "Rum.", "ratings": {"a": 1}})).samples)
    assert (sample.context, sample.response) == ((ASKED,), SAID)
    assert (sample.dialogue, sample.references, list(sample.ratings)) == ("s1", ("Rum.",), ["a"])


def test_the_column_of_system_prompts_is_left_out_or_a_fact(read: Read) -> None:
    table = f'system_prompt,prompt,completion\nBe a pirate.,{ASKED.text},"{SAID}"\n'
    reading = read(table, "pairs.csv")
    assert_the_exchange(the_only(reading.samples))
    assert not reading.problems
    told = read(table, "pairs.csv", system_prompt="facts")
    assert the_only(told.samples).facts == ("Be a pirate.",)


def test_text_beside_a_question_is_a_fact_and_turns_are_turns(read: Read) -> None:
    passage = {"context": "Rum is made of sugar.", "question": ASKED.text, "answer": SAID}
    sample = the_only(read(lines(passage)).samples)
    assert (sample.context, sample.facts) == ((ASKED,), ("Rum is made of sugar.",))
    spoken = {"history": [["Ahoy!", "Ahoy."]], "instruction": ASKED.text, "output": SAID}
    sample = the_only(read(lines(spoken)).samples)
    assert [turn.text for turn in sample.context] == ["Ahoy!", "Ahoy.", ASKED.text]


ANTHROPIC = {
    "model": "claude-sonnet-4",
    "max_tokens": 1024,
    "system": [
        {"type": "text", "text": "You are a pirate.", "cache_control": {"type": "ephemeral"}}
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": ASKED.text}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "ports", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "Tortuga"}],
        },
    ],
}
ANSWER = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-20250514",
    "content": [
        {"type": "thinking", "thinking": "Rum...", "signature": "EqQ"},
        {"type": "text", "text": SAID},
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 5},
}


def test_anthropic_blocks_of_tools_and_thoughts_were_not_said(read: Read) -> None:
    spoken = {**ANTHROPIC, "messages": [*ANTHROPIC["messages"], ANSWER]}  # type: ignore[misc]
    reading = read(lines(spoken))
    assert (reading.format, reading.problems) == ("chat", [])
    assert_the_exchange(the_only(reading.samples), "claude-sonnet-4-20250514")


def test_a_request_with_its_response_has_one_answer_to_judge(read: Read) -> None:
    reading = read(lines({"request": ANTHROPIC, "response": ANSWER}))
    assert_the_exchange(the_only(reading.samples), "claude-sonnet-4-20250514")
    earlier = [{"role": "user", "content": "Ahoy!"}, {"role": "assistant", "content": "Ahoy."}]
    openai = {
        "model": "gpt-4o",
        "messages": [*earlier, {"role": "user", "content": ASKED.text}],
        "response": {"choices": [{"index": 0, "message": {"role": "assistant", "content": SAID}}]},
    }
    sample = the_only(read(lines(openai)).samples)
    assert (sample.response, sample.system, len(sample.context)) == (SAID, "gpt-4o", 3)


def test_requests_to_the_responses_of_openai_call_their_messages_input(read: Read) -> None:
    spoken = {"type": "message", "content": [{"type": "output_text", "text": SAID}]}
    output = [{"type": "reasoning", "summary": []}, {**spoken, "role": "assistant"}]
    request = {"model": "gpt-5", "instructions": "Pirate.", "input": ASKED.text}
    record = {"request": request, "response": {"object": "response", "output": output}}
    reading = read(lines(record))
    assert (reading.format, reading.problems) == ("chat", [])
    assert_the_exchange(the_only(reading.samples), "gpt-5")
    assert read(lines(record), system_prompt="facts").samples[0].facts == ("Pirate.",)


def test_stored_completions_of_openai_have_their_input_beside_the_choices(read: Read) -> None:
    record = {
        "object": "chat.completion",
        "model": "gpt-4o",
        "input": [{"role": "user", "content": ASKED.text}],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": SAID}}],
    }
    reading = read(lines(record))
    assert (reading.format, reading.problems) == ("chat", [])
    assert_the_exchange(the_only(reading.samples), "gpt-4o")


def test_lists_in_python_notation_are_told_with_what_to_do(read: Read) -> None:
    cell = str([{"role": "user", "content": "It's"}]).replace('"', '""')
    reading = read(f'model,conversation\nv1,"{cell}"\n', "pandas.csv")
    assert not reading.samples
    assert "save them with to_json or to_parquet" in reading.problems[0]


def test_messages_in_parts_and_drafts_of_gemini(read: Read) -> None:
    record = {
        "contents": [{"role": "user", "parts": [{"text": ASKED.text}]}],
        "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}}]},
    }
    reading = read(lines(record), columns={"messages": "contents"})
    assert_the_exchange(the_only(reading.samples))


def test_a_system_prompt_in_a_string_is_no_name(read: Read) -> None:
    messages = [{"role": "user", "content": ASKED.text}, {"role": "assistant", "content": SAID}]
    record = {"model": "claude", "system": "You are a pirate.", "messages": messages}
    assert_the_exchange(the_only(read(lines(record)).samples), "claude")
    assert read(lines({"system": "v2", "messages": messages})).samples[0].system == "v2"


def test_rows_of_messages_are_put_together(read: Read) -> None:
    table = (
        "conversation_id,role,content\n"
        f'c1,system,Pirate.\nc1,user,{ASKED.text}\nc1,assistant,"{SAID}"\n'
        "c2,user,Bye\nc2,assistant,Farewell.\n"
    )
    reading = read(table, "rows.csv")
    assert reading.format == "messages"
    assert_the_exchange(reading.samples[0])
    assert [sample.dialogue for sample in reading.samples] == ["c1", "c2"]


def test_one_conversation_as_a_json_array_of_messages(read: Read) -> None:
    messages = [{"role": "user", "content": ASKED.text}, {"role": "assistant", "content": SAID}]
    assert_the_exchange(the_only(read(json.dumps(messages, indent=1), "chat.json").samples))


def test_a_transcript_has_continued_turns_and_several_dialogues(read: Read) -> None:
    text = (
        f"User: {ASKED.text}\nBot: Tortuga, matey.\n\n- dark rum\n- Note: strong\n"
        "User: Thanks\nBot: Aye.\n---\nUser: Hi\nBot: Ahoy!\n"
    )
    reading = read(text, "chat1.txt")
    assert (reading.format, reading.problems) == ("transcript", [])
    assert [sample.id for sample in reading.samples] == ["chat1#1", "chat1#3", "chat1-2#1"]
    first = reading.samples[0]
    assert (first.context, first.system) == ((ASKED,), "")
    assert first.response == "Tortuga, matey.\n\n- dark rum\n- Note: strong"


def test_a_code_block_in_a_transcript_is_not_cut_at_names(read: Read) -> None:
    code = "```yaml\nUser: x\n\n---\nBot: y\n```"
    text = f"**User:** {ASKED.text}\n\n**Assistant:** So:\n{code}\n\n"
    reading = read(f"{text}**User:** Ta\n**Assistant:** Aye\n", "chat.txt")
    assert [sample.response for sample in reading.samples] == [f"So:\n{code}", "Aye"]
    assert not reading.problems
    cut = read("User: a\nBot: b\n```\nUser: c\nBot: d\n", "cut.txt")
    assert [sample.response for sample in cut.samples] == ["b\n```\nUser: c\nBot: d"]
    assert "the code block that starts here is not closed" in cut.problems[0]


def test_a_transcript_with_any_two_names_says_whom_it_judges(read: Read) -> None:
    text = (
        f"[10:02] Alice: {ASKED.text}\n[10:03] Bob: {SAID}\n[10:04] Alice: Ta\n[10:05] Bob: Bye\n"
    )
    reading = read(text, "chat.log")
    assert_the_exchange(reading.samples[0], "Bob")
    assert reading.problems == [
        ": Bob is judged, as Alice speaks first. Say otherwise with --map response=Alice"
    ]
    other = read(text, "chat.log", columns={"response": "Alice"}, format="transcript")
    assert [sample.response for sample in other.samples] == [ASKED.text, "Ta"]
    assert other.samples[1].system == "Alice"


def test_keys_and_values_are_no_transcript(tmp_path: Path) -> None:
    path = tmp_path / "setup.txt"
    path.write_text("name: dialeval\nversion: 1\n")
    with pytest.raises(Exception, match="the format is not recognised"):
        load(path)


def test_a_folder_of_files_is_read_as_one_and_says_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "may").mkdir()
    for name in ("may/a.txt", "b.txt"):
        (tmp_path / name).write_text(f"User: {ASKED.text}\nBot: {SAID}\n")
    (tmp_path / "c.jsonl").write_text(lines({"prompt": ASKED.text, "completion": SAID}))
    (tmp_path / "README.md").write_text("# Logs\n")
    loaded = load(tmp_path)
    samples = list(loaded)
    assert [sample.id for sample in samples] == ["b#1", "c-000001", "may/a#1"]
    assert {sample.response for sample in samples} == {SAID}
    assert [str(problem) for problem in loaded.problems] == [
        f"{tmp_path}: left out, as no reader knows it: README.md"
    ]


def arrow_file(path: Path, *rows: dict[str, Any]) -> None:
    table = pa.Table.from_pylist(list(rows))
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)


def dataset_folder(folder: Path, *rows: dict[str, Any]) -> None:
    """As `Dataset.save_to_disk` writes it."""
    folder.mkdir(parents=True)
    arrow_file(folder / "data-00000-of-00001.arrow", *rows)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state, indent=2))
    (folder / "dataset_info.json").write_text("{}")


def test_a_dataset_on_disk_is_read_without_its_package(tmp_path: Path) -> None:
    dataset_folder(tmp_path / "pairs", {"prompt": ASKED.text, "completion": SAID})
    loaded = load(tmp_path / "pairs")
    assert_the_exchange(the_only(list(loaded)))
    assert list(loaded.formats.values()) == ["datasets"]


def test_splits_of_a_dataset_with_conversations_are_read_in_their_order(tmp_path: Path) -> None:
    # `Sequence` of a dict is a list for each key in datasets before 4
    turns = {"from": ["human", "gpt"], "value": [ASKED.text, SAID]}
    dataset_folder(tmp_path / "all" / "train", {"id": "a", "conversations": turns})
    dataset_folder(tmp_path / "all" / "test", {"id": "b", "conversations": turns})
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    loaded = load(tmp_path / "all")
    samples = list(loaded)
    assert [sample.id for sample in samples] == ["a#1", "b#1"]
    assert_the_exchange(samples[0])
    assert [Path(path).name for path in loaded.formats] == ["train", "test"]
    arrow_file(tmp_path / "single.arrow", {"prompt": ASKED.text, "response": SAID})
    assert_the_exchange(the_only(list(load(tmp_path / "single.arrow"))))


def test_splits_of_a_dataset_may_have_columns_of_their_own(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": ASKED.text}, {"role": "assistant", "content": SAID}]
    dataset_folder(tmp_path / "all" / "train", {"messages": turns})
    dataset_folder(tmp_path / "all" / "test", {"prompt": ASKED.text, "response": SAID})
    (tmp_path / "all" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for folder in (tmp_path / "all", tmp_path):  # named, or one of the logs in a folder
        loaded = load(folder)
        samples = list(loaded)
        assert [sample.response for sample in samples] == [SAID, SAID]
        assert [sample.context for sample in samples] == [(ASKED,), (ASKED,)]
        assert sorted(loaded.formats.values()) == ["chat", "datasets"]
    assert not loaded.problems


def test_paths_lead_to_nested_fields(read: Read) -> None:
    record = {
        "in": {"text": ASKED.text},
        "output": {"choices": [{"content": SAID}]},
        "m": {"n": "v2"},
    }
    columns = {"prompt": "in.text", "response": "output.choices.0.content", "system": "m.n"}
    reading = read(lines(record), columns=columns)
    assert_the_exchange(the_only(reading.samples), "v2")
    assert not reading.problems
    cell = json.dumps({"content": SAID}).replace('"', '""')
    table = read(
        f'q,out\n{ASKED.text},"{cell}"\n',
        "t.csv",
        columns={"prompt": "q", "response": "out.content"},
    )
    assert_the_exchange(the_only(table.samples))


def test_messages_are_where_the_user_says(read: Read) -> None:
    turns = [{"role": "user", "content": ASKED.text}, {"role": "assistant", "content": SAID}]
    reading = read(
        lines({"data": {"dialog": turns}, "bot": "v2"}),
        columns={"messages": "data.dialog", "system": "bot"},
    )
    assert_the_exchange(the_only(reading.samples), "v2")


def test_a_check_takes_the_option_that_it_advises(tmp_path: Path) -> None:
    turns = [{"sender": "human", "text": ASKED.text}, {"sender": "assistant", "text": SAID}]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([{"uuid": "1", "spoken_turns": turns}]))
    assert "add --map messages=spoken_turns" in str(check([path]).problems[0])
    report = check([path], columns={"messages": "spoken_turns"})
    assert (report.samples, report.problems) == (1, ())
