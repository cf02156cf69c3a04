"""`embedding-average`: do the words of response and reference mean the same on average? (Foltz,
Kintsch & Landauer, 1998; Liu et al., EMNLP 2016, section 3.2)

    EA = cos( mean of the word vectors of the response, mean of those of the reference )

A sum in the place of the mean gives the same cosine. Order does not matter, and
frequent function words dominate: with GloVe 50d, an answer from Topical-Chat and an unrelated
reference reach .95 on average.

See `word_vector_metric` for words, unknown words and `mode`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialeval.metrics.word_vector_metric import Words, WordVectorMetric


@dataclass(frozen=True)
class EmbeddingAverage(WordVectorMetric):
    """Cosine of the mean word vectors of response and reference."""

    name = "embedding-average"
    citation = (
        "Liu, Lowe, Serban, Noseworthy, Charlin, Pineau: How NOT To Evaluate Your Dialogue System."
        " EMNLP 2016"
    )

    def similarity(self, response: Words, reference: Words) -> float:
        return self.cosine(
            response.counts @ response.vectors / response.counts.sum(),
            reference.counts @ reference.vectors / reference.counts.sum(),
        )
