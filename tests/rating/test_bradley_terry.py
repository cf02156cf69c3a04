"""Strengths and their intervals, against arithmetic, scipy and statsmodels."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dialeval.rating.bradley_terry import Outcome, bradley_terry, fit_strengths
from dialeval.rating.overview import wilson


def made_up(systems: int, items: int, seed: int) -> list[Outcome]:
    generator = random.Random(seed)
    names = [f"s{i}" for i in range(systems)]
    outcomes = []
    for item in range(items):
        for _ in range(3):
            first, second = generator.sample(names, 2)
            edge = (int(second[1:]) - int(first[1:])) * 0.5
            chance = 1 / (1 + math.exp(-edge))
            share = generator.choices([1.0, 0.5, 0.0], [chance, 0.3, 1 - chance])[0]
            outcomes.append(Outcome(first, second, share, f"item-{item}"))
    return outcomes


def test_of_two_systems_the_strengths_are_half_the_log_odds():
    """30 wins of 40: s_a - s_b = log(30 / 10), and their sum is 0."""
    outcomes = [Outcome("a", "b", 1.0 if i < 30 else 0.0, str(i)) for i in range(40)]
    ranking = bradley_terry(outcomes)
    assert [one.system for one in ranking.strengths] == ["a", "b"]
    assert ranking.strengths[0].strength == pytest.approx(math.log(3) / 2, abs=1e-12)
    assert ranking.strengths[1].strength == pytest.approx(-math.log(3) / 2, abs=1e-12)


def test_of_two_systems_the_interval_is_that_of_a_share():
    """Var(logit p) = 1 / (n p q), with the factor n / (n - 1); a strength is half of the logit."""
    outcomes = [Outcome("a", "b", 1.0 if i < 30 else 0.0, str(i)) for i in range(40)]
    best = bradley_terry(outcomes).strengths[0]
    half = 1.959963984540054 * math.sqrt(40 / 39 / (40 * 0.75 * 0.25)) / 2
    assert best.high - best.strength == pytest.approx(half, rel=1e-9)
    assert best.strength - best.low == pytest.approx(half, rel=1e-9)


def test_a_tie_is_half_a_win_for_each():
    halves = [Outcome("a", "b", 0.5, str(i)) for i in range(10)]
    assert bradley_terry(halves).strengths[0].strength == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_strengths_are_those_that_scipy_finds(seed):
    outcomes = made_up(5, 60, seed)
    found = {one.system: one.strength for one in bradley_terry(outcomes).strengths}
    names = sorted(found)

    def loss(s):
        at = dict(zip(names, s, strict=True))
        edges = [(at[o.first] - at[o.second], o.share) for o in outcomes]
        return sum(np.logaddexp(0, -d) * y + np.logaddexp(0, d) * (1 - y) for d, y in edges)

    best = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-9}).x
    assert [found[name] for name in names] == pytest.approx(list(best - best.mean()), abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore")
def test_intervals_are_those_of_a_logistic_regression_clustered_by_item(seed):
    import statsmodels.api as sm

    outcomes = made_up(4, 50, seed)
    names = [f"s{i}" for i in range(4)]
    design = np.zeros((len(outcomes), 4))
    for row, one in enumerate(outcomes):
        design[row, names.index(one.first)] = 1
        design[row, names.index(one.second)] = -1
    groups = np.array([int(one.item[5:]) for one in outcomes])
    # Without the last system, whose strength is then 0 by convention.
    fitted = sm.GLM(
        np.array([one.share for one in outcomes]), design[:, :3], family=sm.families.Binomial()
    ).fit(
        cov_type="cluster",
        cov_kwds={"groups": groups, "use_correction": False},
        tol=1e-12,
        maxiter=200,
    )
    centre = np.eye(4)[:, :3] - 1 / 4  # strengths with sum 0 from those with the last one 0
    strengths = centre @ fitted.params
    deviations = np.sqrt(np.diag(centre @ fitted.cov_params() @ centre.T) * 50 / 49)
    ranking = {one.system: one for one in bradley_terry(outcomes).strengths}
    for name, s, d in zip(names, strengths, deviations, strict=True):
        assert ranking[name].strength == pytest.approx(s, abs=1e-6)
        assert (ranking[name].high - s) / 1.959963984540054 == pytest.approx(d, rel=1e-5)


def test_who_always_wins_has_no_finite_strength():
    outcomes = [Outcome("a", b, 1.0, str(i)) for i in range(5) for b in "bc"]
    outcomes += [Outcome("b", "c", i % 2, str(i)) for i in range(4)]
    ranking = bradley_terry(outcomes)
    assert ranking.strengths == ()
    assert ranking.reason == "a won every comparison with b, c"


def test_who_never_met_cannot_be_ranked():
    outcomes = [Outcome("a", "b", i % 2, str(i)) for i in range(4)]
    outcomes += [Outcome("c", "d", i % 2, str(i)) for i in range(4)]
    assert "never compared" in bradley_terry(outcomes).reason


def test_no_comparison_no_ranking():
    assert bradley_terry([]).reason == "no comparison yet"


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_naming_the_sides_the_other_way_round_changes_nothing(seed):
    outcomes = made_up(3, 30, seed)
    turned = [Outcome(o.second, o.first, 1 - o.share, o.item) for o in outcomes]
    here, there = bradley_terry(outcomes), bradley_terry(turned)
    assert here.reason == there.reason
    for one, other in zip(here.strengths, there.strengths, strict=True):
        assert one.strength == pytest.approx(other.strength, abs=1e-9)
        assert one.high == pytest.approx(other.high, abs=1e-9)


def test_a_hard_case_still_reaches_the_maximum():
    """One win of 10 000: the score equations hold to 1e-6."""
    wins = np.array([[0, 9999.0, 30], [1, 0, 25], [20, 5, 0]])
    s = fit_strengths(wins)
    games = wins + wins.T
    chance = 1 / (1 + np.exp(s[None, :] - s[:, None]))
    assert np.abs(wins.sum(axis=1) - (games * chance).sum(axis=1)).max() < 1e-6


def test_wilson_is_that_of_statsmodels():
    from statsmodels.stats.proportion import proportion_confint

    for count, n in ((0, 10), (3, 10), (10, 10), (55, 100)):
        expected = proportion_confint(count, n, method="wilson")
        assert wilson(count / n, n) == pytest.approx(expected, abs=1e-9)
