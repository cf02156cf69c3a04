"""RUBER's referenced half: is the response near to a reference? (Tao et al., AAAI 2018, 3.1)

    s_R = cos( v(response), v(reference) )
    v   = [ max over the words ; min over the words ], component by component

pooling=average takes the mean of the word vectors instead, pooling=all puts all three behind each
other. See `word_vector_metric` for words and unknown words. An undefined cosine is 0 in
mode=released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dialeval.metric import option
from dialeval.metrics.word_vector_metric import Words, WordVectorMetric

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
