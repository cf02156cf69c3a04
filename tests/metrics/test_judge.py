"""`judge` with made-up assessments."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dialeval.metrics import judge
from dialeval.metrics.judge import (
    JudgeMetric,
    Term,
    assessed,
    dialogue_features,
    of_dialogue,
    reasons,
)
from dialeval.metrics.windows import windows
from dialeval.question import ASPECTS, Assess, Assessment
from dialeval.sample import Sample, Turn

TURN = Sample("t", (Turn("Who?", "user"), Turn("You!", "system"), Turn("Me?", "user")), "Yes.")


def assessment(overall, cut_response=0, **low):
    ratings = tuple(overall if one == "overall" else low.get(one, 4.0) for one in ASPECTS)
    return Assessment(ratings, 1.25, 0.5, 0, cut_response).answer()


def test_an_assessment_is_read_as_it_was_written():
    found = Assessment((1.0, 2.0, 3.0, 4.0, 5.0, 1.5, 2.5), 1.25, 0.5, 3, 4)
    assert Assessment.read(found.answer()) == found


def test_the_score_is_the_overall_rating_with_its_interval_and_its_parts():
    score = JudgeMetric(model="m").score(TURN, [assessment(3.5, fluency=2.0)])
    assert score.value == 3.5
    assert score.parts["fluency"] == 2.0
    assert (score.parts["low"], score.parts["high"], score.parts["doubt"]) == (2.25, 4.75, 0.5)
    assert score.note == ""


def test_an_interval_stays_on_the_scale():
    parts = JudgeMetric(model="m").score(TURN, [assessment(4.5)]).parts
    assert (parts["low"], parts["high"]) == (3.25, 5.0)
    assert JudgeMetric(model="m").score(TURN, [assessment(1.5)]).parts["low"] == 1.0


def test_another_quality_is_scored_on_request():
    score = JudgeMetric(model="m", quality="relevance").score(TURN, [assessment(3.5, relevance=2)])
    assert (score.value, score.parts["overall"]) == (2.0, 3.5)


def test_a_low_rating_has_the_gravest_reason():
    low = assessment(2.0, relevance=2.2, novelty=1.2)
    assert JudgeMetric(model="m").score(TURN, [low]).note == "repeats"
    assert reasons({"relevance": 2.2, "novelty": 1.2, "fluency": 2.6}, TURN) == [
        "repeats",
        "does not fit what was said",
    ]


def test_a_contradiction_names_the_turn_that_the_answer_is_about():
    said = ("My dog is called Rex.", "I like cats.", "Is your dog called Rex?", "And you?")
    sample = Sample("s", tuple(Turn(text) for text in said), "I have no dog called Rex.")
    assert reasons({"consistency": 1.5}, sample) == ["contradicts what was said (turn 3)"]
    assert reasons({"novelty": 1.5}, sample) == ["repeats (turn 3)"]
    assert reasons({"relevance": 1.5}, sample) == ["does not fit what was said"]


def test_a_good_rating_has_no_reason_though_an_aspect_is_low():
    assert JudgeMetric(model="m").score(TURN, [assessment(4.0, novelty=1.0)]).note == ""


LONG = " ".join(f"Sentence number {n} has exactly these seven words." for n in range(40))


def test_a_bad_end_of_a_long_answer_lowers_its_rating():
    sample = replace(TURN, response=LONG)
    metric = JudgeMetric(model="m")
    count = len(metric.ask(sample))
    assert count == len(windows(LONG).read) > 5
    good = metric.score(sample, [assessment(4.0)] * count)
    bad = metric.score(sample, [assessment(4.0)] * (count - 1) + [assessment(1.0)])
    assert good.value == pytest.approx(4.0)
    assert bad.value == pytest.approx((2 * (4.0 - 3.0 / count) + 1.0) / 3)
    assert bad.parts["windows"][-1] == 1.0


def test_what_was_not_read_is_said():
    sample = replace(TURN, response=LONG * 3)
    metric = JudgeMetric(model="m")
    score = metric.score(sample, [assessment(4.0)] * len(metric.ask(sample)))
    assert score.note == f"a part of a long answer was not read ({windows(LONG * 3).unread} words)"


def test_features_of_a_dialogue_are_those_of_its_turns_and_of_both_speakers():
    dialogue = Sample("d", (*TURN.context, Turn("You, you and you?", "system")))
    assert dialogue_features(dialogue, [2.0, 4.0], [3.0, 1.0]) == pytest.approx(
        {
            "mean of the turns": 3.0,
            "best turn": 4.0,
            "lowest novelty of a turn": 1.0,
            "log different words of the system": math.log(3),  # you, and
            "share of different words of the system": 2 / 5,
            "share of the system's turns that ask": 1 / 2,
            "log different words of the user": math.log(3),  # who, me
        }
    )


def test_a_dialogue_gains_a_weight_for_each_deviation_of_a_feature_and_two_at_most(monkeypatch):
    terms = {"mean of the turns": Term(0.5, 2.0, 1.0), "best turn": Term(0.25, 3.0, 0.1)}
    monkeypatch.setattr(judge, "OF_DIALOGUE", terms)
    monkeypatch.setattr(judge, "LEVEL", 3.0)
    dialogue = Sample("d", (Turn("a", "system"), *TURN.context, Turn("b", "system")))
    metric = JudgeMetric(model="m")
    assert [question.response for question in metric.ask(dialogue)] == ["You!", "b"]
    score = metric.score(dialogue, [assessment(2.0), assessment(4.0, fluency=3.0)])
    assert score.value == pytest.approx(3.0 + 0.5 * 1 + 0.25 * 2)
    assert score.parts["fluency"] == 3.5
    assert score.parts["turns"] == (2.0, 4.0)


def test_a_better_turn_makes_a_better_dialogue():
    dialogue = Sample("d", (*TURN.context, Turn("b", "system")))
    bad = of_dialogue(dialogue, [2.0, 2.5], [4.0, 4.0])
    assert 1.0 <= bad < of_dialogue(dialogue, [2.0, 3.5], [4.0, 4.0]) <= 5.0


def test_a_dialogue_without_a_user_is_rated_by_its_system_alone():
    dialogue = Sample("d", (Turn("a b", ""), Turn("c", ""), Turn("d", "")))
    assert "log different words of the user" not in dialogue_features(dialogue, [3.0], [3.0])
    assert 1.0 <= of_dialogue(dialogue, [3.0, 3.0], [3.0, 3.0]) <= 5.0


def test_who_answers_is_me_and_the_other_is_you():
    wanted = (Turn("Who?", "you"), Turn("You!", "me"), Turn("Me?", "you"))
    assert assessed(TURN, "m") == Assess("m", wanted, "Yes.")


def test_where_nobody_is_named_speakers_take_turns():
    sample = Sample("s", (Turn("a"), Turn("b"), Turn(" "), Turn("c")), "d")
    assert [turn.speaker for turn in assessed(sample, "m").turns] == ["you", "me", "you"]


def test_turns_of_one_speaker_in_a_row_become_one():
    sample = Sample("s", (Turn("a", "Ann"), Turn("b", "Bob"), Turn("c", "Bob")), "d")
    assert assessed(sample, "m").turns == (Turn("a", "me"), Turn("b c", "you"))


def test_an_answer_to_nothing_gets_no_rating():
    assert JudgeMetric(model="m").obstacle(Sample("s", (), "d")) == "no context"


@pytest.mark.parametrize("value", [np.nan, "abc"])
def test_a_rating_that_is_no_number_is_no_reason(value):
    assert reasons({"relevance": value}, TURN) == []
