import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.augment import Query, augment_queries, make_augmenter
from dialeval.augment.eda import (
    STOP_WORDS,
    WordList,
    delete_words,
    insert_words,
    letters_only,
    replace_words,
    swap_words,
    synonyms,
)
from dialeval.lexicon import load_wordnet

TEXT = "She bought an old house near the office, and started a small shop (really)!"
WORDS = st.lists(st.sampled_from(["the", "big", "dog", "bought", "a", "quickly"]), min_size=1)
SEEDS = st.integers(0, 2**32)

load_wordnet()  # once, outside of the time that a single example may take


def generator(seed=0):
    return np.random.default_rng(seed)


def augment(text, spec="eda"):
    return make_augmenter(spec).augment([Query("q", text)])[0]


@given(st.text())
def test_cutting_into_words_loses_nothing_but_spacing(text):
    assert str(WordList.of(text)).split() == text.split()


@given(WORDS, SEEDS)
def test_a_swap_keeps_the_words(words, seed):
    text = WordList.of(" ".join(words))
    swapped = swap_words(text, 0.1, generator(seed))
    assert Counter(swapped.words) == Counter(words)
    changed = sum(a != b for a, b in zip(words, swapped.words, strict=True))
    assert changed <= 2 * max(1, int(0.1 * len(words)))


@given(WORDS, SEEDS)
def test_a_deletion_keeps_the_order_and_at_least_one_word(words, seed):
    kept = delete_words(WordList.of(" ".join(words)), 0.5, generator(seed)).words
    remaining = iter(words)
    assert kept
    assert all(word in remaining for word in kept)


@given(WORDS, SEEDS)
def test_an_insertion_adds_n_synonyms(words, seed):
    text = WordList.of(" ".join(words))
    added = Counter(insert_words(text, 0.1, generator(seed)).words) - Counter(words)
    has_synonyms = any(synonyms(word) for word in words)
    assert added.total() == (max(1, int(0.1 * len(words))) if has_synonyms else 0)


@given(WORDS, SEEDS)
def test_a_replacement_takes_n_words_and_no_stop_words(words, seed):
    replaced = replace_words(WordList.of(" ".join(words)), 0.1, generator(seed)).words
    changed = {old for old, new in zip(words, replaced, strict=True) if old != new}
    assert len(changed) <= max(1, int(0.1 * len(words)))
    assert not changed & STOP_WORDS


def test_a_word_is_deleted_with_the_published_probability():
    text = WordList.of("word " * 20_000)
    share = 1 - len(delete_words(text, 0.1, generator()).words) / 20_000
    assert share == pytest.approx(0.1, abs=0.01)


def test_synonyms_are_the_lemmas_of_all_synsets():
    # WordNet 3.0: car, auto, automobile, machine, motorcar; railcar, railway car, railroad car;
    # gondola; elevator car; cable car.
    assert synonyms("car") == (
        "auto", "automobile", "cable car", "elevator car", "gondola", "machine", "motorcar",
        "railcar", "railroad car", "railway car",
    )  # fmt: skip


def test_nine_variants_of_at_most_three_per_operation():
    made = augment(TEXT)
    counts = Counter(paraphrase.how for paraphrase in made)
    assert len(made) == 9
    assert set(counts) <= {"eda replace", "eda insert", "eda swap", "eda delete"}
    assert max(counts.values()) <= 3
    assert len(augment(TEXT, "eda:variants=5")) == 5


def test_an_operation_can_be_left_out():
    made = augment(TEXT, "eda:replace=0,insert=0,delete=0")
    assert {paraphrase.how for paraphrase in made} == {"eda swap"}


def test_punctuation_stays_where_it_was():
    for paraphrase in augment(TEXT, "eda:delete=0,insert=0"):
        assert [c for c in paraphrase.query if c in ",()!"] == [",", "(", ")", "!"]


def test_the_draws_depend_on_seed_and_text_and_not_on_the_file():
    queries = [Query("a", TEXT), Query("b", "How are you today, my friend?")]
    there = make_augmenter("eda").augment(queries)
    back = make_augmenter("eda").augment(queries[::-1])
    assert there == back[::-1]
    assert there[0] == make_augmenter("eda").augment([Query("other", TEXT)])[0]
    assert there[0] != make_augmenter("eda", seed=1).augment(queries)[0]


CHINESE = "今天天气很好，我们去公园散步吧！"


def test_chinese_is_edited_character_by_character_and_stays_without_spaces():
    queries = augment_queries([Query("q", CHINESE)], [make_augmenter("eda:variants=20")])
    variants = next(queries).variants
    assert {variant.how for variant in variants} == {"eda swap", "eda delete"}
    for variant in variants:
        assert " " not in variant.query
        assert not Counter(variant.query) - Counter(CHINESE)
        if variant.how == "eda swap":
            changed = [a != b for a, b in zip(CHINESE, variant.query, strict=True)]
            assert sum(changed) == 2


def test_words_of_spaced_scripts_that_come_together_get_a_space():
    text = WordList.of("用Python和Java写")
    assert text.words == ("用", "Python", "和", "Java", "写")
    assert str(text) == "用Python和Java写"
    assert str(WordList(("用", "Python", "Java", "写"), ("", "", "", "", ""))) == "用Python Java写"


def test_released_mode_drops_all_but_letters():
    assert letters_only("It's 5 o'clock, well-known!") == "its oclock well known"
    for paraphrase in augment(TEXT, "eda:mode=released"):
        assert not set(paraphrase.query) - set("abcdefghijklmnopqrstuvwxyz ")


@pytest.mark.parametrize("text", ["", "?!", "  "])
def test_a_text_without_words_has_no_variants(text):
    assert augment(text) == []


def test_a_long_text_takes_time_in_proportion():
    """80 KB in one line took 16 s when every insertion looked at every word again."""
    words = ["dog", "cat", "house", "garden", "river", "speak", "travel", "happy"]

    def seconds(length: int) -> float:
        text = " ".join(words[i % 8] + ("s" if i % 3 else "") for i in range(length))
        started = time.process_time()
        assert len(augment(text)) == 9
        return time.process_time() - started

    seconds(1_300)  # the lexicon is read
    assert seconds(13_000) < 40 * seconds(1_300)


def test_a_word_that_took_the_place_of_another_may_be_replaced_in_turn():
    """As in the authors' loop, which replaces in what it has replaced."""

    class Script:
        """Words in alphabetical order, and always the first synonym."""

        def permutation(self, n):
            return np.arange(n)

        def integers(self, n):
            return 0

    # The apartment becomes a flat, and then both flats become something else.
    assert synonyms("apartment") == ("flat",)
    replaced = replace_words(WordList.of("apartment flat"), 1.0, Script())
    assert replaced.words == (synonyms("flat")[0],) * 2
