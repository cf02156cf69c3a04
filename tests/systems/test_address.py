import json

import pytest

from dialeval.errors import InputError, UsageError
from dialeval.sample import Turn
from dialeval.systems import Asking, BatchedSystem, ReplyError, System, open_system
from dialeval.systems.language_models import spoken_turns
from dialeval.systems.system import INSTRUCTIONS


@pytest.mark.parametrize(
    ("address", "options", "asking", "message"),
    [
        ("opnai:http://h/v1#m", {}, Asking(), "Did you mean 'openai'"),
        ("smollm2-135n", {}, Asking(), "Did you mean 'smollm2-135m"),
        ("openai:http://h/v1#m", {"temprature": "1"}, Asking(), "Did you mean 'temperature'"),
        ("openai:http://h/v1#m", {"temperature": "-1"}, Asking(), "at least 0"),
        ("cmd:cat", {"temperature": "1"}, Asking(), "has no option 'temperature'"),
        ("cmd:cat", {}, Asking(rate=60), "openai: system only"),
        ("cmd:cat", {}, Asking(key_env="KEY"), "openai: system only"),
        ("cmd:cat", {}, Asking(retries=7), "retries are of use for an openai: system only"),
        ("cmd:cat", {}, Asking(retries=0), "openai: system only"),
        ("hf:./nowhere", {}, Asking(), "no such directory"),
        ("hf:./nowhere", {"top_k": "10"}, Asking(), "Add --set method=sample"),
        ("hf:./nowhere", {"top_p": "1", "method": "beam"}, Asking(), "method=sample only"),
        ("hf:./nowhere", {"temperature": "0.5"}, Asking(), "method=sample only"),
        ("hf:./nowhere", {"beams": "3", "method": "sample"}, Asking(), "method=beam only"),
        ("hf:./nowhere", {"beams": "3", "method": "beam"}, Asking(), "no such directory"),
    ],
)
def test_a_slip_of_the_pen_gets_a_helpful_message(address, options, asking, message):
    with pytest.raises(UsageError, match=message):
        open_system(address, options, asking)


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "answers.jsonl"
    said = [{"role": "user", "content": "Hi!"}]
    lines = [
        {"messages": said, "reply": "Hello."},
        {"messages": said, "reply": "never given"},
        {"messages": [{"role": "user", "content": "Bad"}], "error": {"reason": "x", "detail": ""}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_recorded_answers_are_given_word_for_word(answers):
    system = open_system(f"replay:{answers}")
    assert isinstance(system, System)
    assert system.name == "answers"
    assert system.reply([Turn("Hi!")]) == "Hello."
    for unknown in ("Hi", "hi!", "Bad"):
        with pytest.raises(ReplyError, match="not recorded"):
            system.reply([Turn(unknown)])
    with pytest.raises(ReplyError, match="not recorded"):
        system.reply([Turn("Well?", "system"), Turn("Hi!", "user")])


def test_a_file_of_answers_is_checked_whole(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"reply": "a"}\n{"messages": [{"role": "user"}], "reply": 1}\n{oops\n[]\n')
    with pytest.raises(InputError) as caught:
        open_system(f"replay:{path}")
    found = str(caught.value)
    for problem in (":1: messages:", ":2: reply:", ":2: messages[0].content:", ":3:", ":4:"):
        assert f"{path}{problem}" in found
    with pytest.raises(InputError, match="no such file"):
        open_system(f"replay:{tmp_path / 'nowhere.jsonl'}")


def test_an_empty_file_of_answers_is_bad_input(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match=r"empty\.jsonl: the file is empty"):
        open_system(f"replay:{tmp_path / 'empty.jsonl'}")


def test_instructions_stand_before_the_first_words_of_the_user():
    turns = [Turn("Be kind.", INSTRUCTIONS), Turn("Hello", "system"), Turn("Hi", "user")]
    assert spoken_turns(turns) == (Turn("Hello", "system"), Turn("Be kind.\nHi", "user"))
    assert spoken_turns([Turn("a"), Turn("b")]) == (Turn("a", "system"), Turn("b", "user"))


def test_a_local_model_replies_in_batches_as_it_does_one_by_one(tmp_path):
    pytest.importorskip("torch", reason="needs the extra 'models'")
    from models.tiny_language_models import llama, save, tokenizer

    save(tmp_path / "tiny", llama(), tokenizer())
    system = open_system(
        f"hf:{tmp_path / 'tiny'}", {"method": "sample", "max_new_tokens": "5"}, Asking()
    )
    assert isinstance(system, BatchedSystem)
    histories = [[Turn("Hi there", "user")], [Turn("What is it", "user")], [Turn("No", "user")]]
    together = system.replies(histories)
    assert together == [system.reply(history) for history in histories]
    assert system.name == "tiny"
    assert system.settings["method"] == "sample"
