"""GRADE learns like the topic graph (`learners/topic_graph.py`), and reads sentence vectors too.

The loss is the margin of the scores of the response that was given and of a wrong one. The vectors
of the last turns, as one, and of the responses are made before the training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from dialeval.models.grade import GradeConfig
from dialeval.models.pair_scorer import last_words
from dialeval.training.examples.pair_corpus import Pair
from dialeval.training.examples.pair_vectors import PairVectors, embed, pair_vectors
from dialeval.training.examples.sampling import Numbers
from dialeval.training.learners.topic_graph import (
    Scored,
    TopicData,
    TopicGraphLearner,
    TopicPairs,
)
from dialeval.training.recipe import Progress


@dataclass(frozen=True)
class GradePairs(TopicPairs):
    """Keywords and sentence vectors, row by row."""

    vectors: PairVectors


class GradeLearner(TopicGraphLearner):
    """Right responses against wrong ones, by topics and by text."""

    def _score(self, pairs: TopicPairs, rows: Numbers, wrong: Numbers) -> Scored:
        assert isinstance(pairs, GradePairs)
        topics = [*pairs.topics(rows, rows), *pairs.topics(rows, wrong)]
        context = pairs.vectors.queries[rows]
        responses = pairs.vectors.responses
        logits = self.network(
            *self._tables.graphs(topics),
            torch.cat([context, context]),
            torch.cat([responses[rows], responses[wrong]]),
        )
        return Scored(*logits.chunk(2))


def add_vectors(topics: TopicData, config: GradeConfig, progress: Progress) -> TopicData:
    """Returns the data with the sentence vectors of every pair. Texts are those that other recipes
    embed, the last words of each utterance, so that a corpus is embedded once for all."""
    texts = [last_words(text, config.truncate_words) for text in topics.corpus.texts]
    different = list(dict.fromkeys(texts))
    places = {text: place for place, text in enumerate(different)}
    progress.say(f"vectors of {len(different):,} texts")
    with progress.counting("vectors") as count:
        vectors = embed(different, config.encoder, progress=count)
    of_text = [places[text] for text in texts]

    def with_vectors(found: TopicPairs, of_corpus: Sequence[Pair]) -> GradePairs:
        pairs = [
            Pair(
                tuple(of_text[number] for number in pair.context[-config.turns :]),
                of_text[pair.response],
            )
            for pair in of_corpus
        ]
        own = pair_vectors(pairs, vectors, "weighted")
        return GradePairs(found.contexts, found.responses, found.sampler, own)

    corpus = topics.corpus
    return replace(
        topics,
        train=with_vectors(topics.train, corpus.train),
        validation=with_vectors(topics.validation, corpus.validation),
        test=with_vectors(topics.test, corpus.test),
    )
