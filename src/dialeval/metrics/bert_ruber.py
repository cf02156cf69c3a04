"""`bert-ruber`: does it fit the context, to a scorer on sentence vectors? (Ghazarian et al., 2019)

    s_U = sigmoid( MLP [ q ; q^T M r ; r ] )      q, r: pooled states of an encoder
    s_R = cos( vector of the response, vector of the reference )

The scorer of s_U was trained to tell the response that was given from a random one (`dialeval train
bert-ruber`); how the turns before the response become q is what it was trained with. s_R takes the
vectors of the same encoder. Scales and blends of both are in `blended_metric`. The score is s_U,
as in the tables of PONE (Lan et al., TOIS 2020), unless a blend is asked for.

mode=released is what PONE's code does: s_U is put on a scale from 0 to 1 over the run, which moves
no correlation; a blank text is read as `[UNK]`, and s_R is 0 where one side is blank. In mode=paper
a blank response gets no score, and a blank reference is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dialeval.metrics.blended_metric import BlendedMetric
from dialeval.model_store.presets import model_option
from dialeval.question import Answer, Embed, Judge, Judgement, Question
from dialeval.sample import Sample
from dialeval.scores import Score


@dataclass(frozen=True)
class BertRuber(BlendedMetric):
    """Fit to the context, by a scorer on sentence vectors that learned from random negatives."""

    name = "bert-ruber"
    citation = (
        "Ghazarian, Wei, Galstyan, Peng: Better Automatic Evaluation of Open-Domain Dialogue"
        " Systems with Contextualized Embeddings. NeuralGen 2019"
    )

    model: str = model_option("bert-ruber", "the trained scorer; its encoder serves both halves")

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if self.mode == "paper" and not response.strip():
            return ()
        fit = Judge(self.model, tuple(turn.text for turn in sample.context), response)
        texts = (response, *sample.references) if sample.references else ()
        return [fit, *(Embed(self.model, text) for text in texts)]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return Score.missing("empty response")
        fit, *vectors = answers
        near = self._referenced(sample, vectors) if vectors else None
        return self.blended(Judgement.read(fit), near)

    def _referenced(self, sample: Sample, vectors: Sequence[Answer]) -> Score:
        response, *references = vectors
        blank = not (sample.response or "").strip()
        cosines = [
            0.0 if blank or not text.strip() else _cosine(response, vector)
            for text, vector in zip(sample.references, references, strict=True)
            if self.mode == "released" or text.strip()
        ]
        return Score(max(cosines)) if cosines else Score.missing("empty reference")


def _cosine(first: Answer, second: Answer) -> float:
    """0 where a vector is zero, which no encoder gives."""
    import numpy as np

    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    norms = math.sqrt(float(x @ x) * float(y @ y))
    return float(np.clip(x @ y / norms, -1.0, 1.0)) if norms else 0.0
