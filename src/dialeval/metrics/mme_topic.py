"""`mme-topic`: do its topics follow from those before? (Zhang et al., 2022, section 3.3)

    s = sigmoid( MLP( mean over the nodes of a graph attention network ) )

The nodes are keywords of the last turns and of the response, joined by how near they are in
ConceptNet: the topic graph of GRADE (Huang et al., 2020) without its branch that reads the text.
The judge learned to put the response that was given before another one (`dialeval train
mme-topic`). Of a dialogue as a whole it is the mean over its system's turns, without those that
nothing precedes. A response without keywords is judged too, by what the context has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dialeval.metrics.judged_metric import JudgedMetric
from dialeval.model_store.presets import model_option
from dialeval.question import Judge
from dialeval.sample import Sample


@dataclass(frozen=True)
class MmeTopic(JudgedMetric):
    """Fit of the response's keywords to those of the context, by a graph over ConceptNet."""

    name = "mme-topic"
    needs = frozenset({"context"})

    model: str = model_option("mme-topic", "the trained judge")

    def question(self, turn: Sample) -> Judge:
        return Judge(self.model, tuple(said.text for said in turn.context), turn.response or "")

    def models(self) -> Mapping[str, str]:
        return {"model": self.model}
