"""n-gram entropy, against numbers worked out elsewhere and the laws that it must keep."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.metrics.diversity import ngram_entropy

texts = st.lists(st.text(alphabet="ab c", max_size=12), min_size=1, max_size=6)
orders = st.integers(1, 3)


def test_it_equals_the_golden_numbers(golden):
    for case in golden["ngram_entropy"]["cases"]:
        for n, expected in case["expected"].items():
            found = ngram_entropy(case["group"], int(n))
            assert found == pytest.approx(expected, abs=1e-9), (case["name"], n)


def test_a_short_response_is_one_item_whatever_the_order():
    assert ngram_entropy(["Sure .", "yes"], 3) == pytest.approx(math.log(2))


def test_case_tells_words_apart():
    assert ngram_entropy(["a", "A"], 1) == pytest.approx(math.log(2))


def test_nothing_said_has_no_entropy_rather_than_none_at_all():
    assert ngram_entropy([], 1) is None
    assert ngram_entropy(["", "  \t"], 2) is None
    assert math.copysign(1, ngram_entropy(["same", "same"], 1)) == 1.0


@given(texts, orders)
def test_it_lies_between_zero_and_the_logarithm_of_the_number_of_items(group, n):
    found = ngram_entropy(group, n)
    if found is not None:
        words = sum(len(text.strip().split(" ")) for text in group)
        assert -1e-12 <= found <= math.log(words) + 1e-12


@given(texts, orders, st.randoms(use_true_random=False))
def test_the_order_of_responses_and_saying_all_twice_change_nothing(group, n, random):
    shuffled = random.sample(group, len(group))
    found = ngram_entropy(group, n)
    assert ngram_entropy(shuffled, n) == (None if found is None else pytest.approx(found))
    assert ngram_entropy(group * 2, n) == (None if found is None else pytest.approx(found))
