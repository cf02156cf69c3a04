"""Minimal pairs: the file, and the share of pairs that a metric orders rightly."""

from collections import Counter

import pytest

from dialeval.examples import behaviour_pairs
from dialeval.studies.result import run_study
from dialeval.studies.study import find_study


def test_each_of_twelve_kinds_has_sixteen_pairs_to_learn_from_and_sixteen_to_test_with():
    for split in ("learn", "test"):
        kinds = Counter(pair.kind for pair in behaviour_pairs(split))
        assert len(kinds) == 12
        assert set(kinds.values()) == {16}


def test_no_pair_to_test_with_shares_a_text_with_one_to_learn_from():
    def texts(split):
        return {
            text
            for pair in behaviour_pairs(split)
            for text in (pair.good, pair.bad, pair.context[-1])
        }

    assert not texts("learn") & texts("test")


def test_the_last_turn_before_the_answers_is_the_users():
    for pair in behaviour_pairs("test"):
        good, bad = pair.samples()
        assert good.context == bad.context
        assert good.context[-1].speaker == "user"


def test_length_does_not_give_the_bad_answer_away():
    result = run_study(find_study("behaviour"), metrics=["length"])
    (row,) = result.rows
    assert row.value == pytest.approx(0.5, abs=0.1)


def test_shares_are_those_counted_by_hand():
    result = run_study(find_study("behaviour"), metrics=["length:unit=characters"])
    pairs = behaviour_pairs("test")
    lengths = [(len(pair.good), len(pair.bad)) for pair in pairs]
    expected = sum(0.5 if g == b else float(g > b) for g, b in lengths) / len(lengths)
    assert result.rows[0].value == pytest.approx(expected)
