"""FULL's selection of follow-ups, on made-up likelihoods whose best choice is known."""

import numpy as np
import pytest

import dialeval
from dialeval.errors import UsageError
from dialeval.sample import Rating, Sample, Turn
from dialeval.studies.follow_up_selection import (
    NEAR_DUPLICATE,
    agreement_of,
    rank_follow_ups,
    select_follow_ups,
    similarity,
)

TEXTS = ["Good sign.", "That is a good sign.", "Noise.", "Bad sign!"]
SLOPES = {"Good sign.": 3.0, "That is a good sign.": 2.0, "Noise.": 0.0, "Bad sign!": -1.0}


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


def test_the_best_follow_ups_are_chosen_without_near_duplicates(tmp_path):
    ranked = rank_follow_ups(run(tmp_path, "a"), "Overall")
    assert ranked[0].agreement["turn"].value == pytest.approx(1.0)
    assert {ranked[0].text, ranked[1].text} == {"Good sign.", "That is a good sign."}
    assert ranked[-1].text == "Bad sign!"
    assert select_follow_ups(ranked, k=2, near=0.4) == (ranked[0].text, "Noise.")
    assert select_follow_ups(ranked, k=2, near=1.1) == (ranked[0].text, ranked[1].text)


def test_what_was_chosen_on_one_set_is_reported_on_another(tmp_path):
    chosen = select_follow_ups(rank_follow_ups(run(tmp_path, "a"), "Overall"), k=1)
    assert agreement_of(run(tmp_path, "b"), chosen, "Overall")["turn"].value == pytest.approx(1.0)


def test_follow_ups_that_were_not_asked_about_are_refused(tmp_path):
    with pytest.raises(UsageError, match="did not ask about"):
        agreement_of(run(tmp_path, "a"), ["Never heard."], "Overall")


def test_a_run_without_ratings_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no sample"):
        rank_follow_ups(run(tmp_path, "a", ratings=False), "Overall")


def test_near_are_the_duplicates_that_the_authors_removed_and_not_those_they_kept():
    removed = similarity("Not really relevant here.", "That's not really relevant here.")
    kept = similarity("You're really boring.", "You're really confusing.")
    assert kept < NEAR_DUPLICATE <= removed
