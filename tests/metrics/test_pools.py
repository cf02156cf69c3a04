"""A pool may be filled in parts, by several processes, in any order: the number is the same."""

from __future__ import annotations

import pickle
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics.texts import pairs, sample

from dialeval.metric import Pool
from dialeval.registry import make_metric

POOLED = [
    "bleu",
    "bleu:n=2,smoothing=add-k",
    "chrf",
    "chrf:word_order=2",
    "distinct",
    "distinct:n=1",
]
POOLED += ["marginal-diversity"]

parted = st.lists(st.lists(pairs, max_size=4), min_size=1, max_size=4)


def filled(metric, corpus) -> Pool:
    pool = metric.pool()
    for response, references in corpus:
        pool.add(metric.score(sample(response, *references), ()))
    return pool


def merged(first: Pool, second: Pool) -> Pool:
    """As a worker sends the second one."""
    first.merge(pickle.loads(pickle.dumps(second)))
    return first


@pytest.mark.parametrize("spec", POOLED)
@given(parts=parted, random=st.randoms(use_true_random=False))
def test_merged_parts_are_the_whole_whatever_their_order(spec, parts, random):
    metric = make_metric(spec)
    expected = filled(metric, [pair for part in parts for pair in part]).result()
    shuffled = random.sample(parts, len(parts))
    assert reduce(merged, [filled(metric, part) for part in shuffled]).result() == expected


@pytest.mark.parametrize("spec", POOLED)
@given(st.tuples(*[st.lists(pairs, max_size=3)] * 3))
def test_merging_is_associative(spec, corpora):
    metric = make_metric(spec)
    a, b, c = (filled(metric, corpus) for corpus in corpora)
    left_first = merged(merged(a, b), c).result()
    a, b, c = (filled(metric, corpus) for corpus in corpora)
    assert merged(a, merged(b, c)).result() == left_first


@pytest.mark.parametrize("spec", POOLED)
def test_a_pool_that_was_merged_can_be_filled_on(spec):
    metric = make_metric(spec)
    corpus = [("the cat sat on the mat", ("a cat sat on a mat",)), ("yes , it did", ("it did",))]
    more = [("no cat sat there", ("the cat sat there",))]
    pool = merged(filled(metric, corpus), filled(metric, corpus))
    for response, references in more:
        pool.add(metric.score(sample(response, *references), ()))
    assert pool.result() == filled(metric, [*corpus, *corpus, *more]).result()


def test_a_merged_pool_leaves_the_other_as_it_was():
    metric = make_metric("distinct:n=1")
    pool, other = filled(metric, [("a b", ())]), filled(metric, [("b c", ())])
    pool.merge(other)
    pool.add(metric.score(sample("d e"), ()))
    assert pool.result().value == 5 / 6
    assert other.result().value == 1.0
