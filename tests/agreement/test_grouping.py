import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.agreement.coefficient import maximum_over_raters
from dialeval.agreement.correlation import kendall, pearson, spearman, system_means, within_groups
from dialeval.agreement.rated import Target, mean_rating, rated_samples
from dialeval.sample import Rating, Sample


def with_each_rater(scores, ratings, coefficient=spearman):
    return {str(i): coefficient(scores, column) for i, column in enumerate(ratings.T)}


def per_system(x, y, systems, coefficient=spearman):
    means = system_means(x, y, systems)
    return coefficient(means.x, means.y)


PONE = "metric_corr_PONE_released(max over annotators)"
STANDARD = "metric_corr_with_mean_rating(standard)"


@pytest.mark.parametrize("coefficient", [pearson, spearman])
def test_golden_agreement_with_the_mean_rating_and_by_pones_rule(golden, coefficient):
    case, name = golden["human_agreement"], coefficient.__name__
    ratings = np.array(case["ratings_raters_x_items"], dtype=np.float64).T
    mean = coefficient(case["metric"], mean_rating(ratings))
    assert mean.value == pytest.approx(case[STANDARD][name], abs=1e-9)
    by_rater = with_each_rater(case["metric"], ratings, coefficient)
    best = maximum_over_raters(by_rater)
    assert best.value == pytest.approx(case[PONE][name], abs=1e-9)
    assert best.value == coefficient(case["metric"], ratings[:, int(best.rater)]).value
    assert best.p == min(found.p for found in by_rater.values())


@pytest.mark.parametrize("coefficient", [pearson, spearman])
def test_golden_pairs_of_raters(golden, coefficient):
    case = golden["human_agreement"]
    raters = np.array(case["ratings_raters_x_items"], dtype=np.float64)
    found = [coefficient(raters[i], raters[j]).value for i, j in ((0, 1), (0, 2), (1, 2))]
    assert found == pytest.approx(case[f"pairwise_{coefficient.__name__}"], abs=1e-9)


@pytest.mark.parametrize("coefficient", [pearson, spearman])
def test_golden_rater_against_the_mean_of_the_others(golden, coefficient):
    case = golden["inter_rater_leave_one_out"]
    ratings = np.array(case["ratings_items_x_raters"])
    found = [
        coefficient(ratings[:, i], mean_rating(np.delete(ratings, i, axis=1))).value
        for i in range(ratings.shape[1])
    ]
    assert found == pytest.approx(case[f"{coefficient.__name__}_per_rater"], abs=1e-9)


def test_the_mean_is_over_those_who_rated():
    nan = np.nan
    found = mean_rating(np.array([[1.0, nan, 4.0], [nan, nan, nan], [2.0, 2.0, 2.0]]))
    np.testing.assert_array_equal(found, [2.5, nan, 2.0])


def test_a_rater_who_always_says_the_same_is_left_out_of_the_maximum():
    ratings = np.array([[3.0, 1.0], [3.0, 2.0], [3.0, 4.0], [3.0, 3.0]])
    found = maximum_over_raters(with_each_rater([1.0, 2.0, 3.0, 4.0], ratings))
    assert (found.value, found.rater) == (pytest.approx(0.8), "1")
    alone = maximum_over_raters(with_each_rater([1.0, 2.0, 3.0, 4.0], ratings[:, :1]))
    assert (alone.value, alone.reason) == (None, "undefined with each rater: constant")


def test_within_and_between_groups_can_point_in_opposite_directions():
    """Simpson's paradox: the better system is scored higher, its better answers lower."""
    x = [1.0, 2.0, 3.0, 11.0, 12.0, 13.0, 21.0, 22.0, 23.0]
    y = [3.0, 2.0, 1.0, 13.0, 12.0, 11.0, 23.0, 22.0, 21.0]
    systems = list("aaabbbccc")
    assert per_system(x, y, systems).value == 1.0
    assert within_groups(x, y, systems).value == -1.0
    assert spearman(x, y).value == pytest.approx(0.8)


def test_a_system_mean_is_over_items_with_both_sides():
    x = [1.0, 100.0, 2.0, 3.0, 7.0]
    found = per_system(x, [1.0, None, 2.0, 3.0, None], ["a", "a", "b", "c", "d"], pearson)
    assert (found.value, found.n, found.n_missing) == (pytest.approx(1.0), 3, 1)


def test_groups_without_a_correlation_are_counted_by_reason():
    x = [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0]
    y = [1.0, 2.0, 3.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    found = within_groups(x, y, list("aaabbccc"), kendall)
    assert (found.value, found.groups, found.groups_undefined) == (1.0, 1, 2)
    assert found.undefined_groups == {"constant": 1, "fewer than 3 pairs": 1}
    nothing = within_groups(x[3:5], y[3:5], ["b", "b"])
    assert (nothing.value, nothing.reason) == (None, "undefined in every group")


def test_p_and_interval_within_groups_are_students_over_the_groups():
    stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle here")
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 120))
    groups = np.repeat(np.arange(12), 10).tolist()
    each = [stats.spearmanr(x[i : i + 10], y[i : i + 10]).statistic for i in range(0, 120, 10)]
    oracle = stats.ttest_1samp(each, 0.0)
    interval = oracle.confidence_interval(0.95)
    found = within_groups(x, y, groups)
    assert found.value == pytest.approx(np.mean(each), abs=1e-9)
    assert found.p == pytest.approx(oracle.pvalue, abs=1e-9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-9)


def test_systems_with_the_same_ratings_in_another_order_are_tied():
    ratings = [0.1, 0.2, 0.3, 0.3, 0.1, 0.2, 0.5, 0.5, 0.5]
    scores = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0]
    systems = list("aaabbbccc")
    found = per_system(scores, ratings, systems)
    assert found.ties_y == 1
    assert found.value == pytest.approx(np.sqrt(3) / 2)  # ranks 1, 2, 3 and 1.5, 1.5, 3


@given(st.lists(st.lists(st.integers(0, 10), min_size=2, max_size=2), min_size=3, max_size=8))
def test_ratings_in_tenths_are_tied_where_their_sums_are(pairs):
    samples = [
        Sample(str(n), response="x", ratings={"q": Rating((one / 10, other / 10))})
        for n, (one, other) in enumerate(pairs)
    ]
    (level,) = rated_samples(samples, {"m": {s.id: 1.0 for s in samples}}, Target())
    means = level.qualities["q"].ratings[:, 0]
    for first, a in enumerate(pairs):
        for second, b in enumerate(pairs):
            assert (means[first] == means[second]) == (sum(a) == sum(b))
            assert (means[first] < means[second]) == (sum(a) < sum(b))
