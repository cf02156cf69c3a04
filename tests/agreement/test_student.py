import math

import numpy as np
import pytest

from dialeval.agreement.arithmetic import (
    correlation_two_sided_p,
    incomplete_beta,
    normal_quantile,
    normal_two_sided_p,
    student_quantile,
    student_two_sided_p,
)
from dialeval.agreement.weighted_correlation import exact_kendall_p

stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle here")
special = pytest.importorskip("scipy.special")


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
