"""Compositions over data sets: tests by families, learning curves, reasons."""

from __future__ import annotations

import numpy as np
import pytest
from compose.made_up_runs import rated_samples, run_on, variety, words
from scipy.stats import permutation_test

from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.dstc10 import flat_mean, two_level_mean
from dialeval.compose.evidence import gather
from dialeval.compose.fitting import PAPER
from dialeval.compose.leave_one_out import (
    CRS,
    difference,
    explain,
    family_names,
    learning_curve,
    leave_each_out,
    sign_flip_p,
)

METRICS = ("length", "distinct:n=1")


def rho(**sets):
    return {
        name: {str(place): Coefficient(value, 10) for place, value in enumerate(values)}
        for name, values in sets.items()
    }


@pytest.mark.parametrize(
    "values", [[0.1, 0.2, 0.3, 0.05, 0.4], [0.1, -0.2, 0.3, 0.05, -0.02, 0.11]]
)
def test_p_is_that_of_an_exact_permutation_test_of_signs(values):
    wanted = permutation_test(
        (np.array(values),), np.sum, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert sign_flip_p(np.array(values)) == pytest.approx(wanted)


def test_many_families_are_turned_round_at_random_and_what_was_found_counts_as_one_way():
    assert 0 < sign_flip_p(np.full(30, 0.1)) <= 2 / (1 << 16)


def test_a_difference_is_that_of_the_means_and_families_are_the_unit():
    one = rho(a=[0.4, 0.6], b=[0.1], c=[0.3])
    other = rho(a=[0.1, 0.1], b=[0.2], c=[0.1])
    apart = [["a"], ["b"], ["c"]]
    by_set = difference(one, other, apart, "by set")
    by_pair = difference(one, other, apart, "by quality")
    assert by_set.value == pytest.approx(two_level_mean(one).value - two_level_mean(other).value)
    assert by_pair.value == pytest.approx(flat_mean(one).value - flat_mean(other).value)
    assert (by_set.better, by_set.families, by_set.p) == (2, 3, pytest.approx(0.5))
    together = difference(one, other, [["a", "b"], ["c"]], "by set")
    assert together.value == pytest.approx(by_set.value)
    assert (together.families, together.p) == (2, pytest.approx(0.5))
    assert difference(one, rho(z=[0.1]), apart) is None


@pytest.fixture(scope="module")
def gathered(tmp_path_factory):
    """People like long answers in three sets, and varied ones in the fourth."""
    place = tmp_path_factory.mktemp("runs")
    rules = {"one": words, "two": words, "three": words, "other": variety}
    return gather(
        {
            name: run_on(rated_samples(name, {"overall": rule}), place / name, METRICS)
            for name, rule in rules.items()
        },
        METRICS,
    )


def test_a_learning_curve_ends_where_leaving_each_out_does(gathered):
    points = learning_curve(gathered, PAPER, draws=2)[CRS]
    assert [(point.families, point.draws) for point in points] == [(1, 2), (2, 2), (3, 1)]
    wanted = two_level_mean(leave_each_out(gathered, PAPER).of(CRS)).value
    assert points[-1].value == points[-1].low == points[-1].high == pytest.approx(wanted)
    assert points == learning_curve(gathered, PAPER, draws=2)[CRS]


def test_the_reasons_name_the_set_on_which_the_others_mislead(gathered):
    found = leave_each_out(gathered, PAPER)
    assert family_names(gathered) == [["one"], ["two"], ["three"], ["other"]]
    reasons = {one.dataset: one for one in explain(gathered, found, PAPER)}
    misled = reasons["other"]
    assert misled.best == "distinct:n=1"
    assert misled.best_value == pytest.approx(1.0)
    assert misled.own > 0.9 > misled.crs
    assert misled.astray > 0.5 > reasons["one"].astray
