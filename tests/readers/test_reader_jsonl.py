"""Plain JSONL: what is understood, and what is reported where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialeval.sample import Turn

from .conftest import Read


def line(**fields: Any) -> str:
    return json.dumps({"response": "Hello."} | fields) + "\n"


@pytest.mark.parametrize(
    ("context", "turns"),
    [
        ("Hi!\nWho?", (Turn("Hi!"), Turn("Who?"))),
        ("User: Hi!\nSystem: Who?", (Turn("Hi!", "user"), Turn("Who?", "system"))),
        ("User: Hi!\nWho?", (Turn("User: Hi!"), Turn("Who?"))),
        (["Hi!", "Who?"], (Turn("Hi!"), Turn("Who?"))),
        ([{"speaker": "Ann", "text": "Hi!"}, {"text": "Who?"}], (Turn("Hi!", "Ann"), Turn("Who?"))),
        (
            [{"speaker": "Human", "text": "Hi!"}, {"speaker": "assistant", "text": "Who?"}],
            (Turn("Hi!", "user"), Turn("Who?", "system")),
        ),
        (None, ()),
        ([], ()),
    ],
)
def test_contexts_come_in_several_shapes(
    read: Read, context: object, turns: tuple[Turn, ...]
) -> None:
    assert read(line(context=context)).samples[0].context == turns


def test_a_response_loses_its_prefix_only_after_a_context_with_prefixes(read: Read) -> None:
    text = "System: failure"
    reading = read(line(context="User: Hi!", response=text) + line(context="Hi!", response=text))
    assert [sample.response for sample in reading.samples] == ["failure", "System: failure"]


def test_samples_without_ids_are_named_after_file_and_record(read: Read) -> None:
    reading = read(line() + "\n" + line(id="mine") + line(), name="chats.jsonl")
    assert [s.id for s in reading.samples] == ["chats-000001", "mine", "chats-000003"]


def test_singular_and_plural_names_mean_the_same(read: Read) -> None:
    reading = read(line(reference="a", fact=["b"], model="m") + line(references=["a"], facts="b"))
    first, second = reading.samples
    assert (first.references, first.facts, first.system) == (("a",), ("b",), "m")
    assert (second.references, second.facts) == (("a",), ("b",))


def test_ratings_come_in_three_shapes(read: Read) -> None:
    reading = read(
        line(
            ratings={
                "a": 4,
                "b": [1, None, 3],
                "c": {"values": [1, 2], "scale": [1, 5], "raters": ["x", "y"]},
            }
        )
    )
    ratings = reading.samples[0].ratings
    assert ratings["a"].values == (4.0,)
    assert ratings["b"].values == (1.0, None, 3.0)
    assert (ratings["c"].scale, ratings["c"].raters) == ((1.0, 5.0), ("x", "y"))


def test_an_answer_in_words_is_dropped_and_the_raters_keep_their_places(read: Read) -> None:
    reading = read(line(ratings={"Overall": [1, "N/A (No errors)", 3]}))
    assert reading.samples[0].ratings["Overall"].values == (1.0, None, 3.0)
    assert reading.problems == [
        ":1: ratings.Overall[1]: 'N/A (No errors)' is not a number: dropped"
    ]


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"response": 5}, "response: expected text, not a number"),
        ({"context": 5}, "context: expected text, a list of texts or a list of {speaker, text},"),
        ({"context": ["a", 1]}, "context[1]: expected text, not a number"),
        ({"context": [{"speaker": "a"}]}, "context[0].text: missing"),
        ({"references": [1]}, "references[0]: expected text, not a number"),
        ({"id": 1.5}, "id: expected text, not a number"),
        ({"ratings": [1]}, "ratings: expected an object of quality: ratings, not a list"),
        ({"ratings": {"a": True}}, "ratings.a: true is not a rating: write 0 or 1"),
        ({"ratings": {"a": [float("nan")]}}, "ratings.a[0]: nan is not a rating"),
        ({"ratings": {"a": 10**400}}, "ratings.a: inf is not a rating"),
        (
            {"ratings": {"a": {"values": [6], "scale": [1, 5]}}},
            "ratings.a[0]: 6 is outside its scale 1 to 5",
        ),
        (
            {"ratings": {"a": {"values": [1], "raters": ["x", "y"]}}},
            "ratings.a.raters: 2 raters for 1 ratings",
        ),
        ({"variants": [{"query": "a"}]}, "variants[0].response: missing"),
    ],
)
def test_a_wrong_field_is_named(read: Read, record: dict[str, Any], problem: str) -> None:
    reading = read(line(id="good") + line(**record))
    assert [sample.id for sample in reading.samples] == ["good"]
    assert reading.skipped == 1
    assert reading.problems[0].startswith(f":2: {problem}")


def test_a_missing_response_is_an_error_but_null_means_the_whole_dialogue(read: Read) -> None:
    reading = read('{"context": "a", "response": null}\n{"context": "a"}\n')
    assert reading.samples[0].level == "dialogue"
    assert reading.problems == [
        ":2: response: missing. Write null to have the whole dialogue judged"
    ]


def test_an_empty_response_is_kept_with_a_warning(read: Read) -> None:
    reading = read(line(response=" "))
    assert reading.samples[0].response == " "
    assert "empty" in reading.problems[0]


def test_invalid_json_is_reported_with_its_column_and_reading_goes_on(read: Read) -> None:
    reading = read(line() + '{"response": "a",}\n' + line())
    assert len(reading.samples) == 2
    assert reading.problems[0].startswith(":2: invalid JSON: ")
    assert reading.problems[0].endswith("at column 18")


def test_space_around_records_and_blank_lines_are_ignored(read: Read) -> None:
    reading = read('\n  {"response": "a"}\t \n \r\n\t{"response": "b"}')
    assert [sample.response for sample in reading.samples] == ["a", "b"]
    assert not reading.problems


def test_half_surrogates_and_nul_are_replaced(read: Read) -> None:
    reading = read('{"response": "a\\ud800b\\u0000c", "ratings": {"\\udc00": 1}}\n')
    assert reading.samples[0].response == "a\ufffdb\ufffdc"
    assert list(reading.samples[0].ratings) == ["\ufffd"]
    assert reading.problems[0].startswith(":1: response: holds NUL or half of a surrogate pair")


def test_a_whole_surrogate_pair_is_one_character(read: Read) -> None:
    reading = read('{"response": "\\ud83d\\ude00"}\n')
    assert reading.samples[0].response == "\N{GRINNING FACE}"
    assert not reading.problems


def test_a_json_array_of_records_is_read_too(read: Read) -> None:
    reading = read(json.dumps([{"response": "a"}, {"response": "b"}], indent=1))
    assert [sample.response for sample in reading.samples] == ["a", "b"]


def test_columns_and_ratings_may_have_other_names(read: Read) -> None:
    reading = read(
        '{"answer": "a", "response": "not this", "score": 3}\n',
        columns={"response": "answer"},
        ratings=["score"],
        scales={"score": (1, 5)},
    )
    assert reading.samples[0].response == "a"
    assert reading.samples[0].ratings["score"].values == (3.0,)
    assert reading.samples[0].ratings["score"].scale == (1.0, 5.0)
