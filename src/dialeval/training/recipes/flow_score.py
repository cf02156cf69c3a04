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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.options import option
from dialeval.training.recipe import Measures, Progress, held_out_option
from dialeval.training.recipes.dyna_eval import dialogues_and_wrong_ones, long_dialogues
from dialeval.training.recipes.sentence_head import HeadExamples, PreparedHead, SentenceHead

if TYPE_CHECKING:
    from dialeval.training.examples.pair_corpus import Example
    from dialeval.training.learners.sentence_head import FlowLearner


@dataclass(frozen=True, kw_only=True)
class FlowScore(SentenceHead):
    """Teach FlowScore to foretell the next utterance of a dialogue."""

    name = "flow-score"
    metric = "flow-score"
    head = "flow"
    border = None

    turns: int = option(30, "Read at most this many turns before the last one.", low=3)
    dialogues: int = option(6_000, "Learn from at most this many dialogues; 0: from all.", low=0)
    held_out: int = held_out_option(300, "dialogues each")

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

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.training.examples.corpora import load_unrated
        from dialeval.training.examples.pair_corpus import Example, ExampleSets

        corpus, left_out = load_unrated(data)
        most_read = self.turns + 1
        train, validation, test = (
            long_dialogues(corpus.name, own, most_read, most, seed)
            for own, most, seed in (
                (corpus.train, self.dialogues, self.seed),
                (corpus.validation, self.held_out, 0),
                (corpus.test, self.held_out, 0),
            )
        )
        right = [Example(turns[:-1], turns[-1], 1.0) for turns in train]
        held_out = dialogues_and_wrong_ones(test, np.random.default_rng(0))
        return HeadExamples(
            ExampleSets(
                lambda epoch: right,
                dialogues_and_wrong_ones(validation, np.random.default_rng(0)),
                corpus.digest(),
                {"corpus": corpus.name, "sha256": corpus.digest(), **left_out.facts()}
                | {"dialogues to learn from": len(train)},
                measured={
                    "test, replaced utterances": [
                        one for n, one in enumerate(held_out) if n % 3 < 2
                    ],
                    "test, shuffled speakers": [
                        one for n, one in enumerate(held_out) if n % 3 != 1
                    ],
                },
            )
        )

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
