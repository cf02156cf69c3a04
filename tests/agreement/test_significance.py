"""Is a difference real? Small cases, other libraries, laws, and calibration under the null."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.agreement.bootstrap import Resampling, p_value, resample
from dialeval.agreement.significance import (
    draw_lines,
    holm,
    paired_test,
    perm_both,
    williams_p,
    williams_test,
)

SIMULATIONS = 2000

unhurried = settings(deadline=None)

paired_bootstrap = partial(paired_test, "bootstrap")
paired_permutation = partial(paired_test, "permutation")


@pytest.fixture(scope="module")
def stats():
    return pytest.importorskip("scipy.stats")


@pytest.fixture(scope="module")
def multitest():
    return pytest.importorskip("statsmodels.stats.multitest")


def seeded(rounds=999, seed=1, **how):
    return Resampling(np.random.default_rng(seed), rounds, **how)


def three_sides(n, rng, noise=1.0):
    """People, and two metrics that agree with them equally well."""
    human = rng.normal(size=n)
    return *(human + noise * rng.normal(size=(2, n))), human


# -- Williams -------------------------------------------------------------------------------------


def test_williams_equals_the_example_of_psych_r_test():
    """R: psych::r.test(n=103, r12=.4, r13=.5, r23=.1) gives t = -.89, p = .37."""
    assert round(williams_p(0.4, 0.5, 0.1, 103), 2) == 0.37
    assert williams_p(0.5, 0.4, 0.1, 103, "greater") == pytest.approx(
        williams_p(0.4, 0.5, 0.1, 103) / 2
    )


@unhurried
@given(n=st.integers(5, 60), seed=st.integers(0, 2**32 - 1))
def test_williams_equals_its_formula_with_scipy(stats, n, seed):
    first, second, human = three_sides(n, np.random.default_rng(seed))
    found = williams_test(first, second, human)
    r1, r2, r12 = np.corrcoef([first, second, human])[[0, 1, 0], [2, 2, 1]]
    k = np.linalg.det(np.corrcoef([first, second, human]))
    below = 2 * k * (n - 1) / (n - 3) + (r1 + r2) ** 2 / 4 * (1 - r12) ** 3
    t = (r1 - r2) * np.sqrt((n - 1) * (1 + r12) / below)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(t), n - 3), abs=1e-9)
    assert found.difference == pytest.approx(r1 - r2)
    assert williams_test(second, first, human).p == pytest.approx(found.p)


def test_williams_without_an_answer_says_why():
    x, human = np.arange(6.0), np.array([1.0, 3, 2, 5, 4, 6])
    assert williams_test(np.ones(6), x, human).reason == "constant"
    assert williams_test(x[:3], human[:3], x[:3] ** 2).p is None
    same = williams_test(x, x, human)
    assert (same.p, same.difference) == (None, 0)
    assert "one" in same.reason
    assert williams_test(x, np.where(x == 0, np.nan, -x), human).n_missing == 1


def test_williams_is_calibrated():
    rng = np.random.default_rng(2)
    p = [williams_test(*three_sides(40, rng)).p for _ in range(SIMULATIONS)]
    assert 0.035 <= np.mean(np.array(p) <= 0.05) <= 0.065


# -- PERM-BOTH ------------------------------------------------------------------------------------


def slow_delta(first, second, human, groups, level, r):
    """r(first) - r(second), one group after the other."""
    places = [np.flatnonzero(groups == g) for g in np.unique(groups)]

    def of(metric):
        if level == "turn":
            return r(metric, human)[0]
        if level == "system":
            return r([metric[p].mean() for p in places], [human[p].mean() for p in places])[0]
        return np.mean([r(metric[p], human[p])[0] for p in places])

    return of(first) - of(second)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
@pytest.mark.parametrize("level", ["turn", "system", "group"])
@pytest.mark.parametrize("tied", [False, True])
def test_perm_both_equals_a_slow_count_with_scipy(stats, level, coefficient, tied):
    rng = np.random.default_rng(3)
    first, second, human = three_sides(24, rng, 0.7)
    human = human.round(1)
    second = second + rng.normal(size=24)
    if tied:
        first, second = first.round(), second.round()
    groups = np.array([f"system {place % 4}" for place in range(24)])
    options = {"coefficient": coefficient, "level": level, "groups": list(groups)}
    found = perm_both(first, second, human, seeded(199), **options)

    order = np.argsort(groups, kind="stable") if level != "turn" else np.arange(24)
    draws = resample_all(199, 24)
    x, y = ((side - side.mean()) / side.std() for side in (first[order], second[order]))
    r = stats.pearsonr if coefficient == "pearson" else stats.spearmanr
    arguments = human[order], groups[order], level, r
    observed = slow_delta(x, y, *arguments)
    null = [slow_delta(np.where(u < 0.5, y, x), np.where(u < 0.5, x, y), *arguments) for u in draws]
    count = np.sum(np.abs(null) >= abs(observed) - 1e-12)
    assert found.difference == pytest.approx(observed)
    assert found.p == (count + 1) / 200


def resample_all(rounds, n):
    """The uniform numbers that `resample` hands out for seed 1, in one piece."""
    rows = []
    resample(lambda u: rows.append(u) or np.zeros(len(u)), n, seeded(rounds))
    return np.concatenate(rows)


def test_perm_both_without_an_answer_says_why():
    x, human = np.arange(6.0), np.array([1.0, 3, 2, 5, 4, 6])
    assert perm_both(np.ones(6), x, human, seeded(9)).reason == "constant"
    found = perm_both(x, -x, human, seeded(9), level="system", groups=list("aaabbb"))
    assert found.reason == "fewer than 3 systems"
    pairs = perm_both(x, -x, human, seeded(9), level="group", groups=list("aabbcc"))
    assert (pairs.reason, pairs.n_missing) == ("fewer than 3 items", 6)
    with pytest.raises(ValueError, match="needs a group"):
        perm_both(x, -x, human, seeded(9), level="group")


@pytest.mark.parametrize("ratings", [[1.0, 2.0, 3.0], [0.1, 0.2, 0.7, 0.3]])
@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_systems_of_one_mean_rating_are_constant(ratings, coefficient):
    """In another order, so that sums from left to right differ by their rounding."""
    rng = np.random.default_rng(0)
    human = np.concatenate([rng.permutation(ratings) for _ in range(4)])
    first, second = rng.normal(size=(2, len(human)))
    systems = np.repeat([*"abcd"], len(ratings)).tolist()
    found = perm_both(
        first, second, human, seeded(), coefficient=coefficient, level="system", groups=systems
    )
    assert (found.reason, found.p, found.difference) == ("constant", None, None)


@pytest.mark.parametrize("level", ["turn", "system"])
def test_an_infinite_score_is_refused(level):
    first, second, human = three_sides(12, np.random.default_rng(0))
    first[3] = np.inf
    found = perm_both(first, second, human, seeded(), level=level, groups=[*"abcd"] * 3)
    assert (found.reason, found.p) == ("infinite values", None)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman"])
def test_perm_both_is_calibrated(coefficient):
    rng = np.random.default_rng(4)
    p = [
        perm_both(*three_sides(30, rng), Resampling(rng, 199), coefficient=coefficient).p
        for _ in range(SIMULATIONS)
    ]
    assert 0.035 <= np.mean(np.array(p) <= 0.05) <= 0.065


# -- one system against another -------------------------------------------------------------------


def test_permutation_nears_the_exact_p_of_all_sign_flips():
    differences = np.array([1.0, 2, 0, -1, 3, 1, 1, -1, 2, 1])
    flips = np.array(list(itertools.product([1, -1], repeat=10))) @ differences
    exact = np.mean(np.abs(flips) >= abs(differences.sum()))
    found = paired_permutation(differences, np.zeros(10), seeded(19_999))
    assert found.p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000))
    one_sided = paired_permutation(differences, np.zeros(10), seeded(19_999), "greater")
    assert one_sided.p == pytest.approx(exact / 2, abs=0.005)


def test_bootstrap_nears_the_normal_p_and_interval_of_a_large_sample(stats):
    rng = np.random.default_rng(5)
    first, second = rng.normal(0.06, 1, 1000), rng.normal(0, 1, 1000)
    found = paired_bootstrap(first, second, seeded(9999))
    assert found.p == pytest.approx(stats.ttest_rel(first, second).pvalue, abs=0.02)
    low, high = stats.ttest_rel(first, second).confidence_interval()
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)


@pytest.mark.parametrize("test", [paired_permutation, paired_bootstrap])
@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
def test_paired_tests_are_calibrated(test, alternative):
    rng = np.random.default_rng(6)
    hard = rng.normal(size=100)
    p = [
        test(*(hard + rng.normal(size=(2, 100))), Resampling(rng, 499), alternative).p
        for _ in range(SIMULATIONS)
    ]
    assert 0.035 <= np.mean(np.array(p) <= 0.05) <= 0.065


@pytest.mark.parametrize("test", [paired_permutation, paired_bootstrap])
def test_neither_workers_nor_blocks_change_a_result(test):
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(2, 37))
    ways = [{}, {"workers": 3, "block": 100}, {"block": 1}, {"workers": 2, "block": 37 * 11}]
    assert len({test(x, y, seeded(**way)) for way in ways}) == 1
    for coefficient in ("pearson", "spearman"):
        found = {perm_both(x, y, x + y, seeded(**way), coefficient=coefficient) for way in ways}
        assert len(found) == 1
    again = seeded()
    assert test(x, y, again).p != test(x, y, again).p


def test_progress_reaches_the_last_round():
    seen = []
    told = seeded(50, block=20, progress=lambda done, rounds: seen.append((done, rounds)))
    paired_permutation(np.arange(4.0), np.zeros(4), told)
    assert seen[-1] == (50, 50)
    assert [done for done, _ in seen] == list(range(5, 51, 5))


@settings(unhurried, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=12),
    st.sampled_from([paired_permutation, paired_bootstrap]),
)
def test_p_is_in_0_1_and_does_not_ask_who_is_first(pairs, test):
    x, y = np.array(pairs, dtype=np.float64).T
    found, turned = test(x, y, seeded(99)), test(y, x, seeded(99))
    assert 0 < found.p <= 1
    assert turned.p == found.p
    assert turned.difference == -found.difference
    assert test(3 * x + 1, 3 * y + 1, seeded(99)).p == found.p


def test_equal_systems_have_p_1_and_lonely_items_none():
    x = np.arange(5.0)
    assert paired_permutation(x, x, seeded(99)).p == 1
    assert paired_bootstrap(x, x, seeded(99)).p == 1
    lonely = paired_permutation(np.array([1.0, np.nan]), np.array([0.0, 2]), seeded(9))
    assert (lonely.p, lonely.difference, lonely.n_missing) == (None, 1.0, 1)
    assert lonely.reason == "fewer than 2 items have a score on both sides"
    assert paired_bootstrap(np.array([]), np.array([]), seeded(9)).difference is None


def test_p_counts_the_data_themselves():
    assert p_value(np.array([0.0, 1.0, -2.0]), 1.5, 1.0, "two-sided") == 2 / 4
    assert p_value(np.array([0.0, 1.0, -2.0]), 1.5, 1.0, "greater") == 1 / 4
    assert p_value(np.array([0.1 + 0.2]), 0.3000000000000001, 1.0, "greater") == 1


# -- many comparisons -----------------------------------------------------------------------------

p_lists = st.lists(st.floats(1e-6, 1), min_size=1, max_size=10)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.01, None, 0.02]) == [pytest.approx(0.02), None, pytest.approx(0.02)]
    assert holm([]) == []


@settings(unhurried, max_examples=25)  # statsmodels collects garbage at every call
@given(p=p_lists)
def test_holm_equals_statsmodels(multitest, p):
    assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1], abs=1e-12)


@unhurried
@given(p_lists, st.randoms(use_true_random=False))
def test_holm_keeps_order_only_raises_and_stays_within_bonferroni(p, random):
    adjusted = holm(p)
    assert all(
        raw <= new <= min(1, len(p) * raw) + 1e-15 for raw, new in zip(p, adjusted, strict=True)
    )
    by_raw = [new for _, new in sorted(zip(p, adjusted, strict=True))]
    assert by_raw == sorted(by_raw)
    places = list(range(len(p)))
    random.shuffle(places)
    assert holm([p[place] for place in places]) == [adjusted[place] for place in places]


def test_lines_are_drawn_by_the_rule_named():
    """a > c, a > d, b > d: `all` finds no line that nothing crosses, `any` starts anew at c."""
    better = np.zeros((4, 4), dtype=bool)
    better[0, 2] = better[0, 3] = better[1, 3] = True
    assert draw_lines(better, "all") == [1, 1, 1, 1]
    assert draw_lines(better, "any") == [1, 1, 2, 2]
    better[1, 2] = True
    assert draw_lines(better, "all") == [1, 1, 2, 2]
    assert draw_lines(better, "any") == [1, 1, 2, 2]
