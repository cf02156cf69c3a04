"""Clipped matches against their definition: counts of all n-grams, the smaller of both."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dialeval.metrics.word_overlap import character_matches, word_matches

few_letters = st.text("ab .", max_size=24)


def by_definition(units, references, order) -> int:
    """Of a text and several references, any sequences; a reference's n-grams clip by the most."""

    def ngrams(text):
        return Counter(tuple(text[i : i + order]) for i in range(len(text) - order + 1))

    most = Counter()
    for reference in references:
        most |= ngrams(reference)
    return (ngrams(units) & most).total()


@given(few_letters, few_letters, st.integers(1, 8))
def test_characters_are_matched_by_definition(text, reference, orders):
    expected = [by_definition(text, [reference], order) for order in range(1, orders + 1)]
    assert character_matches(text, reference, orders) == expected


@given(few_letters, st.lists(few_letters, min_size=1, max_size=3), st.integers(1, 5))
def test_words_are_matched_by_definition(text, references, orders):
    expected = [by_definition(text, references, order) for order in range(1, orders + 1)]
    found = word_matches(list(text), [list(reference) for reference in references], orders)
    assert found == expected


def test_long_texts_take_no_more_than_their_length():
    """A hundred thousand letters that repeat: quadratic ways would take minutes."""
    text = "ab" * 50_000
    assert character_matches(text, text, 6) == [100_000 - n for n in range(6)]
