"""`mme-fluency`: is it a sentence that a person would write? (Zhang et al., 2022, section 3.1)

    s = P(fluent | r) = sigmoid( w . max over tokens of h_t )      h: states of an encoder

The encoder was trained to tell responses of people from broken ones: words shuffled, dropped,
repeated (`dialeval train mme-fluency`). USL-H (Phy et al., 2020) calls it valid utterance
prediction. The context is not looked at. A dialogue as a whole is the mean over its system's turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dialeval.metrics.judged_metric import JudgedMetric
from dialeval.model_store.presets import model_option
from dialeval.question import Judge
from dialeval.sample import Sample


@dataclass(frozen=True)
class MmeFluency(JudgedMetric):
    """Probability that the response is fluent, by a judge that learned from broken ones."""

    name = "mme-fluency"

    model: str = model_option("mme-fluency", "the trained judge")

    def question(self, turn: Sample) -> Judge:
        return Judge(self.model, (), turn.response or "")

    def models(self) -> Mapping[str, str]:
        return {"model": self.model}
