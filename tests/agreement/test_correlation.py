import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dialeval.agreement.arithmetic import rank
from dialeval.agreement.correlation import NAMES, correlations, kendall, pearson, spearman

stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle here")

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
