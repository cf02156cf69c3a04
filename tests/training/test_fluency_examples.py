"""Examples for the fluency sub-metric: what each rule may and may not do to a text."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dialeval.training.examples.faults import (
    SHUFFLE_DROP_REPEAT_USL_H,
    STOPWORDS,
    Word,
    drop_stopwords,
    drop_words,
    fluency_example,
    join,
    repeat_words,
    shuffle_words,
    words_of,
)

TEXT = "Well, I don't know (yet)... Shall we go to the well-known café, or stay?"

texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(["I", "the", "don't", "cat", ",", "...", "-", "well-off", "?", "(go"]))
    .map(" ".join),
)  # fmt: skip
seeds = st.integers(0, 2**32 - 1)


def spoken(words: tuple[Word, ...]) -> list[str]:
    return [word.text for word in words]


def is_subsequence(short: list[str], long: list[str]) -> bool:
    rest = iter(long)
    return all(word in rest for word in short)


def draws(text: str, n: int = 2000, **options: object) -> list[tuple[str, int]]:
    generator = np.random.default_rng(3)
    return [fluency_example(text, generator, STOPWORDS, **options) for _ in range(n)]  # type: ignore[arg-type]


def test_a_word_holds_apostrophes_and_hyphens_and_punctuation_stands_alone() -> None:
    assert spoken(words_of(TEXT)) == [
        "Well", ",", "I", "don't", "know", "(", "yet", ")", "...", "Shall", "we", "go", "to",
        "the", "well-known", "café", ",", "or", "stay", "?",
    ]  # fmt: skip


@given(texts)
def test_a_text_is_joined_as_it_was_but_for_the_width_of_its_spaces(text: str) -> None:
    assert join(words_of(text)) == " ".join(text.split())


@given(texts, st.randoms(use_true_random=False))
def test_joined_words_are_read_as_the_same_words_in_any_order(text: str, random) -> None:  # type: ignore[no-untyped-def]
    words = list(words_of(text))
    random.shuffle(words)
    assert spoken(words_of(join(words))) == spoken(tuple(words))


@given(texts, seeds)
def test_shuffling_keeps_the_words_and_changes_their_order(text: str, seed: int) -> None:
    words = words_of(text)
    assume(len({word.text.lower() for word in words}) > 1)
    shuffled = shuffle_words(words, np.random.default_rng(seed))
    assert Counter(shuffled) == Counter(words)
    assert shuffled != words


@given(texts, seeds)
def test_dropping_leaves_some_words_in_their_order(text: str, seed: int) -> None:
    words = words_of(text)
    assume(len(words) > 1)
    left = drop_words(words, np.random.default_rng(seed))
    assert 0 < len(left) < len(words)
    assert is_subsequence(spoken(left), spoken(words))


@given(texts, seeds)
def test_repeating_says_the_whole_text_and_more_of_the_same(text: str, seed: int) -> None:
    words = words_of(text)
    assume(words)
    said = repeat_words(words, np.random.default_rng(seed))
    assert len(said) > len(words)
    assert is_subsequence(spoken(words), spoken(said))
    assert set(said) == set(words)


@given(texts, seeds)
def test_a_broken_text_is_never_the_original_and_short_ones_stay_fluent(
    text: str, seed: int
) -> None:
    made, label = fluency_example(text, np.random.default_rng(seed), STOPWORDS)
    before, after = spoken(words_of(text)), spoken(words_of(made))
    if label == 0:
        assert len(before) >= 3
        assert [word.lower() for word in after] != [word.lower() for word in before]
    else:
        assert label == 1
        assert is_subsequence(after, before)
        assert not (Counter(before) - Counter(after)).keys() - _stopwords_in(before)


def _stopwords_in(words: list[str]) -> set[str]:
    return {word for word in words if word.lower() in STOPWORDS}


@given(texts, seeds)
def test_the_seed_decides(text: str, seed: int) -> None:
    one, other = (fluency_example(text, np.random.default_rng(seed), STOPWORDS) for _ in range(2))
    assert one == other


def test_half_are_fluent_and_half_of_those_untouched() -> None:
    made = draws("the cat saw the dog in the garden of the house")
    fluent = [text for text, label in made if label == 1]
    untouched = sum(
        text.startswith("the cat saw the dog in the garden of the h") for text in fluent
    )
    assert len(fluent) / len(made) == pytest.approx(0.5, abs=0.04)
    assert untouched / len(fluent) == pytest.approx(0.5 + 0.5**7, abs=0.05)


@pytest.mark.parametrize("mix", [(1 / 3, 1 / 3, 1 / 3), SHUFFLE_DROP_REPEAT_USL_H])
def test_the_three_ways_to_break_a_text_occur_as_often_as_the_mix_says(
    mix: tuple[float, float, float],
) -> None:
    words = "one two three four five six seven eight"
    lengths = Counter(
        int(np.sign(len(text.split()) - 8)) for text, label in draws(words, mix=mix) if label == 0
    )
    shares = [lengths[sign] / lengths.total() for sign in (0, -1, 1)]
    assert shares == pytest.approx(mix, abs=0.05)


def test_one_word_said_again_and_again_is_broken_by_its_number_alone() -> None:
    assert {label for _, label in draws("No no no", 200)} == {0, 1}


def test_stopwords_go_with_the_given_probability_and_others_stay() -> None:
    generator = np.random.default_rng(0)
    assert drop_stopwords(TEXT, generator, STOPWORDS, p=1) == (
        "Well, know (yet)... Shall go well-known café, stay?"
    )
    assert drop_stopwords(TEXT, generator, STOPWORDS, p=0) == TEXT
    left = [drop_stopwords("the garden", generator, STOPWORDS) for _ in range(1000)]
    assert left.count("garden") / 1000 == pytest.approx(0.5, abs=0.05)


def test_a_text_of_stopwords_alone_stays() -> None:
    assert drop_stopwords("Don’t I?", np.random.default_rng(0), STOPWORDS, p=1) == "Don’t I?"


def test_the_list_is_nltks() -> None:
    # `nltk.corpus.stopwords.words("english")` of 2017 to 2024, as its users have printed it.
    assert len(STOPWORDS) == 179
    assert {"wouldn't", "ma", "o", "y", "that'll", "yourselves"} <= STOPWORDS
    assert {"would", "could", "i'm"}.isdisjoint(STOPWORDS)
