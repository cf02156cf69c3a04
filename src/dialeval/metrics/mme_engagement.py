"""`mme-engagement`: does it make one want to go on? (Zhang et al., 2022, section 3.4)

    s = sigmoid( MLP( mean over tokens of h_t ) )      h: states of an encoder that reads r alone

Learned from conversations whose partners said how much they liked them, a number from 0 to 1
(`dialeval train mme-engagement`). The paper has ConvAI 2017 to learn from; what the embedded judge
learned from is on its card. A dialogue as a whole is the mean over its system's turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dialeval.metrics.judged_metric import JudgedMetric
from dialeval.model_store.presets import model_option
from dialeval.question import Judge
from dialeval.sample import Sample


@dataclass(frozen=True)
class MmeEngagement(JudgedMetric):
    """How engaging the response is, by a judge that learned from partners' ratings."""

    name = "mme-engagement"

    model: str = model_option("mme-engagement", "the trained judge")

    def question(self, turn: Sample) -> Judge:
        return Judge(self.model, (), turn.response or "")

    def models(self) -> Mapping[str, str]:
        return {"model": self.model}
