"""coherence, fluency and pmi, with made-up log-probabilities in place of a model."""

import math

import numpy as np
import pytest

from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn

TURN = Sample(id="t", context=(Turn("Hey.", "system"), Turn("Hi!", "user")), response="Hello you.")
EMPTY = Sample(id="e", context=TURN.context, response=" ")


def answer(log_probs, spans=None, cut=0):
    spans = spans or [(i, i + 1) for i in range(len(log_probs))]
    rows = [[log_prob, *span] for log_prob, span in zip(log_probs, spans, strict=True)]
    return np.array([[cut, 0, 0], *rows], dtype=np.float64)


def test_coherence_divides_by_the_length_in_paper_mode_only(golden):
    """golden: 8 tokens of the response, -14.5 in all, -1.8125 each."""
    fixture = golden["holistic_coherence"]
    tokens = fixture["T_r"]
    each = fixture["code_raw_sum_logp"] / tokens
    paper = make_metric("coherence").score(TURN, [answer([each] * tokens)])
    assert paper.value == pytest.approx(fixture["paper_eq1_per_token"])
    whole = answer(
        [math.nan, -1.0, *[each] * tokens], [(-1, -1)] * 2 + [(i, i + 1) for i in range(tokens)]
    )
    released = make_metric("coherence:mode=released").score(TURN, [whole])
    assert released.value == pytest.approx(fixture["code_raw_sum_logp"])


def test_coherence_asks_about_all_turns_or_the_query_alone():
    (everything,) = make_metric("coherence").ask(TURN)
    (query,) = make_metric("coherence:context=last").ask(TURN)
    assert [turn.text for turn in everything.turns] == ["Hey.", "Hi!"]
    assert [turn.text for turn in query.turns] == ["Hi!"]


def test_coherence_keeps_what_a_report_needs_to_colour_the_words():
    found = make_metric("coherence").score(TURN, [answer([-1.0, -2.0], [(0, 5), (5, 10)])])
    assert found.parts["log_probs"] == (-1.0, -2.0)
    assert (found.parts["starts"], found.parts["ends"]) == ((0.0, 5.0), (5.0, 10.0))


def test_released_coherence_has_nothing_to_say_after_a_query_of_one_token():
    whole = answer([math.nan, -1.0], [(-1, -1), (0, 5)])
    found = make_metric("coherence:mode=released").score(TURN, [whole])
    assert (found.value, found.note) == (None, "query of one token")


def test_fluency_is_the_mean_over_all_tokens_or_all_but_the_first():
    tokens = [-9.0, -1.0, -2.0]
    assert make_metric("fluency").score(TURN, [answer(tokens)]).value == pytest.approx(-4.0)
    released = make_metric("fluency:mode=released")
    found = released.score(TURN, [answer([math.nan, -1.0, -2.0])])
    assert found.value == pytest.approx(-1.5)
    assert [q.start for q in released.ask(TURN)] == [False]
    assert released.score(TURN, [answer([math.nan])]).note == "one token"


@pytest.mark.parametrize("name", ["coherence", "fluency"])
def test_an_empty_response_has_no_score_but_the_authors_sentinel_in_released_mode(name):
    paper, released = make_metric(name), make_metric(f"{name}:mode=released")
    assert paper.ask(EMPTY) == released.ask(EMPTY) == ()
    assert paper.score(EMPTY, []).note == "empty response"
    assert released.score(EMPTY, []).value == -1e6


def test_pmi_is_the_difference_of_two_questions_that_are_asked_anyway():
    after, alone = make_metric("pmi").ask(TURN)
    assert [after] == list(make_metric("coherence").ask(TURN))
    assert [alone] == list(make_metric("fluency").ask(TURN))
    found = make_metric("pmi").score(TURN, [answer([-1.0, -2.0]), answer([-2.0, -4.0, -3.0])])
    assert found.value == pytest.approx(-1.5 - -3.0)
