"""From correlations to weights: the golden numbers, and the laws that hold for any numbers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.compose.evidence import composed
from dialeval.metrics.composition import (
    Chosen,
    adaptive_power,
    mean_weights,
    reweigh,
    uniform_weights,
)

rho = st.floats(-1, 1).map(lambda value: 0.0 if abs(value) < 1e-6 else value)
correlations = st.lists(rho, min_size=1, max_size=9)
powers = st.sampled_from([1.0, 2.0, 3.0, "adaptive"])


@pytest.mark.parametrize("power", ["1", "2", "3"])
def test_weights_are_the_golden_ones(golden, power):
    case = golden["crs"]
    expected = case["d"][power]
    found = {
        dataset: reweigh(of_set["Overall"], float(power)).weights
        for dataset, of_set in case["correlations"].items()
    }
    for dataset, weights in expected["per_dataset"].items():
        assert found[dataset] == pytest.approx(weights, abs=1e-9)
    averaged = mean_weights(list(found.values()))
    assert averaged == pytest.approx(expected["averaged_over_datasets"], abs=1e-9)
    (value,) = composed(np.array([case["sub_scores"]]), Chosen("Overall", averaged))
    assert value == pytest.approx(expected["composite_of_scores"], abs=1e-9)


def test_the_plain_average_is_the_golden_one(golden):
    scores = golden["crs"]["sub_scores"]
    (average,) = composed(np.array([scores]), Chosen("none", uniform_weights(7)))
    assert average == pytest.approx(golden["crs"]["mme_avg_of_scores"])


def test_the_adaptive_power_is_the_golden_one(golden):
    case = golden["crs"]
    expected = case["adaptive_d(smallest d in 1,1.5,.. with max weight in [1/3,1/2])"]
    for dataset, (power, largest) in expected.items():
        found = reweigh(case["correlations"][dataset]["Overall"], "adaptive")
        assert found.power == power
        assert max(found.weights) == pytest.approx(largest)


def test_the_adaptive_power_rises_until_the_largest_weight_reaches_a_third():
    # Shares of the largest by arithmetic: 4/13 = .31 at 1, 8/23.6 = .34 at 1.5.
    assert adaptive_power([0.4, 0.3, 0.3, 0.3]) == 1.5


@pytest.mark.parametrize(
    ("rho", "power"),
    [([0.5], 1.0), ([0.9, 0.1], 1.0), ([0.2, 0.2, 0.2, 0.2], 1.0), ([-0.1, None], 1.0)],
    ids=["one alone", "already over a half", "four alike", "nothing"],
)
def test_where_no_power_will_do_the_nearest_and_smallest_is_taken(rho, power):
    assert adaptive_power(rho) == power


@given(correlations, powers)
def test_weights_are_shares(found, power):
    weights = reweigh(found, power).weights
    assert math.fsum(weights) == pytest.approx(1)
    assert all(weight >= 0 for weight in weights)


@given(correlations, powers, st.floats(0.01, 1))
def test_weights_do_not_depend_on_the_size_of_all_correlations_together(found, power, factor):
    scaled = [value * factor for value in found]
    assert reweigh(scaled, power).weights == pytest.approx(reweigh(found, power).weights)


@given(correlations, powers)
def test_a_higher_correlation_never_has_a_lower_weight(found, power):
    weights = reweigh(found, power).weights
    pairs = sorted(zip(found, weights, strict=True))
    assert all(a[1] <= b[1] + 1e-12 for a, b in pairwise(pairs))


@given(correlations.filter(lambda found: any(rho > 0 for rho in found)), powers, rho)
def test_what_does_not_correlate_positively_gets_nothing_and_changes_nothing(found, power, other):
    weights = reweigh([*found, -abs(other)], power).weights
    assert weights[-1] == 0
    assert weights[:-1] == pytest.approx(reweigh(found, power).weights)


@given(st.lists(st.one_of(st.none(), st.floats(-1, 0)), min_size=1, max_size=9), powers)
def test_where_nothing_is_positive_all_weights_are_equal_and_it_says_so(found, power):
    weighting = reweigh(found, power)
    assert weighting.uniform
    assert weighting.weights == (1 / len(found),) * len(found)


def test_a_high_power_of_a_small_correlation_does_not_vanish():
    assert reweigh([1e-200, 1e-200], 3.0).weights == (0.5, 0.5)


def test_a_correlation_that_is_not_defined_counts_as_none_at_all():
    assert reweigh([0.3, None, 0.3]).weights == (0.5, 0, 0.5)
