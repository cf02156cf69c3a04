"""`vector-extrema`: do the strongest words of response and reference mean the same? (Forgues et
al., 2014; Liu et al., EMNLP 2016, section 3.2)

    VX  = cos( e(response), e(reference) )
    e_d = the component d of that word whose component d is farthest from 0

The idea: words that say something lie far out, common words near the origin, so the extremes skip
the small talk. Where +x and -x tie, +x is taken.

mode=released takes the largest component instead of the farthest from 0, as PONE's code does. See
`word_vector_metric` for words, unknown words and the rest of `mode`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialeval.metrics.word_vector_metric import Words, WordVectorMetric

if TYPE_CHECKING:
    from dialeval.metrics.word_vector_metric import Array


@dataclass(frozen=True)
class VectorExtrema(WordVectorMetric):
    """Cosine of the most extreme components of the word vectors of response and reference."""

    name = "vector-extrema"
    citation = (
        "Forgues, Pineau, Larchevêque, Tremblay: Bootstrapping Dialog Systems with Word"
        " Embeddings. NIPS 2014 workshop on Modern ML and NLP"
    )

    def similarity(self, response: Words, reference: Words) -> float:
        return self.cosine(self.extrema(response.vectors), self.extrema(reference.vectors))

    def extrema(self, vectors: Array) -> Array:
        import numpy as np

        highest: Array = vectors.max(axis=0)
        lowest: Array = vectors.min(axis=0)
        if self.mode == "released":
            return highest
        return np.where(highest >= -lowest, highest, lowest)
