"""`mme-fluency`, `mme-relevance`, `mme-engagement`, `mme-topic` with made-up answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dialeval import check_metric, make_metric
from dialeval.metric import Metric
from dialeval.metrics.mme import MmeEngagement, MmeFluency, MmeRelevance, judged_turns
from dialeval.metrics.ruber import BertRuber, Pone
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Judge, Judgement
from dialeval.sample import Sample, Turn
from dialeval.scores import Score

DIALOGUE = Sample(
    "d",
    (
        Turn("Hello!", "system"),
        Turn("Hi, who is there?", "user"),
        Turn("  ", "system"),
        Turn("Well?", "user"),
        Turn("It is me.", "system"),
    ),
)
TURN = Sample("t", (Turn("Who?"), Turn("You!")), "Me?")


def answers(*values):
    return [np.array([value]) for value in values]


@pytest.mark.parametrize("metric", [MmeFluency(), MmeEngagement()])
def test_a_response_is_judged_alone(metric):
    assert metric.ask(TURN) == [Judge(metric.model, (), "Me?")]
    assert metric.score(TURN, answers(0.25)).value == 0.25


def test_relevance_is_judged_after_all_turns():
    metric = MmeRelevance(model="m")
    assert metric.ask(TURN) == [Judge("m", ("Who?", "You!"), "Me?")]
    assert metric.obstacle(Sample("s", (), "Me?")) == "no context"


def test_a_dialogue_is_the_mean_over_what_its_system_said():
    metric = MmeFluency(model="m")
    assert metric.ask(DIALOGUE) == [Judge("m", (), "Hello!"), Judge("m", (), "It is me.")]
    assert metric.score(DIALOGUE, answers(0.25, 0.75)).value == 0.5
    relevance = MmeRelevance(model="m")
    assert relevance.obstacle(DIALOGUE) == ""
    before = ("Hello!", "Hi, who is there?", "  ", "Well?")
    assert relevance.ask(DIALOGUE) == [Judge("m", before, "It is me.")]


def test_a_score_says_that_its_judge_did_not_read_everything():
    whole, cut = Judgement(0.25).answer(), Judgement(0.75, response=50).answer()
    note = "response truncated to 50 tokens"
    assert MmeFluency().score(DIALOGUE, [whole, cut]) == Score(0.5, note=note)
    assert MmeFluency().score(DIALOGUE, [whole, whole]) == Score(0.25)
    assert Pone().score(TURN, [cut]).note == note
    assert BertRuber().score(TURN, [cut]).note == note
    both = Judgement(0.75, 100, 50).answer()
    wanted = "turns truncated to 100 tokens, response truncated to 50 tokens"
    assert MmeRelevance().score(TURN, [both]).note == wanted


def test_where_nobody_is_named_every_turn_counts():
    nameless = Sample("d", (Turn("a"), Turn("b"), Turn("c")))
    assert [turn.response for turn in judged_turns(nameless)] == ["a", "b", "c"]
    assert [turn.response for turn in judged_turns(nameless, needs_context=True)] == ["b", "c"]


def test_what_cannot_be_judged_says_why():
    metric = MmeFluency()
    blank = Sample("s", (Turn("a"),), " \n")
    assert metric.ask(blank) == []
    assert metric.score(blank, []).note == "empty response"
    silent = Sample("d", (Turn("  ", "system"), Turn("hm", "user")))
    assert metric.score(silent, []).note == "no turn to judge"


def test_the_models_of_a_metric_are_those_that_its_options_name():
    @dataclass(frozen=True)
    class Two(Metric):
        lm: str = model_option("lm", "a language model")
        beams: int = option(4, "no model")
        encoder: str = model_option("encoder", "an encoder")

    assert Two(encoder="mine").models() == {"lm": "smollm2-135m-dialogue", "encoder": "mine"}


def test_a_judge_sees_the_turns_only_where_its_metric_needs_them():
    sample = Sample("1", (Turn("Hi.", "user"),), "Hello.")
    assert MmeFluency("m").question(sample).turns == ()
    assert MmeEngagement("m").question(sample).turns == ()
    assert MmeRelevance("m").question(sample).turns == ("Hi.",)


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
