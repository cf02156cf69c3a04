"""`mme-fluency`, `mme-relevance`, `mme-engagement` with made-up answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

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
