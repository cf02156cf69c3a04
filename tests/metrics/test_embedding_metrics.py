"""The three metrics of word vectors: golden numbers, laws, and what PONE's code does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from metrics.texts import sample

from dialeval.check import metric_checks
from dialeval.errors import UsageError
from dialeval.metrics.word_vectors import EmbeddingAverage, GreedyMatching, VectorExtrema
from dialeval.registry import make_metric
from dialeval.text import treebank_words

METRICS = [EmbeddingAverage, VectorExtrema, GreedyMatching]
NAN = [math.nan] * 3
VECTORS = {
    "cat": [0.9, -0.3, 0.4],
    "dog": [0.8, -0.1, 0.5],
    "sat": [-0.2, 0.7, 0.3],
    "ran": [-0.4, 0.6, -0.5],
    "nothing": [0.0, 0.0, 0.0],
}
known_texts = st.lists(st.sampled_from([*VECTORS][:4]), min_size=1, max_size=6).map(" ".join)
some_texts = st.lists(st.sampled_from([*VECTORS, "zzz"]), max_size=6).map(" ".join)


def score(metric, response, *references, vectors=VECTORS):
    questions = metric.ask(sample(response, *references))
    answers = [
        np.array([vectors.get(w, NAN) for w in question.words]).reshape(-1, 3)
        for question in questions
    ]
    return metric.score(sample(response, *references), answers)


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ("embedding-average", "embedding_average"),
        ("embedding-average:mode=released", "embedding_average"),
        ("vector-extrema", "vector_extrema_standard(|.|)"),
        ("vector-extrema:mode=released", "vector_extrema_PONE(max only)"),
        ("greedy-matching", "greedy_matching"),
        ("greedy-matching:mode=released", "greedy_matching"),
    ],
)
def test_the_golden_numbers(golden, spec, key):
    """They stem from a table where the unknown word `zzz` has the vector of `<unk>`."""
    expected = golden["embedding_metrics"]
    vectors = expected["vectors"] | {"zzz": expected["vectors"]["<unk>"]}
    found = score(make_metric(spec), expected["hypothesis"], expected["reference"], vectors=vectors)
    assert found.value == pytest.approx(expected[key], abs=1e-10)


def test_extrema_and_maxima_differ_where_the_farthest_component_is_negative():
    vectors = {"up": [1.0, 1.0, 1.0], "down": [-2.0, 0.5, 0.5]}
    # paper: (-2, 1, 1) against (1, 1, 1) is 0. released: both are (1, 1, 1).
    assert score(VectorExtrema(), "up down", "up", vectors=vectors).value == pytest.approx(0)
    released = VectorExtrema(mode="released")
    assert score(released, "up down", "up", vectors=vectors).value == pytest.approx(1)


def test_greedy_matching_by_hand():
    """cos 45° = .7071: one of the two words of the response has no counterpart but that."""
    vectors = {"east": [1.0, 0.0, 0.0], "north": [0.0, 1.0, 0.0], "between": [1.0, 1.0, 0.0]}
    found = score(GreedyMatching(), "east east between", "east", vectors=vectors).value
    assert found == pytest.approx(((1 + 1 + math.sqrt(0.5)) / 3 + 1) / 2)


@pytest.mark.parametrize("cls", METRICS)
@given(first=some_texts, second=some_texts)
def test_response_and_reference_can_be_exchanged(cls, first, second):
    there, back = score(cls(), first, second), score(cls(), second, first)
    assert there.note == back.note
    if there.value is not None:
        assert there.value == pytest.approx(back.value, abs=1e-12)


@pytest.mark.parametrize("cls", METRICS)
@given(first=known_texts, second=known_texts, factor=st.floats(1e-3, 1e3))
def test_the_length_of_the_vectors_does_not_matter(cls, first, second, factor):
    scaled = {word: [factor * x for x in vector] for word, vector in VECTORS.items()}
    expected = score(cls(), first, second).value
    found = score(cls(), first, second, vectors=scaled).value
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("cls", METRICS)
@given(text=known_texts)
def test_a_copy_scores_1(cls, mode, text):
    assert score(cls(mode=mode), text, text).value == pytest.approx(1)


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("cls", METRICS)
@given(first=some_texts, second=some_texts)
def test_scores_are_cosines(cls, mode, first, second):
    value = score(cls(mode=mode), first, second).value
    assert value is None or -1 <= value <= 1


@pytest.mark.parametrize("cls", METRICS)
@given(text=known_texts, data=st.data())
def test_the_order_of_words_does_not_matter(cls, text, data):
    shuffled = " ".join(data.draw(st.permutations(text.split())))
    assert score(cls(), shuffled, "cat ran").value == pytest.approx(
        score(cls(), text, "cat ran").value
    )


@pytest.mark.parametrize("cls", METRICS)
@given(response=known_texts, references=st.lists(known_texts, min_size=2, max_size=4))
def test_of_several_references_the_best_counts(cls, response, references):
    alone = [score(cls(), response, reference).value for reference in references]
    assert score(cls(), response, *references).value == max(alone)


@pytest.mark.parametrize("cls", METRICS)
@given(first=known_texts, second=known_texts)
def test_unknown_words_and_zero_vectors_say_nothing(cls, first, second):
    expected = score(cls(), first, second).value
    found = score(cls(), f"zzz {first} nothing", f"{second} yyy")
    assert found.value == pytest.approx(expected)
    words = len(first.split()) + 2
    assert found.parts["unknown"] == pytest.approx(1 / words)


@pytest.mark.parametrize("cls", METRICS)
@pytest.mark.parametrize(
    ("response", "reference"), [("zzz", "cat"), ("cat", "zzz yyy"), ("", "cat"), ("cat", "")]
)
def test_without_a_known_word_there_is_no_score(cls, response, reference):
    assert score(cls(), response, reference).note == "no known words"
    assert score(cls(), "cat", reference, "cat").value == pytest.approx(1)


def test_the_mean_of_opposite_words_has_no_cosine():
    vectors = {"yes": [1.0, 2.0, 3.0], "no": [-1.0, -2.0, -3.0]}
    assert score(EmbeddingAverage(), "yes no", "yes", vectors=vectors).note == "zero vector"


class TestReleased:
    """PONE's code, read at gmftbyGMFTBY/PONE 9e3762a, hybird.py."""

    @pytest.mark.parametrize("cls", METRICS)
    @given(first=some_texts, second=some_texts)
    def test_the_score_is_that_of_a_plain_loop(self, cls, first, second):
        unknown = np.random.RandomState(123).rand(3)
        response, reference = (
            [np.array(VECTORS.get(word, unknown)) for word in text.split()] or [unknown]
            for text in (first, second)
        )
        if cls is EmbeddingAverage:
            expected = pone_cosine(sum(reference), sum(response))
        elif cls is VectorExtrema:
            expected = pone_cosine(np.max(reference, 0), np.max(response, 0))
        else:
            expected = pone_greedy(reference, response)
        # A sum that is zero but for rounding can fall on either side of the test for zero.
        assume(not np.isclose(sum(reference), 0).any() or cls is not EmbeddingAverage)
        assume(not np.isclose(sum(response), 0).any() or cls is not EmbeddingAverage)
        found = score(cls(mode="released"), first, second)
        assert found.value == pytest.approx(expected, abs=1e-12)

    def test_one_zero_component_makes_it_0_or_1(self, golden):
        assert "1.0 (when both" in golden["embedding_metrics"]["PONE_zero_component_quirk"]
        vectors = {"a": [0.0, 1.0, 1.0], "b": [1.0, 1.0, 0.0], "c": [1.0, 1.0, 1.0]}
        for cls in (EmbeddingAverage, VectorExtrema):
            metric = cls(mode="released")
            assert score(metric, "a", "b", vectors=vectors).value == 1
            assert score(metric, "a", "c", vectors=vectors).value == 0
        # Both have a zero: 1 one way. They are not equal: 0 the other way.
        assert score(GreedyMatching(mode="released"), "a", "b", vectors=vectors).value == 0.5

    def test_case_and_punctuation_are_left_as_they_are(self):
        question, *_ = EmbeddingAverage(mode="released").ask(sample("Hi, you. Hi,", "x"))
        assert question.words == ("Hi,", "you.")

    def test_another_seed_is_another_vector_for_unknown_words(self):
        one, other = (
            score(EmbeddingAverage(mode="released", seed=seed), "zzz", "cat").value
            for seed in (123, 10)
        )
        assert one != other


def pone_cosine(x, y):
    if not x.all() or not y.all():
        return 1.0 if x.all() == y.all() else 0.0
    return float(x @ y / (np.sqrt(x @ x) * np.sqrt(y @ y)))


def pone_greedy(xs, ys):
    def back(y, x):
        if not x.all() or not y.all():
            return 1.0 if (x == y).all() else 0.0
        return pone_cosine(x, y)

    forth = np.mean([max(pone_cosine(x, y) for y in ys) for x in xs])
    return float(forth + np.mean([max(back(y, x) for x in xs) for y in ys])) / 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't. It's U.S. made!", "I do n't . It 's U.S. made !"),
        ("You can’t say “no”", "You ca n't say “ no ”"),
        ("so , i 'm sure it does n't", "so , i 'm sure it does n't"),
        ("A well-known 3.14, 5,000.", "A well-known 3.14 , 5,000 ."),
        ("rock'n'roll :-)", "rock ' n ' roll : - )"),
        ("你好 world...", "你好 world . . ."),
    ],
)
def test_words_are_those_of_the_treebank(text, words):
    assert treebank_words(text) == words.split()


def test_each_different_word_is_asked_for_once_and_in_lower_case():
    question, reference = EmbeddingAverage().ask(sample("The cat, the CAT", "a"))
    assert question.words == ("the", "cat", ",")
    assert reference.words == ("a",)
    [plain, _] = EmbeddingAverage(tokenize="none", lowercase=False).ask(sample("The cat, the", "a"))
    assert plain.words == ("The", "cat,", "the")


@pytest.mark.parametrize(
    "spec",
    [
        "greedy-matching:mode=released,lowercase=false",
        "greedy-matching:mode=released,tokenize=none",
        "greedy-matching:seed=1",
    ],
)
def test_options_that_would_be_ignored_are_refused(spec):
    with pytest.raises(UsageError, match="metric 'greedy-matching': mode="):
        make_metric(spec)


def test_the_signature_says_what_was_done_to_the_words():
    paper, released = (EmbeddingAverage(mode=mode).signature() for mode in ("paper", "released"))
    assert "tokenize:treebank|lowercase:true|seed:unused" in str(paper)
    assert "tokenize:none|lowercase:false|seed:123" in str(released)


def random_vectors(question):
    def vector(word):
        draw = np.random.default_rng(list(word.encode("utf-8", "surrogatepass")))
        return draw.standard_normal(5) if draw.random() < 0.8 else np.full(5, math.nan)

    return np.array([vector(word) for word in question.words]).reshape(-1, 5)


@pytest.mark.parametrize(
    "check",
    [
        check
        for cls in METRICS
        for mode in ("paper", "released")
        for check in metric_checks(cls(mode=mode), answer=random_vectors)
    ],
    ids=str,
)
def test_the_checks_for_all_metrics(check):
    check()
