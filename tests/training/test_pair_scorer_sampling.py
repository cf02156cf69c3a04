"""Negative samplers and the label filter: golden numbers, laws, and what must never be drawn."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="needs the extra 'models'")

from dialeval.errors import UsageError
from dialeval.training.examples.sampling import (
    BM25,
    SAMPLERS,
    NegativeSampler,
    SamplerOptions,
    selection_probabilities,
    words,
)
from dialeval.training.learners.pair_scorer import Labels, filter_labels


def sampler(texts, vectors=None, **options):
    rows = np.eye(len(texts)) if vectors is None else np.asarray(vectors, dtype=float)
    return NegativeSampler(SamplerOptions(**options), texts, lambda numbers: rows[numbers])


def test_the_probabilities_are_softmax_of_cosine_by_temperature(golden):
    expected = golden["weighted_negative_sampler"]
    for temperature, shares in expected["softmax"].items():
        found = selection_probabilities(np.array(expected["cosine_sims"]), float(temperature))
        assert found == pytest.approx(shares, abs=5e-10)


def test_near_responses_are_drawn_as_often_as_the_softmax_says():
    # Cosines of the first with the others: 0.9, 0.5, 0.
    angles = np.arccos([1.0, 0.9, 0.5, 0.0])
    vectors = np.column_stack([np.cos(angles), np.sin(angles)])
    # With 2 000 candidates each of the four is there about as often: the softmax decides.
    one = sampler("abcd", vectors, candidates=2000, temperature=0.5)
    generator = np.random.default_rng(0)
    drawn = Counter(int(one.sample(generator)[0]) for _ in range(2000))
    weights = np.exp(np.array([0.9, 0.5, 0.0]) / 0.5)
    shares = [drawn[i] / 2000 for i in (1, 2, 3)]
    assert shares == pytest.approx(weights / weights.sum(), abs=0.04)


def test_with_one_candidate_the_weighted_sampler_is_the_random_one():
    vectors = np.random.default_rng(1).normal(size=(5, 3))
    one = sampler("abcde", vectors, candidates=1, temperature=0.01)
    generator = np.random.default_rng(0)
    drawn = Counter(int(one.sample(generator)[0]) for _ in range(3000))
    assert [drawn[i] / 3000 for i in range(1, 5)] == pytest.approx([0.25] * 4, abs=0.03)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("seed", range(3))
def test_no_sampler_gives_a_response_that_reads_like_the_true_one(name, seed):
    texts = ["Yes.", "yes", "YES !", "No, thanks.", "Maybe, yes.", "no thanks", "Go away."] * 3
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(len(texts), 4))
    drawn = sampler(texts, vectors, name=name, candidates=3).sample(generator)

    def letters(text):
        return "".join(filter(str.isalnum, text.lower()))

    assert all(letters(texts[i]) != letters(texts[n]) for i, n in enumerate(drawn))


def test_a_corpus_of_one_response_has_no_negatives():
    with pytest.raises(UsageError, match="with 1 different responses"):
        sampler(["Hi", "hi!"])


def test_the_middle_sampler_avoids_both_ends():
    # The row's own direction is the first axis; the others fan out over 60 responses.
    angles = np.linspace(0, np.pi / 2, 60)
    vectors = np.column_stack([np.cos(angles), np.sin(angles)])
    one = sampler([f"r{i}" for i in range(60)], vectors, name="middle")
    generator = np.random.default_rng(0)
    ranks = [int(one.sample(generator)[0]) for _ in range(400)]
    # Rank 5 of ten uniform draws (from 0): mean 6/11 of the range, ends hardly ever.
    assert np.mean(ranks) == pytest.approx(60 * 6 / 11, rel=0.08)
    assert min(ranks) > 5
    assert max(ranks) < 56


def test_the_same_generator_draws_the_same_negatives():
    vectors = np.random.default_rng(1).normal(size=(200, 4))
    for name in SAMPLERS:
        one = sampler([f"word{i} common" for i in range(200)], vectors, name=name)
        first, second = (one.sample(np.random.default_rng(7)) for _ in range(2))
        assert (first == second).all()


def test_bm25_is_the_formula():
    texts = ["a b b", "a c"]
    # idf(b) = ln(1 + (2 - 1 + .5) / (1 + .5)); f = 2, |d| = 3, mean 2.5
    idf = np.log(1 + 1.5 / 1.5)
    expected = idf * 2 * 2.2 / (2 + 1.2 * (1 - 0.75 + 0.75 * 3 / 2.5))
    assert BM25(texts).scores("b").tolist() == pytest.approx([expected, 0])


def test_bm25_negatives_share_words_with_the_response():
    texts = [f"the {word} is {i}" for word in ("cat", "dog", "fish") for i in range(120)]
    drawn = sampler(texts, name="bm25").sample(np.random.default_rng(0))
    same = [texts[i].split()[1] == texts[n].split()[1] for i, n in enumerate(drawn)]
    assert np.mean(same) > 0.95


def test_chinese_words_are_characters():
    assert words("我爱 Python") == ["我", "爱", "python"]


@pytest.mark.parametrize(
    ("case", "threshold", "doubtful"),
    [
        ("fuzzy_0.05_drop", 0.05, "drop"),
        ("fuzzy_0.2_change", 0.2, "change"),
        ("fuzzy_0.5_drop", 0.5, "drop"),
    ],
)
def test_labels_are_filtered_as_in_the_released_code(golden, case, threshold, doubtful):
    expected = golden["label_filter"]
    found = filter_labels(np.array(expected["scores"]), threshold, doubtful)
    assert found.kept.tolist() == expected[case]["kept_idx"]
    assert found.labels.tolist() == expected[case]["labels"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_equal_scores_change_no_label_and_a_flip_changes_one(scores):
    labels = filter_labels(np.array(scores), 0.5)
    assert labels.changes(labels, len(scores)) == 0
    flipped = Labels(labels.kept, np.r_[1 - labels.labels[:1], labels.labels[1:]])
    assert flipped.changes(labels, len(scores)) == 1
    fewer = Labels(labels.kept[1:], labels.labels[1:])
    assert fewer.changes(labels, len(scores)) == 1
