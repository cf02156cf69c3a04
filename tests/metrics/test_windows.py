"""Long answers in windows: how they are cut, and what metrics make of them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.metrics.windows import Windows, mean_log_prob, of_windows, windows
from dialeval.question import Embed, Judge, Judgement, TokenLogProbs
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn

LONG = " ".join(f"Sentence number {n} has exactly these seven words." for n in range(40))
SHORT = Sample("t", (Turn("Who?", "user"),), "Yes, it is me.")


def test_a_short_answer_is_its_only_window():
    assert windows("Yes.  It is.") == Windows(("Yes.  It is.",))


@given(st.text("ab .!\n", max_size=2000), st.sampled_from([20, 45]))
def test_windows_are_short_and_hold_every_word_that_is_not_counted_as_unread(text, words):
    found = windows(text, words)
    if len(text.split()) > 45:
        assert all(0 < len(one.split()) <= words for one in found.read)
    assert len(found.read) <= 12
    assert sum(len(one.split()) for one in found.read) + found.unread == len(text.split())


def test_windows_end_where_sentences_and_lines_end_and_the_first_and_the_last_are_read():
    found = windows(LONG)
    assert all(one.endswith("words.") for one in found.read)
    assert found.read[0].startswith("Sentence number 0 ")
    assert "number 39 " in found.read[-1]
    assert found.unread == 0
    assert windows(LONG * 3).unread > 0
    lines = "\n".join(f"- point {n} without a full stop" for n in range(20))
    assert all(one.endswith("full stop") for one in windows(lines).read)


@given(st.floats(1e-300, 1e300))
def test_the_value_of_one_window_is_kept_to_the_bit(value):
    assert of_windows([value]) == value


def likelihoods(text, *means):
    """One token a word, as likely as its window says."""
    spans, log_probs = [], []
    place = 0
    for window, mean in zip(windows(text).read, means, strict=True):
        for word in window.split():
            start = text.index(word, place)
            place = start + len(word)
            spans.append((max(0, start - 1), place))
            log_probs.append(mean)
    return TokenLogProbs(tuple(log_probs), tuple(spans), 0)


def test_likelihood_is_two_thirds_the_mean_and_one_third_the_worst_window():
    text = LONG[: LONG.index("Sentence number 15 ")].strip()  # 5 sentences a window: 3 windows
    assert mean_log_prob(text, likelihoods(text, -2.0, -3.0, -7.0)) == pytest.approx(
        float(Fraction(2, 3) * Fraction(-2 - 3 - 7, 3) + Fraction(1, 3) * -7)
    )


def test_a_window_counts_as_no_likelier_than_the_mean_before_it():
    text = LONG[: LONG.index("Sentence number 15 ")].strip()
    looped = mean_log_prob(text, likelihoods(text, -2.0, -4.0, -0.1))  # counts as -3
    assert looped == pytest.approx(float(Fraction(2, 3) * -3 + Fraction(1, 3) * -4))


@given(st.lists(st.floats(-20, -0.01), min_size=3, max_size=8), st.floats(-20, -0.01))
def test_nothing_at_the_end_makes_a_long_answer_likelier(means, tail):
    text = LONG[: LONG.index(f"Sentence number {5 * len(means) - 1} ")] + "End of this window. "
    longer = text + "A tail of nonsense " * 11
    before, after = (
        mean_log_prob(said.strip(), likelihoods(said.strip(), *own))
        for said, own in ((text, means), (longer, [*means, tail]))
    )
    assert after <= before + 1e-12


def test_a_short_answer_has_the_mean_of_its_tokens_to_the_bit():
    tokens = TokenLogProbs((-0.1, -0.2, -0.7), ((0, 1), (1, 2), (2, 3)), 0)
    assert mean_log_prob("abc", tokens) == math.fsum((-0.1, -0.2, -0.7)) / 3


JUDGED = ("bert-ruber", "pone", "mme-relevance", "mme-fluency", "mme-engagement", "mme-topic")


@pytest.mark.parametrize("spec", [*JUDGED, "ruber:blend=unreferenced"])
def test_a_bad_window_of_a_long_answer_lowers_the_score(spec):
    metric = make_metric(spec)
    sample = replace(SHORT, response=LONG)
    asked = metric.ask(sample)
    assert len(asked) > 5
    assert " ".join(question.response for question in asked) == LONG
    good = [Judgement(0.75).answer()] * (len(asked) - 1)
    score = metric.score(sample, [*good, Judgement(0.0).answer()])
    assert score.value == pytest.approx(0.75 * (len(asked) - 1) / len(asked) * 2 / 3)
    assert score.note == ""
    assert metric.score(SHORT, [Judgement(0.1).answer()]).value == 0.1


@pytest.mark.parametrize("spec", [*JUDGED, "ruber:blend=unreferenced"])
def test_a_note_says_what_was_not_read_of_a_long_answer(spec):
    metric = make_metric(spec)
    sample = replace(SHORT, response=LONG * 3)
    count = len(metric.ask(sample))
    assert count == 12
    words = sum(len(question.response.split()) for question in metric.ask(sample))
    left = len(sample.response.split()) - words
    score = metric.score(sample, [Judgement(0.5, 0, 50).answer()] * count)
    assert score.note == (
        f"windows truncated to 50 tokens, a part of a long answer was not read ({left} words)"
    )


@pytest.mark.parametrize("spec", ["bert-ruber:mode=released", "pone:mode=released"])
def test_released_code_reads_a_long_answer_as_it_is(spec):
    metric = make_metric(spec)
    assert metric.ask(replace(SHORT, response=LONG)) == [Judge(metric.model, ("Who?",), LONG)]


def test_the_vector_of_a_long_answer_is_the_mean_over_its_windows():
    metric = make_metric("bert-ruber:blend=referenced")
    sample = replace(SHORT, response=LONG, references=("Yes.",))
    asked = metric.ask(sample)
    count = sum(isinstance(question, Judge) for question in asked)
    assert [question.text for question in asked if isinstance(question, Embed)] == [
        *windows(LONG).read,
        "Yes.",
    ]
    vectors = [np.array([1.0, 0.0])] * (count - 2) + [np.array([0.0, 1.0])] * 2
    score = metric.score(
        sample, [*[Judgement(0.5).answer()] * count, *vectors, np.array([1.0, 0.0])]
    )
    assert score.value == pytest.approx((count - 2) / math.hypot(count - 2, 2))


def test_all_pieces_of_a_very_long_answer_count_where_all_are_asked_for():
    sample = replace(SHORT, response=LONG)
    assert len(make_metric("mme-specificity").ask(sample)) == 1
    metric = make_metric("mme-specificity:tokens=0")
    assert len(metric.ask(sample)) == 2
    answers = [
        np.array([[0, 0, 0], [-1.0, 0, 1], [-2.0, 1, 2]]),
        np.array([[0, 0, 0], [-6.0, 0, 1]]),
    ]
    score = metric.score(sample, answers)
    assert score.parts == pytest.approx({"nll": 9.0, "nce": -3.0, "ppl": math.exp(3.0)})


def test_usl_h_reads_a_long_answer_as_its_parts_do():
    metric, sample = make_metric("usl-h"), replace(SHORT, response=LONG)
    parts = [make_metric(name) for name in ("mme-fluency", "mme-relevance", "mme-specificity")]
    asked = metric.ask(sample)
    assert list(asked) == [question for part in parts for question in part.ask(sample)]
    count = (len(asked) - 1) // 2
    bad = [Judgement(0.5).answer()] * (count - 1) + [Judgement(0.0).answer()]
    score = metric.score(
        sample, [*bad, *[Judgement(0.25).answer()] * count, np.array([[0, 0, 0], [-3.0, 0, 1]])]
    )
    assert score.parts["understandable"] == pytest.approx(0.5 * (count - 1) / count * 2 / 3)
    assert (score.parts["sensible"], score.parts["nll"]) == (0.25, 3.0)
