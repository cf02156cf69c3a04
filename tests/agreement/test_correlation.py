import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.agreement.correlation import rank, spearman

stats = pytest.importorskip("scipy.stats", reason="scipy is the oracle here")

grades = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=30)


@given(grades)
def test_spearman_equals_scipy_with_ties(pairs):
    x, y = ([float(v) for v in side] for side in zip(*pairs, strict=True))
    found = spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert (found.value, found.reason) == (None, "constant")
    else:
        assert found.value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


@given(st.lists(st.integers(0, 9), min_size=1))
def test_ranks_equal_scipy(values):
    array = np.array(values, dtype=np.float64)
    np.testing.assert_array_equal(rank(array), stats.rankdata(array))


def test_missing_sides_are_left_out_and_counted():
    found = spearman([1.0, None, 2.0, 3.0], [1.0, 5.0, 2.0, 3.0])
    assert (found.value, found.n, found.n_missing) == (pytest.approx(1.0), 3, 1)
    assert spearman([1.0, 2.0], [1.0, 2.0]).reason == "fewer than 3 pairs"
