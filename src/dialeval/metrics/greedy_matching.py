"""`greedy-matching`: has each word a counterpart on the other side? (Rus & Lintean, 2012; Liu
et al., EMNLP 2016, section 3.2)

    GM     = ( G(r, s) + G(s, r) ) / 2
    G(r,s) = mean over words w of r of  max over words v of s of  cos(w, v)

A word that occurs twice counts twice, and several words may choose the same counterpart.

mode=released repeats PONE's test for zeros (see `word_vector_metric`) for each pair of words. Its
second direction, from the response to the reference, has another: a pair with a component of 0
counts 1 only if the two vectors are equal. See there also for words and unknown words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialeval.metrics.word_vector_metric import Words, WordVectorMetric

if TYPE_CHECKING:
    from dialeval.metrics.word_vector_metric import Array

WORDS_AT_ONCE = 1024
"""Rows of the table of cosines that are held in memory: no response is too long."""


@dataclass(frozen=True)
class GreedyMatching(WordVectorMetric):
    """Mean cosine of each word with its most similar word on the other side, both ways."""

    name = "greedy-matching"
    citation = (
        "Rus, Lintean: A Comparison of Greedy and Optimal Assessment of Natural Language Student"
        " Input Using Word-to-Word Similarity Metrics. BEA 2012"
    )

    def similarity(self, response: Words, reference: Words) -> float:
        import numpy as np

        best_of_response = np.full(len(response.counts), -1.0)
        best_of_reference = []
        for start in range(0, len(reference.counts), WORDS_AT_ONCE):
            rows = reference.vectors[start : start + WORDS_AT_ONCE]
            forth, back = self.tables(rows, response.vectors)
            best_of_reference.append(forth.max(axis=1))
            best_of_response = np.maximum(best_of_response, back.max(axis=0))
        return (
            float(
                np.average(np.concatenate(best_of_reference), weights=reference.counts)
                + np.average(best_of_response, weights=response.counts)
            )
            / 2
        )

    def tables(self, reference: Array, response: Array) -> tuple[Array, Array]:
        """Cosines of all pairs of words, as seen from the reference and from the response."""
        import numpy as np

        norms = np.linalg.norm(reference, axis=1)[:, None] * np.linalg.norm(response, axis=1)
        # Only mode=released lets zero vectors through, and then overwrites their cosines.
        cosines = np.clip(reference @ response.T / np.where(norms > 0, norms, 1.0), -1.0, 1.0)
        if self.mode == "paper":
            return cosines, cosines
        zeros_in_reference = (reference == 0).any(axis=1)[:, None]
        zeros_in_response = (response == 0).any(axis=1)[None, :]
        zeros = zeros_in_reference | zeros_in_response
        equal = np.array([(response == row).all(axis=1) for row in reference])
        return (
            np.where(zeros, zeros_in_reference & zeros_in_response, cosines),
            np.where(zeros, equal, cosines),
        )
