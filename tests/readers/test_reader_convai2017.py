"""ConvAI 2017: whose rating counts, who speaks, and files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval.readers import formats
from dialeval.sample import Rating, Turn
from dialeval.training.examples.engagement import Engaging, read_engagement

SCALE = (1.0, 5.0)


def evaluation(who: str, quality: int, breadth: int, engagement: int) -> dict[str, Any]:
    return {"userId": who, "quality": quality, "breadth": breadth, "engagement": engagement}


def dialogue(**changed: Any) -> dict[str, Any]:
    return {
        "dialogId": -155769874,
        "context": "Hume criticised this camp.",
        "users": [{"id": "Bob", "userType": "Human"}, {"id": "Alice", "userType": "Bot"}],
        "thread": [
            {"userId": "Bob", "text": "Hi", "evaluation": 0, "time": 9},
            {"userId": "Alice", "text": "Who is Hume?", "evaluation": 2, "time": 12},
        ],
        "evaluation": [evaluation("Bob", 2, 1, 3), evaluation("Alice", 0, 0, 0)],
    } | changed


TWO_PEOPLE = [{"id": "Bob", "userType": "Human"}, {"id": "Alice", "userType": "Human"}]


def test_a_chat_about_a_passage_is_a_dialogue_with_three_qualities(read) -> None:
    reading = read(json.dumps([dialogue()]), "train_full.json")
    assert reading.format == "convai2017"
    assert reading.problems == []
    (sample,) = reading.samples
    assert (sample.id, sample.level) == ("-155769874", "dialogue")
    assert sample.context == (Turn("Hi", "user"), Turn("Who is Hume?", "system"))
    assert sample.facts == ("Hume criticised this camp.",)
    assert sample.ratings == {
        "quality": Rating((2.0,), SCALE),
        "breadth": Rating((1.0,), SCALE),
        "engagement": Rating((3.0,), SCALE),
    }


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ([evaluation("Bob", 2, 2, 4), evaluation("Alice", 0, 0, 0)], (4.0,)),
        ([evaluation("Bob", 0, 0, 0), evaluation("Alice", 2, 2, 4)], (4.0,)),
        ([evaluation("Alice", 5, 5, 5), evaluation("Bob", 2, 2, 4)], (4.0,)),
    ],
    ids=["named after the rater", "named after the rated bot", "the bot rated too"],
)
def test_the_rating_of_a_person_counts_and_that_of_a_bot_does_not(read, said, counts) -> None:
    (sample,) = read(json.dumps([dialogue(evaluation=said)]), "a.json").samples
    assert sample.ratings["engagement"].values == counts


def test_two_people_keep_their_names_and_both_ratings_count(read) -> None:
    said = [evaluation("Bob", 4, 0, 2), evaluation("Alice", 5, 0, 5)]
    (sample,) = read(json.dumps([dialogue(users=TWO_PEOPLE, evaluation=said)]), "a.json").samples
    assert [turn.speaker for turn in sample.context] == ["Bob", "Alice"]
    assert sample.ratings == {
        "quality": Rating((4.0, 5.0), SCALE),
        "engagement": Rating((2.0, 5.0), SCALE),
    }


def test_files_of_single_days_have_one_quality_and_raw_ones_name_java_classes(read) -> None:
    users = [
        {"id": "1", "userType": "org.pavlovai.communication.TelegramChat"},
        {"id": "2", "userType": "org.pavlovai.communication.Bot"},
    ]
    thread = [{"userId": "2", "text": "Hello"}]
    said = [{"userId": "2", "quality": 3}, {"userId": "1", "quality": 0}]
    (sample,) = read(
        json.dumps([dialogue(users=users, thread=thread, evaluation=said)]), "a.json"
    ).samples
    assert sample.context == (Turn("Hello", "system"),)
    assert sample.ratings == {"quality": Rating((3.0,), SCALE)}


def test_what_is_wrong_is_reported_with_its_field_and_the_rest_is_read(read) -> None:
    broken = [
        dialogue(thread=None),
        dialogue(users="Bob"),
        dialogue(thread=[{"userId": "Eve", "text": "Hi"}]),
        dialogue(thread=["Hi"]),
        dialogue(thread=[{"userId": "Bob", "text": 5}]),
        dialogue(evaluation=[evaluation("Bob", 2, 1, 6)]),
        dialogue(evaluation={}),
        "Hi",
        dialogue(thread=[], evaluation=[]),
    ]
    reading = read(json.dumps(broken), "a.json")
    assert [problem.partition(": ")[2] for problem in reading.problems] == [
        "thread: missing",
        "users: expected a list, not text",
        "thread[0].userId: 'Bob' is none of the users",
        "thread[1].userId: 'Alice' is none of the users",
        "thread[0].userId: 'Eve' is none of the users",
        "thread[0]: expected an object, not text",
        "thread[0].text: expected text, not a number",
        "evaluation[0].engagement: 6 is outside its scale 1 to 5",
        "evaluation: expected a list, not an object",
        "expected an object, not text",
        "users: missing",
        "thread: missing",
        "evaluation: missing",
    ]
    assert (len(reading.samples), reading.skipped) == (1, 8)
    assert reading.samples[0].ratings == {}


def test_the_format_is_listed_and_told_from_that_of_the_second_challenge(read) -> None:
    assert "convai2017" in formats()
    second = {"dialog": [], "eval_score": 3, "bot_profile": [], "users": []}
    assert read(json.dumps([second]), "a.json").format == "convai2"


def test_engagement_is_given_to_what_both_said_and_messages_in_a_row_are_one(
    tmp_path: Path,
) -> None:
    thread = [
        {"userId": "Bob", "text": "Hi"},
        {"userId": "Alice", "text": "Hello."},
        {"userId": "Alice", "text": "Who is Hume?"},
        {"userId": "Bob", "text": "A thinker."},
        {"userId": "Alice", "text": "Oh."},
    ]
    file = tmp_path / "train_full.json"
    file.write_text(json.dumps([dialogue(thread=thread)]), encoding="utf-8")
    said = ("Hi", "Hello. Who is Hume?", "A thinker.", "Oh.")
    assert read_engagement(file) == [
        Engaging(text, said[:place], 0.5, "train_full", "-155769874")
        for place, text in enumerate(said)
    ]
