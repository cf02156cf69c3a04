"""distinct-n, against its definition: Python sets of tuples."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics.texts import pooled, score, texts

from dialeval.metrics.distinct import Distinct, DistinctPool


def by_definition(responses: list[str], n: int) -> tuple[int, int]:
    """Different n-grams and all n-grams."""
    ngrams = []
    for response in responses:
        words = response.split()
        ngrams += [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
    return len(set(ngrams)), len(ngrams)


def test_golden_corpus_is_all_different(golden):
    case = golden["distinct_n"]
    result = pooled(Distinct(n=1), [(response, ()) for response in case["responses"]])
    assert result.value == case["distinct_1"]


def test_a_stutter_counted_by_hand():
    # no no no: 1 of 3 words, 1 of 2 bigrams, the only trigram.
    found = score(Distinct(), "no no no")
    assert found.parts == {"distinct-1": 1 / 3, "distinct-2": 1 / 2, "distinct-3": 1.0}
    assert found.value == 1 / 2


def test_the_same_answer_to_everyone_ruins_the_pool_but_not_the_single_score():
    responses = ["I do not know"] * 50
    assert score(Distinct(), responses[0]).value == 1.0
    assert pooled(Distinct(), [(r, ()) for r in responses]).value == 3 / 150


def test_too_short_for_the_order_asked_for_is_no_score():
    assert score(Distinct(n=2), "yes").value is None
    assert score(Distinct(n=2), "yes").note == "too short"
    assert score(Distinct(n=1), "").note == "too short"


def test_an_order_without_ngrams_is_left_out():
    assert dict(score(Distinct(n=1), "yes").parts) == {"distinct-1": 1.0}


def test_case_matters_unless_told_otherwise():
    assert score(Distinct(n=1), "No no").value == 1.0
    assert score(Distinct(n=1, lowercase=True), "No no").value == 0.5


@given(texts)
def test_a_response_follows_the_definition(response):
    found = score(Distinct(n=1), response)
    for n in (1, 2, 3):
        unique, total = by_definition([response], n)
        assert found.parts.get(f"distinct-{n}") == (unique / total if total else None)


@given(st.lists(texts, max_size=12), st.integers(1, 40))
def test_a_pool_follows_the_definition_whatever_the_batch(responses, words_per_batch):
    pool = DistinctPool(Distinct(n=1), words_per_batch)
    for response in responses:
        pool.add(score(Distinct(), response))
    found = pool.result()
    for n in (1, 2, 3):
        unique, total = by_definition(responses, n)
        assert found.parts.get(f"distinct-{n}") == (unique / total if total else None)


@given(st.lists(texts, max_size=8).flatmap(lambda t: st.tuples(st.just(t), st.permutations(t))))
def test_a_pool_does_not_depend_on_the_order(both):
    first, second = both
    assert pooled(Distinct(), [(r, ()) for r in first]) == pooled(
        Distinct(), [(r, ()) for r in second]
    )


def test_a_pool_can_be_read_before_it_is_full():
    pool = Distinct(n=1).pool()
    pool.add(score(Distinct(), "a a"))
    assert pool.result().value == 1 / 2
    pool.add(score(Distinct(), "a b"))
    assert pool.result().value == 2 / 4


def test_word_order_matters_to_the_hash():
    # "a b", "b a", "a a", "b b" are four bigrams.
    assert pooled(Distinct(), [(r, ()) for r in ("a b", "b a", "a a", "b b")]).value == 1.0


def test_large_pools_are_exact_and_small():
    """30,000 responses without a repeated word: 840,000 n-grams in sets would take 150 MB."""
    pool = Distinct().pool()
    tracemalloc.start()
    for i in range(30_000):
        pool.add(score(Distinct(), " ".join(f"w{10 * i + j}" for j in range(10))))
    found = pool.result()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert dict(found.parts) == {"distinct-1": 1.0, "distinct-2": 1.0, "distinct-3": 1.0}
    assert peak < 60e6


@pytest.mark.parametrize("seed", ["1", "2"])
def test_hashes_are_the_same_in_every_process(seed):
    program = "from dialeval.metrics.distinct import _hash_word; print(_hash_word('héllo'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    # b2sum -l 64 of the UTF-8 bytes, read as a little-endian number.
    assert int(done.stdout) == int.from_bytes(bytes.fromhex(B2SUM_OF_HELLO), "little")


B2SUM_OF_HELLO = "135dd36ec231afcb"
