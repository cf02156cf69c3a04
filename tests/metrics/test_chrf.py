"""chrF against sacreBLEU."""

from __future__ import annotations

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from metrics.texts import corpora, pairs, pooled, reference_columns, score, sentences

from dialeval.metrics.chrf import Chrf

settings = st.fixed_dictionaries(
    {
        "char_order": st.integers(1, 6),
        "word_order": st.sampled_from([0, 2]),
        "beta": st.integers(1, 3),
        "lowercase": st.booleans(),
    }
)


@given(pairs)
def test_the_defaults_are_those_of_sentence_chrf(pair):
    response, references = pair
    expected = sacrebleu.sentence_chrf(response, references).score
    assert score(Chrf(), response, *references).value == expected


@given(pairs, settings)
def test_a_response_gets_sacrebleus_sentence_chrf(pair, options):
    response, references = pair
    theirs = dict(options)
    lowercase = theirs.pop("lowercase")
    if lowercase:
        response, references = response.lower(), tuple(text.lower() for text in references)
    expected = sacrebleu.sentence_chrf(response, references, **theirs).score
    assert score(Chrf(**options), pair[0], *pair[1]).value == expected


@given(corpora, st.sampled_from([0, 2]))
def test_a_system_gets_sacrebleus_corpus_chrf(corpus, word_order):
    expected = sacrebleu.corpus_chrf(
        [response for response, _ in corpus], reference_columns(corpus), word_order=word_order
    )
    assert pooled(Chrf(word_order=word_order), corpus).value == expected.score


@given(corpora.flatmap(lambda c: st.tuples(st.just(c), st.permutations(c))))
def test_a_pool_does_not_depend_on_the_order(both):
    assert pooled(Chrf(), both[0]) == pooled(Chrf(), both[1])


@given(sentences.filter(str.strip))
def test_a_copy_of_the_reference_scores_100(text):
    assert score(Chrf(), text, "something else", text).value == pytest.approx(100)


@given(pairs.flatmap(lambda p: st.tuples(st.just(p), st.permutations(p[1]))))
def test_the_order_of_references_does_not_matter(case):
    (response, references), permuted = case
    assert score(Chrf(), response, *references) == score(Chrf(), response, *permuted)
