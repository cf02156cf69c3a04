"""Answers that a language model rated: stored without the texts of the corpora."""

from __future__ import annotations

import re

import pytest
from training.chat_files import write_dialogues

from dialeval.training.examples.corpora import known_exchanges
from dialeval.training.examples.judge import graded_groups
from dialeval.training.examples.model_ratings import RATED, rated_groups, reference, shipped_records

DIALOGUES = [
    (f"do you like the number {n} ?", f"i do like {n}", f"why {n} then", f"{n} is mine")
    for n in range(20)
]


@pytest.fixture
def corpus(tmp_path):
    return write_dialogues(tmp_path / "chats.jsonl", DIALOGUES)


def record(turns, answers, ratings):
    return {"turns": turns, "answers": answers, "ratings": ratings}


def test_texts_are_looked_up_whatever_their_spaces_and_case(corpus):
    turns = [reference("Do you like the number 3?")]
    answers = [reference("I do like 3!"), "=Bananas."]
    found = rated_groups([record(turns, answers, ["545", "111"])], [corpus], None)
    (group,) = found.groups
    assert [answer.response for answer in group.answers] == ["i do like 3", "Bananas."]
    assert group.answers[0].turns == ("do you like the number 3 ?",)
    assert found.missing == 0


def test_a_text_may_be_several_turns_in_a_row(corpus):
    turns = [reference("do you like the number 3 ? i do like 3")]
    found = rated_groups([record(turns, ["=a", "=b"], ["333", "222"])], [corpus], None)
    assert found.groups[0].answers[0].turns == ("do you like the number 3 ? i do like 3",)


def test_a_group_with_a_text_that_is_not_here_is_left_out_and_counted(corpus):
    unknown = record([reference("nobody said this")], ["=a", "=b"], ["333", "222"])
    known = record([reference("why 7 then")], ["=a", "=b"], ["333", "222"])
    found = rated_groups([unknown, known], [corpus], None)
    assert (len(found.groups), found.missing) == (1, 1)


def test_graded_answers_that_come_with_dialeval_are_found_without_a_corpus():
    graded = graded_groups()[0]
    turns = [reference(turn) for turn in graded.answers[0].turns]
    answers = [reference(answer.response) for answer in graded.answers]
    found = rated_groups([record(turns, answers, ["333"] * len(answers))], [], None)
    assert [a.response for a in found.groups[0].answers] == [a.response for a in graded.answers]


def test_digits_become_aspects_and_preferences(corpus):
    """Relevance 5 and 3, engagement 4 and 4, overall 5 and 1: one point apart .79, two .93, as the
    logistic curve with slope 1.3 has it; equal digits say nothing."""
    turns = [reference("why 7 then")]
    (group,) = rated_groups([record(turns, ["=a", "=b"], ["545", "341"])], [corpus], None).groups
    assert group.answers[0].aspects == {"relevance": 1.0, "engagement": 0.75, "overall": 1.0}
    assert group.answers[1].aspects == {"relevance": 0.5, "engagement": 0.75, "overall": 0.0}
    said = {one.aspect: (one.better, one.worse, one.probability) for one in group.preferred}
    assert said == {
        "relevance": (0, 1, pytest.approx(0.931, abs=1e-3)),
        "overall": (0, 1, pytest.approx(0.9945, abs=1e-4)),
    }


def test_what_ships_is_well_formed_and_holds_no_turn_of_a_corpus():
    records = shipped_records()
    assert len(records) > 5000
    for one in records:
        assert all(re.fullmatch("#[0-9a-f]{10}", text) for text in one["turns"])
        assert len(one["answers"]) == len(one["ratings"]) >= 2
        assert all(re.fullmatch(f"[1-5]{{{len(RATED)}}}", rating) for rating in one["ratings"])


def test_hardly_a_turn_that_ships_is_one_of_a_rated_set():
    """Dialogues of rated sets are left out by their exchanges. A single turn may be in both by
    chance: 145 of 41,179 groups have such a one."""
    rated = frozenset[int]().union(*(one.long_turns for one in known_exchanges().sets))
    shared = [any(int(text[1:], 16) in rated for text in one["turns"]) for one in shipped_records()]
    assert sum(shared) / len(shared) < 0.01
