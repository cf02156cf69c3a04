"""Faults are what they claim to be."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.examples import behaviour_pairs
from dialeval.question import ASPECTS
from dialeval.text import letters_and_digits
from dialeval.training.examples.faults import FAULTS, Exchange, spoil
from dialeval.training.examples.judge import (
    GOOD,
    graded_groups,
    inference_groups,
    spoiled_group,
)

EXCHANGE = Exchange(
    (
        "Hi, do you live in Paris?",
        "I live in Berlin with 3 cats, and I love it there.",
        "Three cats! How do you travel to Berlin with them on Monday?",
    ),
    "I take the train to Berlin, because my 3 cats don't like the car on a Monday.",
    ("That sounds like a lot of work for you.",),
)
OTHERS = ["The soup is too salty for my taste.", "We won the match by two goals."] * 10


def made(kind, times=40):
    generator = np.random.default_rng(0)
    found = [FAULTS[kind][0](EXCHANGE, OTHERS, generator) for _ in range(times)]
    return [one for one in found if one is not None]


@pytest.mark.parametrize("kind", FAULTS)
def test_every_kind_can_be_made_names_aspects_and_is_probably_worse(kind):
    found = made(kind)
    assert found
    assert all(one.bad and one.bad <= set(ASPECTS[1:]) for one in found)
    assert all(0.5 < one.preferred < 1.0 for one in found)


def test_a_parrot_uses_the_words_of_the_last_turn():
    last = EXCHANGE.turns[-1]
    assert any(one.response == last for one in made("parrot"))


def test_a_word_salad_has_no_words_of_its_own():
    known = set(
        " ".join((EXCHANGE.response, *OTHERS)).lower().replace(",", " ").replace(".", " ").split()
    )
    for one in made("word-salad"):
        assert set(one.response.lower().replace(",", " ").replace(".", " ").split()) <= known


def test_a_wrong_detail_changes_one_word():
    for one in made("wrong-detail"):
        before, after = EXCHANGE.response.split(), one.response.split()
        assert len(before) == len(after)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_bad_answers_of_a_group_differ_from_the_right_one_and_in_kind():
    generator = np.random.default_rng(1)
    for _ in range(30):
        found = spoil(EXCHANGE, OTHERS, generator, 3)
        assert len(found) == 3
        assert all(one.response != EXCHANGE.response for one in found)


def test_the_same_seed_makes_the_same_group():
    one, other = (spoiled_group(EXCHANGE, OTHERS, np.random.default_rng(3), 2) for _ in range(2))
    assert one == other
    assert one.answers[0].aspects == GOOD
    assert len(one.preferred) == 2


def test_a_contradiction_is_inconsistent_and_is_not_compared():
    pairs = [("I am tall.", "I am short.", "contradiction"), ("I am tall.", "I grew.", "neutral")]
    first, second = inference_groups(pairs, np.random.default_rng(0))
    assert first.answers[0].aspects == {"consistency": 0.0}
    assert second.answers[0].aspects == {"consistency": 1.0}
    assert first.preferred == ()


def test_graded_answers_are_excellent_fair_and_bad():
    """Every group that comes with dialeval: two good answers, two to four bad ones of known
    kinds."""
    groups = graded_groups()
    assert len(groups) >= 2000
    for group in groups:
        assert 4 <= len(group.answers) <= 6
        bad = [place for place, one in enumerate(group.answers) if 0.0 in one.aspects.values()]
        assert bad == list(range(2, len(group.answers)))
        wrong = {
            (0, place, aspect)
            for place in bad
            for aspect, value in group.answers[place].aspects.items()
            if value == 0.0
        }
        assert wrong <= {(one.better, one.worse, one.aspect) for one in group.preferred}
        assert all(one.worse > 0 and one.aspect != "overall" for one in group.preferred)
        different = {letters_and_digits(one.response) for one in group.answers}
        assert len(different) == len(group.answers)
    assert {a for g in groups for one in g.answers for a, v in one.aspects.items() if v == 0.0} == (
        set(GOOD)
    )


def test_no_graded_answer_is_from_a_behaviour_pair():
    tested = {
        letters_and_digits(sample.response or "")
        for pair in behaviour_pairs("test")
        for sample in pair.samples()
    }
    graded = {letters_and_digits(a.response) for g in graded_groups() for a in g.answers[:2]}
    assert not graded & tested
