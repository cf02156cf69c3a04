"""`mme-relevance`: does it answer what was said? (Zhang et al., 2022, section 3.2)

    s = P(next | c, r) = sigmoid( a cos(v_c, v_r) + b )             v: mean states of an encoder
    s = P(next | c, r) = sigmoid( w . max over tokens of h_t )      h: states of an encoder

It was trained to tell the response that was given from another one (`dialeval train
mme-relevance`). The first line is the shipped judge, which reads the turns so far and the response
apart (`--way twin`); the second is the paper's, which reads them together (`--way pair`). USL-H
(Phy et al., 2020) calls it next utterance prediction. Of a dialogue as a whole it is the mean
over its system's turns, without those that nothing precedes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dialeval.metrics.judged_metric import JudgedMetric
from dialeval.model_store.presets import model_option
from dialeval.question import Judge
from dialeval.sample import Sample


@dataclass(frozen=True)
class MmeRelevance(JudgedMetric):
    """Probability that the response answers these turns."""

    name = "mme-relevance"
    needs = frozenset({"context"})

    model: str = model_option("mme-relevance", "the trained judge")

    def question(self, turn: Sample) -> Judge:
        return Judge(self.model, tuple(said.text for said in turn.context), turn.response or "")

    def models(self) -> Mapping[str, str]:
        return {"model": self.model}
