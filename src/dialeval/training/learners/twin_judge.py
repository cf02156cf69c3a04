"""A judge that reads turns and response apart learns which belong together.

Every response of a batch is a wrong one for the turns of all the others, so that a batch of B
dialogues holds B right pairs and B (B - 1) wrong ones, for 2 B texts that are read (the pairwise
sigmoid loss of Zhai et al., ICCV 2023). Right and wrong pairs weigh the same in the loss, hence a
pair that may as well be right as wrong gets one half. A wrong pair with the words of the right
response is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dialeval.models.loading import positions_of
from dialeval.models.text_judge import TwinJudgeConfig, TwinJudgeNetwork, TwinReading
from dialeval.training.learners.judge_recipe import Example, Examples, JudgeRecipe

Encoded = tuple[tuple[int, ...], tuple[int, ...]]
"""Token ids of the turns and of the response."""


class TwinJudgeRecipe(JudgeRecipe[TwinJudgeNetwork, Encoded]):
    """Right pairs, which are all that `examples` may hold, against all others of their batch."""

    def __init__(
        self,
        network: TwinJudgeNetwork,
        tokenizer: Any,
        config: TwinJudgeConfig,
        examples: Examples,
        validation: Sequence[Example],
        *,
        batch: int,
        seed: int,
    ) -> None:
        super().__init__(network, tokenizer, examples, validation, batch=batch, seed=seed)
        self._read = TwinReading(tokenizer, config, positions_of(network.encoder))

    def encode(self, examples: Sequence[Example]) -> list[Encoded]:
        contexts = self._read.contexts([example.turns for example in examples])
        responses = self._read.responses([example.response for example in examples])
        return [(turns, said) for (turns, _), (said, _) in zip(contexts, responses, strict=True)]

    def length(self, encoded: Encoded) -> int:
        return len(encoded[0]) // 16

    def loss(self, batch: list[Encoded]) -> torch.Tensor:
        self.network.train()
        self.network.encoder.eval()  # dropout in every block takes a third of the time
        contexts, responses = self._vectors(batch)
        logits = self.network.logits(contexts @ responses.T)
        texts = [response for _, response in batch]
        right = torch.eye(len(batch))
        wrong = torch.tensor([[float(one != other) for other in texts] for one in texts])
        losses = -torch.nn.functional.logsigmoid((2 * right - 1) * logits)
        weights = right / (2 * len(batch)) + wrong / (2 * wrong.sum().clamp(min=1))
        return (losses * weights).sum()

    def logits(self, batch: Sequence[Encoded]) -> torch.Tensor:
        contexts, responses = self._vectors(batch)
        return self.network.logits((contexts * responses).sum(dim=-1))

    def _vectors(self, batch: Sequence[Encoded]) -> tuple[torch.Tensor, torch.Tensor]:
        contexts = self.network.vectors([context for context, _ in batch], self._tokenizer)
        return contexts, self.network.vectors([said for _, said in batch], self._tokenizer)
