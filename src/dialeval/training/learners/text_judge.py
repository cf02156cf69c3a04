"""A judge that reads text learns to tell good responses from bad ones (see `models.text_judge`).

The loss is cross-entropy with the target, which may lie between 0 and 1; or, where only an order is
taught, that of Bradley and Terry: - log sigmoid(logit of the better - logit of the worse).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dialeval.models.classifier import Segmented, pad
from dialeval.models.loading import positions_of
from dialeval.models.text_judge import Reading, TextJudgeConfig, TextJudgeNetwork
from dialeval.training.learners.judge_recipe import Example, Examples, JudgeRecipe
from dialeval.training.loop import Validation

Encoded = tuple[Segmented, float]
"""What is read, and the target."""


class TextJudgeRecipe(JudgeRecipe[TextJudgeNetwork, Encoded]):
    """Cross-entropy over examples of similar length."""

    def __init__(
        self,
        network: TextJudgeNetwork,
        tokenizer: Any,
        config: TextJudgeConfig,
        examples: Examples,
        validation: Sequence[Example],
        *,
        batch: int,
        seed: int,
    ) -> None:
        super().__init__(network, tokenizer, examples, validation, batch=batch, seed=seed)
        self._read = Reading(tokenizer, config, positions_of(network.encoder))

    def encode(self, examples: Sequence[Example]) -> list[Encoded]:
        read, _ = self._read([(example.turns, example.response) for example in examples])
        return [(ids, example.target) for ids, example in zip(read, examples, strict=True)]

    def length(self, encoded: Encoded) -> int:
        return len(encoded[0][0]) // 4

    def loss(self, batch: list[Encoded]) -> torch.Tensor:
        self.network.train()
        self.network.encoder.eval()  # dropout in every block takes a third of the time
        targets = torch.tensor([target for _, target in batch])
        return torch.nn.functional.binary_cross_entropy_with_logits(self.logits(batch), targets)

    def logits(self, batch: Sequence[Encoded]) -> torch.Tensor:
        logits: torch.Tensor = self.network(**pad([read for read, _ in batch], self._tokenizer))
        return logits


class RankingRecipe(TextJudgeRecipe):
    """Examples come two by two, the better one first. Their targets are not looked at."""

    def _make_batches(self, epoch: int) -> list[list[Encoded]]:
        encoded = self.encode(self._examples(epoch))
        pairs = list(zip(encoded[::2], encoded[1::2], strict=True))
        generator = np.random.default_rng([self._seed, epoch])
        jitter = generator.random(len(pairs))
        order = sorted(range(len(pairs)), key=lambda i: (self.length(pairs[i][0]), jitter[i]))
        size = max(1, self._batch // 2)
        batches = [
            [one for i in order[start : start + size] for one in pairs[i]]
            for start in range(0, len(order), size)
        ]
        return [batches[i] for i in generator.permutation(len(batches))]

    def loss(self, batch: list[Encoded]) -> torch.Tensor:
        self.network.train()
        self.network.encoder.eval()
        return _ranking_loss(self.logits(batch))

    def validate(self) -> Validation:
        logits = self.predict(self._validation)
        return Validation(float(_ranking_loss(logits)), {"validation_accuracy": in_order(logits)})

    @torch.no_grad()
    def spread(self) -> None:
        """An order has no scale of its own: the head is stretched so that the logits of what is
        validated on have the mean 0 and the standard deviation 1."""
        logits = self.predict(self._validation)
        mean, deviation = logits.mean(), logits.std()
        if deviation > 0:
            last = self.network.head[-1]
            assert isinstance(last, torch.nn.Linear)
            last.weight.div_(deviation)
            last.bias.sub_(mean).div_(deviation)


def _ranking_loss(logits: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.softplus(logits[1::2] - logits[::2]).mean()


def in_order(logits: torch.Tensor) -> float:
    """Share of pairs whose better one has the higher logit; a tie counts half."""
    ahead = logits[::2] - logits[1::2]
    return float(((ahead > 0).double() + 0.5 * (ahead == 0).double()).mean())
