"""`mme-topic`: what it asks, what it makes of the answers, and what the shipped judge thinks."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval import Sample, Turn, check_metric, make_metric
from dialeval.question import Judge


def test_it_asks_the_judge_about_the_response_after_its_turns():
    metric = make_metric("mme-topic:model=mine")
    sample = Sample(id="1", context=(Turn("hello"), Turn("a dog")), response="a cat")
    assert metric.ask(sample) == [Judge("mine", ("hello", "a dog"), "a cat")]
    assert metric.score(sample, [np.array([0.25])]).value == 0.25


def test_a_dialogue_is_the_mean_over_its_turns():
    metric = make_metric("mme-topic")
    sample = Sample(id="1", context=(Turn("a dog"), Turn("a cat"), Turn("a car")))
    assert [question.response for question in metric.ask(sample)] == ["a cat", "a car"]
    assert metric.score(sample, [np.array([0.2]), np.array([0.6])]).value == pytest.approx(0.4)


def test_it_keeps_the_promises_of_a_metric():
    check_metric("mme-topic")


def test_the_shipped_judge_prefers_what_is_on_topic(embedded_models):
    from dialeval.engine.answers import Answerer
    from dialeval.models.source import Models

    dialogues = [
        ("I would like to book a flight to London.", "Which airline do you prefer, sir?"),
        ("What would you like to drink with your dinner?", "A glass of red wine, please."),
        ("My stomach hurts and I have a fever.", "You should see a doctor about the pain."),
        ("Our team lost the football match again.", "The players did not train enough."),
    ]
    questions = [
        Judge("mme-topic-glove", (said,), answer)
        for said, _ in dialogues
        for _, answer in dialogues
    ]
    found = Answerer(Models("cpu"), None).answer(questions)
    scores = np.array([found[question][0] for question in questions]).reshape(4, 4)
    assert (scores.argmax(axis=1) == np.arange(4)).sum() >= 3
