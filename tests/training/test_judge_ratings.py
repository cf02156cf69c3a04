"""The second stage of `judge`, on made-up features: what it finds is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr

from dialeval.errors import UsageError
from dialeval.models.quality_judge import Scale
from dialeval.models.quality_stack import FEATURES, PRODUCTS, Readers
from dialeval.question import ASPECTS, Assessment, Embed, Judge
from dialeval.sample import Rating, Sample, Turn
from dialeval.training.examples.rated_answers import Rated, rated_dialogues, uniform_ranks
from dialeval.training.judge_ratings import (
    LeftOut,
    across_sets,
    adapt,
    coverage_of,
    doubt_of,
    fit,
    fit_scale,
    learning_curve,
    leave_one_out,
    margin_of,
    systems_ordered,
)

WIDTH = len(FEATURES) + 4
TRUE = np.zeros(WIDTH)
TRUE[:3] = 1.0, -0.5, 0.25


def made_up(name, count=120, seed=0, noise=0.1, truth=TRUE, shift=0.0):
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(count, WIDTH)) + shift
    ratings = 3.0 + 0.6 * (features - shift) @ truth + noise * generator.normal(size=count)
    return Rated(
        name,
        features,
        {"overall": np.clip(ratings, 1.0, 5.0)},
        tuple(f"{name} {place}" for place in range(count)),
        tuple(("a", "b", "c")[place % 3] for place in range(count)),
    )


NONE = np.zeros((0, 2, WIDTH))
SCALE = replace(Scale.neutral(), slopes=(2.0,) * len(ASPECTS), doubt=0.3)


def test_weights_that_made_the_ratings_are_found_in_their_order():
    weights = fit([made_up("one"), made_up("two", seed=1, shift=3.0)], NONE)
    new = made_up("three", seed=2)
    assert spearmanr(weights.judge(new.features)[:, 0], new.features @ TRUE)[0] > 0.97


def test_without_pairs_the_fit_is_ridge_regression():
    one = made_up("one")
    weights = fit([one], NONE, strength=0.5)
    u = (one.features - one.features.mean(axis=0)) / weights.deviations
    near = {name: np.clip(u[:, place], -3, 3) for place, name in enumerate(FEATURES)}
    products = np.stack([near[a] * near[b] for a, b in PRODUCTS], axis=1)
    x = np.hstack([u[:, : len(FEATURES)], products - products.mean(axis=0), u[:, len(FEATURES) :]])
    cost = np.repeat([0.5, 5.0, 50.0], [len(FEATURES), len(PRODUCTS), WIDTH - len(FEATURES)])
    y = uniform_ranks(one.ratings["overall"])
    wanted = np.linalg.solve(x.T @ x / len(y) + np.diag(cost), x.T @ y / len(y))
    assert weights.weights[0] == pytest.approx(wanted, abs=1e-9)


def test_a_feature_that_counts_only_where_another_is_high_is_found():
    """Ratings are the product of two features: no sum of features orders them."""
    asks, fits = (FEATURES.index(name) for name in ("asks", "mme-relevance"))
    sets = [made_up("one", 400), made_up("two", 400, seed=1)]
    sets = [
        replace(own, ratings={"overall": own.features[:, asks] * own.features[:, fits]})
        for own in sets
    ]
    new = made_up("new", seed=2).features
    found = spearmanr(fit(sets, NONE).judge(new)[:, 0], new[:, asks] * new[:, fits])[0]
    assert found > 0.6


def test_pairs_teach_what_ratings_do_not_show():
    pairs = np.zeros((40, 2, WIDTH))
    pairs[:, 0, 5] = 1.0
    without = fit([made_up("one")], NONE).weights[0, 5]
    assert fit([made_up("one")], pairs).weights[0, 5] > without + 0.03


def test_a_large_set_counts_as_much_as_a_small_one():
    other = TRUE.copy()
    other[0] = -1.0
    small, large = made_up("small", 200), made_up("large", 3000, seed=1, truth=other)
    assert abs(fit([small, large], NONE).weights[0, 0]) < 0.2


@given(st.lists(st.integers(1, 5), min_size=3, max_size=40).filter(lambda v: len(set(v)) > 1))
def test_ranks_are_those_of_scipy_with_deviation_1(ratings):
    ranks = rankdata(ratings)
    wanted = (ranks - ranks.mean()) / ranks.std()
    assert uniform_ranks(np.array(ratings, float)) == pytest.approx(wanted)


def test_a_set_is_judged_by_what_the_others_taught():
    opposite = made_up("opposite", seed=3, truth=-TRUE)
    found = leave_one_out([made_up("one"), made_up("two", seed=1), opposite], NONE)
    left = next(one for one in found if one.name == "opposite")
    assert spearmanr(left.judged["overall"], opposite.ratings["overall"])[0] < -0.9


def test_answers_to_turns_of_the_left_out_set_teach_nothing():
    one, two = made_up("one"), made_up("two", seed=1)
    copy = Rated(
        "copy", one.features, {"overall": -one.ratings["overall"]}, one.contexts, one.systems
    )
    found = {left.name: left for left in leave_one_out([one, two, copy], NONE)}
    alone = {left.name: left for left in leave_one_out([one, two], NONE)}
    assert found["one"].judged["overall"] == pytest.approx(alone["one"].judged["overall"])


def left_out(name, judged, ratings, systems=()):
    count = len(judged)
    return LeftOut(
        name,
        {"overall": np.array(judged, float)},
        {"overall": np.array(ratings, float)},
        np.zeros((count, WIDTH)),
        tuple(systems) or ("",) * count,
    )


def test_the_margin_holds_the_share_with_every_set_counting_the_same():
    near = left_out("near", [3.0] * 100, [3.1] * 100)
    far = left_out("far", [3.0] * 10, [3.0 + 0.2 * place for place in range(10)])
    assert margin_of([near], 0.9) == pytest.approx(0.1)
    assert margin_of([near, far], 0.9) == pytest.approx(1.4)
    assert coverage_of([near, far], 0.9) == {"near": 1.0, "far": pytest.approx(0.1)}


def test_doubt_is_how_far_differences_of_systems_are_from_peoples():
    systems = ["a"] * 30 + ["b"] * 30
    one = left_out("one", [3.0] * 30 + [2.0] * 30, [4.0] * 30 + [2.5] * 30, systems)
    assert doubt_of([one]) == pytest.approx(0.5)
    assert systems_ordered([one]) == (1, 1)
    assert systems_ordered([left_out("o", [1.0] * 60, [4.0] * 30 + [2.5] * 30, systems)]) == (0, 1)


def test_the_scale_brings_judgements_to_mean_ratings():
    rated = [made_up("one"), made_up("two", seed=1)]
    weights = fit(rated, NONE)
    judged = fit_scale(rated, weights).ratings(weights.judge(rated[0].features))
    column = judged[:, ASPECTS.index("overall")]
    assert ((column > 1.0) & (column < 5.0)).all()
    assert np.abs(column - rated[0].ratings["overall"]).mean() < 0.25


def shipped():
    return fit([made_up("one"), made_up("two", seed=1)], NONE)


def test_ratings_of_ones_own_move_the_judge_to_them():
    other = np.zeros(WIDTH)
    other[7] = 1.0
    own = made_up("own", 100, seed=5, truth=other)
    found = adapt([own], shipped(), SCALE, seed=0)
    before, after = found.scores.values()
    assert after > before + 0.3
    new = made_up("new", seed=6, truth=other)
    assert spearmanr(found.weights.judge(new.features)[:, 0], new.ratings["overall"])[0] > 0.7


def test_aspects_that_nobody_rated_keep_their_scale_and_the_doubt_stays():
    found = adapt([made_up("own", 100, seed=5)], shipped(), SCALE, seed=0)
    place = ASPECTS.index("relevance")
    assert (found.scale.slopes[place], found.scale.shifts[place]) == (2.0, 0.0)
    assert found.scale.slopes[0] != 2.0
    assert found.scale.doubt == 0.3


def test_the_margin_is_that_of_answers_that_were_not_learned_from():
    """Twenty ratings that are noise: weights that have seen them would be nearer than 90 %."""
    own = made_up("own", 20, seed=5, noise=3.0, truth=TRUE * 0.0)
    found = adapt([own], shipped(), SCALE, seed=0)
    judged = found.scale.ratings(found.weights.judge(own.features))[:, 0]
    assert np.mean(np.abs(own.ratings["overall"] - judged) <= found.scale.margin) >= 0.85


def test_noise_does_not_move_the_judge():
    own = made_up("own", 60, seed=5, noise=9.0, truth=TRUE * 0.0)
    start = shipped()
    found = adapt([own], start, SCALE, seed=0)
    before, after = found.scores.values()
    assert after >= before


def test_too_few_ratings_are_refused():
    with pytest.raises(UsageError, match="too few"):
        adapt([made_up("own", 9)], shipped(), SCALE, seed=0)


def test_a_judge_from_nothing_takes_two_sets():
    with pytest.raises(UsageError, match="two rated sets or more"):
        across_sets([made_up("one")], NONE)


def test_every_number_of_the_card_is_of_a_set_that_was_left_out():
    found = across_sets([made_up("one"), made_up("two", seed=1)], NONE)
    assert found.scores["mean over sets, left out: Spearman of overall"] > 0.95
    assert 0.0 < found.scale.margin < 1.0
    assert found.scores["one, left out: share of ratings in the interval (nominal 0.9)"] > 0.8


def test_ratings_of_a_set_with_a_taste_of_its_own_pay_the_more_the_more_there_are():
    other = np.zeros(WIDTH)
    other[7] = 1.0
    sets = [made_up("one"), made_up("two", seed=1), made_up("own", 400, seed=5, truth=other)]
    found = learning_curve(sets, NONE, (20, 200), draws=1, rest=100)
    assert [(one.name, one.ratings) for one in found] == [("own", 20), ("own", 200)]
    few, many = found
    assert few.before == many.before < 0.3
    assert few.after < many.after
    assert many.after > 0.8


class MadeUp:
    """Answers everything with the length of what is judged."""

    def answer(self, questions, progress):
        return {question: self._one(question) for question in questions}

    def _one(self, question):
        if isinstance(question, Embed):
            return (1.0, float(len(question.text)))
        if isinstance(question, Judge):
            return (0.5,)
        rating = min(5.0, 1.0 + len(question.response) / 10)
        return Assessment((rating,) * len(ASPECTS), 1.0, 1.0).answer()


READERS = Readers("judge", "encoder", "relevance", "pone", "engagement")


def test_a_dialogue_has_the_features_of_its_systems_turns():
    said = (Turn("Hello", "user"), Turn("Hi there", "system"), Turn("So?", "user"))
    rated = {"overall": Rating((2, 4), (1, 5))}
    long = Sample("a", (*said, Turn("Well", "system")), ratings=rated)
    samples = [long, Sample("b", said, ratings={"overall": Rating((5,), (1, 5))})]
    _, turns, ratings = rated_dialogues("made up", samples, READERS, MadeUp())
    assert [own.shape for own in turns] == [(2, len(FEATURES) + 2), (1, len(FEATURES) + 2)]
    assert turns[0][0] == pytest.approx(turns[1][0])
    assert ratings == pytest.approx([3.0, 5.0])


def test_answers_alone_are_no_dialogues():
    answer = Sample("a", (Turn("Hello"),), "Hi", ratings={"overall": Rating((2,), (1, 5))})
    with pytest.raises(UsageError, match="no rated dialogue"):
        rated_dialogues("made up", [answer], READERS, MadeUp())
