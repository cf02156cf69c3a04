"""A judge that reads text learns to tell good responses from bad ones (see `models.text_judge`).

The loss is cross-entropy with the target, which may lie between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dialeval.models.classifier import Segmented, pad
from dialeval.models.loading import positions_of
from dialeval.models.text_judge import Reading, TextJudgeConfig, TextJudgeNetwork
from dialeval.training.judge_recipe import Example, Examples, JudgeRecipe

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
