from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dialeval.agreement.table import pairwise_accuracy

items = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), min_size=2, max_size=12)


def accuracy(scores, human, epsilon):
    """acc_eq from its definition."""

    def order(a, b, tied):
        return 0 if abs(a - b) <= tied else (1 if a > b else -1)

    pairs = list(combinations(range(len(scores)), 2))
    right = [order(scores[i], scores[j], epsilon) == order(human[i], human[j], 0) for i, j in pairs]
    return sum(right) / len(pairs)


@given(items)
def test_no_other_epsilon_does_better(pairs):
    scores, human = ([float(v) for v in side] for side in zip(*pairs, strict=True))
    assume(len(set(human)) > 1)
    candidates = [0.0, *(abs(a - b) for a, b in combinations(scores, 2))]
    best = max(accuracy(scores, human, epsilon) for epsilon in candidates)
    found = pairwise_accuracy(scores, human)
    assert found.value == pytest.approx(best)
    assert found.value == pytest.approx(accuracy(scores, human, found.epsilon))
    assert found.uncalibrated == pytest.approx(accuracy(scores, human, 0.0))
    smallest = min(e for e in candidates if accuracy(scores, human, e) > best - 1e-9)
    assert found.epsilon == smallest


def test_by_hand():
    """People tie the first two; the metric is .1 apart there, at least .4 elsewhere."""
    found = pairwise_accuracy([0.5, 0.6, 1.0], [1.0, 1.0, 2.0])
    assert found.uncalibrated == pytest.approx(2 / 3)
    assert (found.value, found.epsilon) == (pytest.approx(1.0), pytest.approx(0.1))
    assert (found.n_pairs, found.human_ties, found.metric_ties) == (3, 1, 1)


def test_within_groups_is_the_mean_over_groups_with_one_epsilon():
    scores, human = [1.0, 2.0, 1.0, 2.0, 3.0, 9.0], [1.0, 2.0, 3.0, 2.0, 1.0, 5.0]
    found = pairwise_accuracy(scores, human, groups=list("aabbbc"), epsilon=0.0)
    assert found.value == pytest.approx((1.0 + 0.0) / 2)
    assert (found.n_pairs, found.n_groups) == (4, 2)


def test_missing_items_are_left_out_with_their_groups():
    found = pairwise_accuracy([1.0, None, 2.0, 3.0], [1.0, 2.0, None, 4.0], list("abba"))
    assert (found.value, found.n, found.n_missing, found.n_groups) == (1.0, 2, 2, 1)


def test_nothing_to_compare_has_a_reason():
    found = pairwise_accuracy([1.0, None], [1.0, 2.0])
    assert (found.value, found.epsilon, found.reason) == (None, None, "no two items to compare")


def test_many_pairs_are_drawn_and_come_near_the_whole():
    rng = np.random.default_rng(6)
    human = rng.integers(0, 5, size=600).astype(np.float64)
    scores = human + rng.normal(size=600)
    whole = pairwise_accuracy(scores, human)
    part = pairwise_accuracy(scores, human, rng=rng, most_pairs=60_000)
    assert (whole.drawn, part.drawn, part.n_pairs) == (False, True, 60_000)
    assert part.value == pytest.approx(whole.value, abs=0.01)
    with pytest.raises(ValueError, match="pass a generator"):
        pairwise_accuracy(scores, human, most_pairs=10)


def test_where_people_see_no_difference_nobody_can_be_right():
    found = pairwise_accuracy([1.0, 2.0, 3.0], [4.0, 4.0, 4.0])
    assert (found.value, found.reason, found.n) == (None, "constant", 3)
