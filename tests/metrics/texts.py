"""Samples and random texts for the tests of metrics."""

from __future__ import annotations

from hypothesis import strategies as st

from dialeval.metric import Metric
from dialeval.sample import Sample
from dialeval.scores import Score

WORDS = "the a cat cats dog dogs sat sits on mat and I You you don't it's running ran big large"
MARKS = "purchase buy car auto . , ! ? ... 3.14 1,000 你好 été U.S. &amp; - ( ) u n k"
VOCABULARY = f"{WORDS} {MARKS}".split()

sentences = st.lists(st.sampled_from(VOCABULARY), max_size=14).map(" ".join)
texts = st.one_of(sentences, sentences, st.text(max_size=40))
references = st.lists(texts, min_size=1, max_size=3).map(tuple)
pairs = st.tuples(texts, references)
corpora = st.lists(pairs, min_size=1, max_size=6)


def sample(response: str, *references: str) -> Sample:
    return Sample("s", response=response, references=references)


def score(metric: Metric, response: str, *references: str) -> Score:
    return metric.score(sample(response, *references), ())


def pooled(metric: Metric, corpus: list[tuple[str, tuple[str, ...]]]) -> Score:
    pool = metric.pool()
    assert pool is not None
    for response, references in corpus:
        pool.add(metric.score(sample(response, *references), ()))
    return pool.result()


def reference_columns(corpus: list[tuple[str, tuple[str, ...]]]) -> list[list[str | None]]:
    """sacreBLEU's form: the first references of all responses, then the second, None for none."""
    most = max(len(references) for _, references in corpus)
    return [
        [references[i] if i < len(references) else None for _, references in corpus]
        for i in range(most)
    ]
