from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dialeval.agreement.arithmetic import (
    correlation_two_sided_p,
    incomplete_beta,
    normal_quantile,
    normal_two_sided_p,
    rank,
    student_quantile,
    student_two_sided_p,
)
from dialeval.agreement.correlation import NAMES, correlations, kendall, pearson, spearman
from dialeval.agreement.weighted_correlation import exact_kendall_p

stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle here")
special = pytest.importorskip("scipy.special")

ORACLES = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
grades = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=60)
scores = st.lists(
    st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)), min_size=3, max_size=60
)
either = st.one_of(grades, scores)


def few(name, x):
    """Where p of Spearman's rho is exact, and scipy's is Student's."""
    return name == "spearman" and len(x) <= 8


def sides(pairs):
    x, y = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    return x, y


def varied(pairs):
    x, y = sides(pairs)
    assume(np.ptp(x) > 0 and np.ptp(y) > 0)
    return x, y


def values(x, y, names=NAMES):
    return [found.value for found in correlations(x, y, names=names).values()]


@pytest.mark.parametrize("name", NAMES)
@given(pairs=either)
def test_value_and_p_equal_scipy(name, pairs):
    x, y = varied(pairs)
    found, oracle = correlations(x, y)[name], ORACLES[name](x, y)
    assert found.value == pytest.approx(oracle.statistic, abs=1e-9)
    # p of three pairs goes with sqrt(1 - r): an r of scipy that misses 1 by 1e-16 has p = 1e-8
    rounding = 1e-7 if len(x) == 3 and abs(found.value) > 1 - 1e-12 else 1e-9
    if few(name, x):
        return
    assert found.p == pytest.approx(oracle.pvalue, abs=rounding)


def test_perfect_agreement_is_exactly_1_with_p_0():
    for n in (3, 4, 50):
        x = np.random.default_rng(n).normal(size=n)
        line, curve = pearson(x, 0.3 * x + 0.1), spearman(x, np.exp(x))
        assert (line.value, line.p) == (1.0, 0.0)
        # Two of all orders are as extreme: this one and its reverse.
        assert (curve.value, curve.p) == (1.0, 0.0 if n > 8 else 2 / math.factorial(n))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [3, 5, 33, 34, 1000, 20_000])
def test_value_and_p_equal_scipy_for_few_and_many(name, n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y = 0.02 * x + rng.normal(size=n)
    for other in (y, np.round(y), x, -x):
        if np.ptp(other) == 0:
            continue
        found, oracle = correlations(x, other)[name], ORACLES[name](x, other)
        assert found.value == pytest.approx(oracle.statistic, abs=1e-9)
        if not few(name, x):
            assert found.p == pytest.approx(oracle.pvalue, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=3, max_size=5))
@settings(deadline=None)
def test_p_of_few_items_is_the_share_of_orders_as_extreme(pairs):
    x, y = varied(pairs)
    observed = abs(stats.spearmanr(x, y).statistic)
    others = [abs(stats.spearmanr(order, y).statistic) for order in permutations(x)]
    assert spearman(x, y).p == pytest.approx(np.mean(np.array(others) >= observed - 1e-9))


@given(st.lists(st.integers(0, 9), min_size=1))
def test_ranks_equal_scipy(numbers):
    array = np.array(numbers, dtype=np.float64)
    np.testing.assert_array_equal(rank(array), stats.rankdata(array))


@pytest.mark.parametrize("coefficient", [pearson, spearman, kendall])
def test_undefined_has_a_reason_and_no_number(coefficient):
    for x, y, reason in (
        ([1.0, 2.0], [1.0, 2.0], "fewer than 3 pairs"),
        ([], [], "fewer than 3 pairs"),
        ([0.1] * 7, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "constant"),
        ([1.0, 2.0, None, 4.0], [1.0, None, 3.0, 4.0], "fewer than 3 pairs"),
    ):
        found = coefficient(x, y)
        assert (found.value, found.p, found.low, found.high) == (None,) * 4
        assert found.reason == reason


def test_pearson_has_no_place_for_infinity_but_ranks_do():
    x, y = [1.0, 2.0, math.inf], [1.0, 2.0, 3.0]
    assert pearson(x, y).reason == "infinite values"
    assert spearman(x, y).value == kendall(x, y).value == 1.0


def test_pearson_of_huge_numbers_does_not_overflow():
    assert pearson([1e308, -1e308, 0.0], [1.0, 2.0, 1.5]).value == pytest.approx(-1.0)


def test_missing_sides_are_left_out_and_counted():
    found = spearman([1.0, None, 2.0, 3.0, 4.0], [1.0, 5.0, 2.0, 3.0, math.nan])
    assert (found.value, found.n, found.n_missing) == (pytest.approx(1.0), 3, 2)


def test_ties_are_pairs_of_items_with_the_same_value():
    found = kendall([1.0, 1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 3.0, 4.0, 4.0])
    assert (found.ties_x, found.ties_y) == (3 + 1, 1)


def test_lists_of_different_length_are_refused():
    with pytest.raises(ValueError, match="cannot pair"):
        spearman([1.0, 2.0, 3.0], [1.0, 2.0])


@given(either)
def test_monotone_maps_leave_rank_correlations(pairs):
    x, y = varied(pairs)
    names = ["spearman", "kendall"]
    assert values(x**3 + x, y, names) == pytest.approx(values(x, y, names), abs=1e-12)


@given(either, st.integers(-100, 100), st.sampled_from([0.001, 0.5, 3.0, 1e6]))
def test_affine_maps_leave_pearson(pairs, shift, scale):
    x, y = varied(pairs)
    assert pearson(scale * x + shift, y).value == pytest.approx(pearson(x, y).value, abs=1e-9)


@given(either)
def test_the_sides_can_be_swapped(pairs):
    x, y = varied(pairs)
    assert values(x, y) == pytest.approx(values(y, x), abs=1e-12)


@given(either)
def test_turning_a_side_over_turns_the_sign(pairs):
    x, y = varied(pairs)
    assert values(-x, y) == pytest.approx([-value for value in values(x, y)], abs=1e-12)


@given(either, st.randoms(use_true_random=False))
def test_the_order_of_the_items_does_not_matter(pairs, random):
    x, y = varied(pairs)
    shuffled = random.sample(pairs, len(pairs))
    assert values(*sides(shuffled)) == pytest.approx(values(x, y), abs=1e-12)


@settings(deadline=None)
@given(either, st.integers(2, 4))
def test_having_every_item_several_times_leaves_the_value(pairs, times):
    x, y = varied(pairs)
    assert values(np.tile(x, times), np.tile(y, times)) == pytest.approx(values(x, y), abs=1e-9)


@pytest.mark.parametrize("df", [1, 2, 3, 10, 99, 201, 1e4, 1e6])
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.3, -1.96, 5.0, 12.0])
def test_the_tail_of_students_t_equals_scipy_also_far_out(t, df):
    expected = 2 * stats.t.sf(abs(t), df)
    assert student_two_sided_p(t, df) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("t", [1e-8, 0.5, 1.0, 1e6])
def test_one_degree_of_freedom_is_the_cauchy_distribution(t):
    """In closed form; at t = 1e-8 scipy.stats.t.sf itself is off by 3e-9."""
    assert student_two_sided_p(t, 1) == pytest.approx(2 / math.pi * math.atan(1 / t), rel=1e-12)


@pytest.mark.parametrize("z", [0.0, 1.96, -3.0, 20.0])
def test_the_normal_tail_equals_scipy(z):
    assert normal_two_sided_p(z) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)


@pytest.mark.parametrize("df", [1, 2, 48, 1e5])
@pytest.mark.parametrize("probability", [0.001, 0.025, 0.5, 0.9, 0.975])
def test_quantiles_equal_scipy(probability, df):
    assert student_quantile(probability, df) == pytest.approx(
        stats.t.ppf(probability, df), rel=1e-9, abs=1e-9
    )
    assert normal_quantile(probability) == pytest.approx(stats.norm.ppf(probability), abs=1e-9)


def test_the_incomplete_beta_function_equals_scipy():
    for a in (0.5, 1.0, 7.5, 150.0, 4e4):
        for b in (0.5, 3.0, 120.0):
            for x in np.linspace(0, 1, 21):
                found = incomplete_beta(a, b, x, 1 - x)
                assert found == pytest.approx(special.betainc(a, b, x), abs=1e-9)


def test_a_perfect_correlation_has_p_0():
    assert correlation_two_sided_p(1.0, 3) == correlation_two_sided_p(-1.0, 100) == 0.0


def test_exact_p_of_kendall_by_hand():
    """Of the 4! = 24 orders 1, 3, 5, 6, 5, 3, 1 have 0 to 6 inversions."""
    assert exact_kendall_p(4, 0) == pytest.approx(2 / 24)
    assert exact_kendall_p(4, 1) == pytest.approx(2 * 4 / 24)
    assert exact_kendall_p(4, 2) == pytest.approx(2 * 9 / 24)
    assert exact_kendall_p(4, 3) == 1.0
