"""`ruber`: does it fit the query, and is it near to what people said? (Tao et al., AAAI 2018)

    s_U = sigmoid( MLP [ q ; q^T M r ; r ] )      q, r: bi-GRUs over the words of query and response
    s_R = cos( v(response), v(reference) )        v: max and min over the word vectors
    s   = min( scaled s_U, scaled s_R )           or max, or their arithmetic or geometric mean

The query is the last turn before the response. The scorer of s_U was trained to tell the response
that was given from a random one (`dialeval train ruber`); it needs no references. Scales
and blends are in `blended_metric`. Without references use blend=unreferenced.

mode=released is what PONE's code does: for s_R, words are what stands between whitespace, and those
without a vector share a random one. It reads a blank response as one unknown word, where mode=paper
gives no score. s_U is that of the same scorer in both modes.

The referenced half s_R (section 3.1) pools word vectors component by component: pooling=extrema
takes the largest and the smallest of each, pooling=average takes the mean instead, pooling=all puts
all three behind each other. See `word_vector_metric` for words and unknown words. An undefined
cosine is 0 in mode=released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dialeval.metrics.blended_metric import Blend, BlendedMetric
from dialeval.metrics.word_vector_metric import Words, WordVectorMetric
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Judge, Judgement, Question
from dialeval.sample import Sample
from dialeval.scores import Score

if TYPE_CHECKING:
    from dialeval.metrics.word_vector_metric import Array


Pooling = Literal["max-min", "average", "all"]


@dataclass(frozen=True)
class ReferencedHalf(WordVectorMetric):
    """Cosine of the pooled word vectors of response and reference."""

    name = "ruber-referenced"
    citation = "Tao, Mou, Zhao, Yan: RUBER. AAAI 2018"

    pooling: Pooling = option("max-min", "how the vectors of the words become one")

    def similarity(self, response: Words, reference: Words) -> float:
        return self.cosine(self.pooled(response), self.pooled(reference))

    def pooled(self, words: Words) -> Array:
        import numpy as np

        average: Array = words.counts @ words.vectors / words.counts.sum()
        if self.pooling == "average":
            return average
        ends = (words.vectors.max(axis=0), words.vectors.min(axis=0))
        return np.concatenate(ends if self.pooling == "max-min" else (average, *ends))

    def cosine(self, first: Array, second: Array) -> float:
        import numpy as np

        norms = float(np.linalg.norm(first) * np.linalg.norm(second))
        if not norms:
            return 0.0 if self.mode == "released" else math.nan
        return float(np.clip(first @ second / norms, -1.0, 1.0))


@dataclass(frozen=True)
class Ruber(BlendedMetric):
    """Fit to the query by a scorer on word vectors, blended with nearness to the references."""

    name = "ruber"
    citation = (
        "Tao, Mou, Zhao, Yan: RUBER: An Unsupervised Method for Automatic Evaluation of Open-Domain"
        " Dialog Systems. AAAI 2018"
    )

    model: str = model_option("ruber", "the trained scorer; its word vectors serve both halves")
    blend: Blend = option("min", "what is made of the two halves, or one of them")
    pooling: Pooling = option("max-min", "how word vectors become one for the referenced half")

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if self.mode == "paper" and not response.strip():
            return ()
        turns = tuple(turn.text for turn in sample.context[-1:])
        near = self._referenced().ask(sample) if sample.references else ()
        return [Judge(self.model, turns, response), *near]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return Score.missing("empty response")
        fit, *vectors = answers
        near = self._referenced().score(sample, vectors) if vectors else None
        return self.blended(Judgement.read(fit), near)

    def _referenced(self) -> ReferencedHalf:
        return ReferencedHalf(self.model, self.mode, pooling=self.pooling)
