"""`flow-score`: which turns are read, and the formula on answers that were made up."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dialeval
from dialeval.question import Judge
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn

SAID = (Turn("a", "user"), Turn("b", "system"), Turn("c", "user"), Turn("d", "system"))


@pytest.fixture
def metric():
    return make_metric("flow-score:model=m")


def test_it_is_a_metric(metric):
    dialeval.check_metric(metric)


def test_of_a_dialogue_it_reads_what_was_said_up_to_the_systems_last_turn(metric):
    expected = [Judge("m", ("a", "b", "c"), "d")]
    assert metric.ask(Sample("s", SAID)) == expected
    assert metric.ask(Sample("s", (*SAID, Turn("bye", "user")))) == expected
    assert metric.ask(Sample("s", SAID[:-1], "d")) == expected


def test_the_score_is_minus_two_to_the_mean_surprise_in_nats(metric):
    # x = 1/2 in both turns: (x + 1) / 2 = 3/4, ln 3/4 = -0.28768, 2 ^ 0.28768 = 1.2207
    score = metric.score(Sample("s", SAID), [np.array([0.75])])
    assert score.value == pytest.approx(-1.2207, abs=5e-5)
    # e to the minus three: 2 ^ 3
    assert metric.score(Sample("s", SAID), [np.array([math.exp(-3)])]).value == pytest.approx(-8)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (Sample("s", SAID[:2], "c"), "fewer than 3 turns before the response"),
        (Sample("s", SAID[:3]), "fewer than 3 turns before the response"),
        (Sample("s", SAID, " "), "empty response"),
        (Sample("s", (Turn("a", "user"), Turn("b", "system"), *SAID[:1] * 3)), "no turn to judge"),
    ],
)
def test_what_is_too_short_has_a_reason_and_no_score(metric, sample, reason):
    assert metric.ask(sample) == []
    assert metric.score(sample, []).note == reason
