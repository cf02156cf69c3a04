"""`dialeval train flow-score`: foretell what is said next, from the turns before it.

(Li et al., ACL 2021) An LSTM reads the sentence vectors of a dialogue one by one, and says after
each what the vector of the next utterance will be. The loss is the squared distance, which is the
loss of context flow modelling in the paper, as C_k is a sum of vectors here. The authors also
train GPT-2 to write the response, and to guess its words from what was foretold, on Reddit.

It learns from dialogues as they were held. Held-out ones are put out of joint as for `dyna-eval`:
the card says how often a dialogue of people has a better FlowScore than a wrong one, and how far
off a flow is that foretells the mean vector always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dialeval.training.recipe import Measures, Progress
from dialeval.training.recipes.dyna_eval import DialogueHead
from dialeval.training.recipes.sentence_head import PreparedHead

if TYPE_CHECKING:
    from dialeval.training.examples.corpora import Dialogue
    from dialeval.training.examples.pair_corpus import Example
    from dialeval.training.learners.sentence_head import FlowLearner


@dataclass(frozen=True, kw_only=True)
class FlowScore(DialogueHead):
    """Teach FlowScore to predict the next utterance of a dialogue."""

    name = "flow-score"
    metric = "flow-score"
    head = "flow"
    border = None

    units: tuple[int, ...] = field(default=(192,))
    """Width of the LSTM."""

    @property
    def about(self) -> str:
        return (
            "Does a dialogue go on as its flow foretells? FlowScore: an LSTM over frozen sentence"
            " vectors that learned what is said next."
        )

    def learner(self) -> type[FlowLearner]:
        from dialeval.training.learners.sentence_head import FlowLearner

        return FlowLearner

    def of_epoch(self, dialogues: Sequence[Dialogue], epoch: int) -> list[Example]:
        from dialeval.training.examples.pair_corpus import Example

        return [Example(turns[:-1], turns[-1], 1.0) for turns in dialogues]

    def measured(self, name: str, examples: Sequence[Example], logits: Any) -> dict[str, float]:
        import torch

        from dialeval.training.learners.sentence_head import area_under_curve

        targets = torch.tensor([example.target for example in examples])
        return {f"AUC on {name} ({len(examples):,} examples)": area_under_curve(logits, targets)}

    def measure(self, prepared: PreparedHead, progress: Progress) -> Measures:
        from dialeval.training.learners.sentence_head import FlowLearner

        found, learner = super().measure(prepared, progress), prepared.learner
        assert isinstance(learner, FlowLearner)
        test = prepared.sets.measured["test, replaced utterances"]
        scores = {
            **found.scores,
            "squared distance from what was foretold, test": learner.distance(test),
            "squared distance from the mean vector, test": learner.distance_from_mean(test),
        }
        return Measures(scores, by_source=found.by_source)
