"""FULL's selection of follow-ups, on made-up likelihoods whose best choice is known."""

import numpy as np
import pytest

import dialeval
from dialeval.errors import UsageError
from dialeval.sample import Rating, Sample, Turn
from dialeval.studies.follow_up_selection import (
    NEAR_DUPLICATE,
    agreement_of,
    closeness,
    rank_by_agreement,
    rank_follow_ups,
    select_follow_ups,
)

TEXTS = ["Good sign.", "That is a good sign.", "Noise.", "Bad sign!"]
SLOPES = {"Good sign.": 3.0, "That is a good sign.": 2.0, "Noise.": 0.0, "Bad sign!": -1.0}

FIVE = {
    "Not really relevant here.",
    "You're really confusing.",
    "You're really boring.",
    "What are you trying to say?",
    "You don't seem interested.",
}
TOP_OF_TABLE_3 = """\
0.48 0.65 Not really relevant here.
0.46 0.67 You're really confusing.
0.46 0.58 I don't understand what you're saying.
0.45 0.70 That's not really relevant here.
0.45 0.64 You are so confusing.
0.44 0.65 You're really boring.
0.44 0.60 That's not very interesting.
0.43 0.63 That was a really boring response.
0.43 0.61 You don't seem interested.
0.43 0.60 I am so confused right now.
0.43 0.59 I'm so confused!
0.43 0.61 I don't really care. That's pretty boring.
0.43 0.65 I want to talk about something else.
0.42 0.58 That's not even related to what I said.
0.42 0.68 What are you trying to say?
0.42 0.57 I am so confused right now!
0.42 0.56 That makes no sense!
0.40 0.62 You're not understanding me!"""
"""Turn, dialogue, follow-up: every one that is among the first fifteen of either column."""


def never_close(one, other):
    return float(one == other)


class Slopes:
    """A language model that finds a follow-up the less likely, the longer the response is."""

    def fingerprint(self, name):
        return "slopes"

    def load(self, name):
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            length = len(question.turns[-1].text)
            noise = (length * 7919) % 13 / 100
            log_prob = -SLOPES[question.text] * length - noise - 1
            yield position, np.array([[0, 0, 0], [log_prob, 0, 1]], dtype=np.float64)


def run(tmp_path, name, ratings=True):
    path = tmp_path / "candidates.txt"
    path.write_text("\n".join(TEXTS))
    samples = [
        Sample(
            id=f"{name}{i}",
            context=(Turn("hi"),),
            response="x" * i,
            ratings={"Overall": Rating((float(i), float(i)))} if ratings else {},
        )
        for i in range(1, 12)
    ]
    return dialeval.score(
        samples,
        [dialeval.make_metric("full", follow_ups=str(path))],
        models=Slopes(),
        cache=tmp_path / "answers.sqlite",
    )


def test_a_follow_up_that_people_disagree_with_tells_as_much_as_one_they_agree_with(tmp_path):
    ranked = rank_follow_ups(run(tmp_path, "a"), "Overall")
    assert {one.text: one.sign for one in ranked[:3]} == {
        "Good sign.": 1,
        "That is a good sign.": 1,
        "Bad sign!": -1,
    }
    assert ranked[-1].text == "Noise."
    chosen = select_follow_ups(ranked, 3, never_close)
    assert chosen == {"Good sign.": 1, "That is a good sign.": 1, "Bad sign!": -1}
    agreement = agreement_of(run(tmp_path, "b"), {"Bad sign!": chosen["Bad sign!"]}, "Overall")
    assert agreement["turn"].value == pytest.approx(1.0)


def test_a_near_duplicate_of_a_better_follow_up_is_left_out(tmp_path):
    def close(one, other):
        return 0.9 if "ood sign" in one and "ood sign" in other else 0.1

    ranked = rank_follow_ups(run(tmp_path, "a"), "Overall")
    assert list(select_follow_ups(ranked, 2, close)) == ["Good sign.", "Bad sign!"]


def test_equal_correlations_share_a_place_and_turns_decide_between_equal_sums():
    agreement = {
        "a": {"turn": 0.3, "dialogue": 0.5},
        "b": {"turn": -0.4, "dialogue": 0.4},
        "c": {"turn": 0.3, "dialogue": None},
    }
    ranked = rank_by_agreement(agreement)
    assert [(one.text, one.rank) for one in ranked] == [("b", 3), ("a", 3), ("c", 5)]


def test_from_the_numbers_of_the_paper_four_of_its_five_are_chosen(embedded_models):
    rows = [line.split(" ", 2) for line in TOP_OF_TABLE_3.splitlines()]
    table = {text: {"turn": float(t), "dialogue": float(d)} for t, d, text in rows}
    chosen = select_follow_ups(rank_by_agreement(table), 5, closeness(table))
    assert len(FIVE & {*chosen}) == 4
    assert {*chosen} - FIVE == {"I want to talk about something else."}


def test_what_was_chosen_on_one_set_is_reported_on_another(tmp_path):
    chosen = select_follow_ups(rank_follow_ups(run(tmp_path, "a"), "Overall"), 1, never_close)
    assert agreement_of(run(tmp_path, "b"), chosen, "Overall")["turn"].value == pytest.approx(1.0)


def test_follow_ups_that_were_not_asked_about_are_refused(tmp_path):
    with pytest.raises(UsageError, match="did not ask about"):
        agreement_of(run(tmp_path, "a"), {"Never heard.": 1}, "Overall")


def test_a_run_without_ratings_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no sample"):
        rank_follow_ups(run(tmp_path, "a", ratings=False), "Overall")


def test_near_are_the_duplicates_that_the_authors_removed_and_not_those_they_kept(embedded_models):
    removed = ("Not really relevant here.", "That's not really relevant here.")
    near = closeness([*FIVE, *removed])
    assert near(*removed) >= NEAR_DUPLICATE
    assert max(near(one, other) for one in FIVE for other in FIVE - {one}) < NEAR_DUPLICATE
