"""A judge that reads turns and response apart learns which belong together.

Every response of a batch is a wrong one for the turns of all the others, so that a batch of B
dialogues holds B right pairs and B (B - 1) wrong ones, for 2 B texts that are read (the pairwise
sigmoid loss of Zhai et al., ICCV 2023). Right and wrong pairs weigh the same in the loss, hence a
pair that may as well be right as wrong gets one half. A wrong pair with the words of the right
response is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from dialeval.models.loading import positions_of
from dialeval.models.twin_judge import TwinJudgeConfig, TwinJudgeNetwork, TwinReading
from dialeval.training.loop import Validation
from dialeval.training.text_judge import Example

Encoded = tuple[tuple[int, ...], tuple[int, ...]]
"""Token ids of the turns and of the response."""


class TwinJudgeRecipe:
    """Right pairs against all others of their batch."""

    def __init__(
        self,
        network: TwinJudgeNetwork,
        tokenizer: Any,
        config: TwinJudgeConfig,
        pairs: Callable[[int], Sequence[Example]],
        validation: Sequence[Example],
        *,
        batch: int,
        seed: int,
    ) -> None:
        self.network = network
        self._tokenizer = tokenizer
        self._read = TwinReading(tokenizer, config, positions_of(network.encoder))
        self._pairs = pairs
        self._batch = batch
        self._seed = seed
        self._validation = validation
        self._epoch: tuple[int, list[list[Encoded]]] = (-1, [])

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {name: p for name, p in self.network.named_parameters() if p.requires_grad}

    def batches(self, epoch: int) -> list[list[Encoded]]:
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._make_batches(epoch))
        return self._epoch[1]

    def _make_batches(self, epoch: int) -> list[list[Encoded]]:
        encoded = self._encode(self._pairs(epoch))
        generator = np.random.default_rng([self._seed, epoch])
        jitter = generator.random(len(encoded))
        order = sorted(range(len(encoded)), key=lambda i: (len(encoded[i][0]) // 16, jitter[i]))
        starts = range(0, len(order), self._batch)
        batches = [[encoded[i] for i in order[start : start + self._batch]] for start in starts]
        return [batches[i] for i in generator.permutation(len(batches)) if len(batches[i]) > 1]

    def _encode(self, examples: Sequence[Example]) -> list[Encoded]:
        contexts = self._read.contexts([example.turns for example in examples])
        responses = self._read.responses([example.response for example in examples])
        return list(zip(contexts, responses, strict=True))

    def loss(self, batch: list[Encoded]) -> torch.Tensor:
        self.network.train()
        self.network.encoder.eval()  # dropout in every block takes a third of the time
        size = len(batch)
        contexts, responses = ([pair[side] for pair in batch] for side in (0, 1))
        vectors = torch.cat(
            [self.network.vectors(side, self._tokenizer) for side in (contexts, responses)]
        )
        logits = self.network.logits(vectors[:size] @ vectors[size:].T)
        right = torch.eye(size)
        same = torch.tensor([[one == other for other in responses] for one in responses])
        wrong = (~same).float()
        signs = 2 * right - 1
        losses = -torch.nn.functional.logsigmoid(signs * logits)
        weights = right / (2 * size) + wrong / (2 * wrong.sum().clamp(min=1))
        return (losses * weights).sum()

    @torch.no_grad()
    def validate(self) -> Validation:
        logits = self.predict(self._validation)
        targets = torch.tensor([example.target for example in self._validation])
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
        right = float(((logits > 0) == (targets > 0.5)).double().mean())
        return Validation(float(loss), {"validation_accuracy": right})

    @torch.no_grad()
    def predict(self, examples: Sequence[Example]) -> torch.Tensor:
        """One logit per example."""
        self.network.eval()
        encoded = self._encode(examples)
        found = torch.empty(len(encoded))
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i][0]))
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            sides = [
                self.network.vectors([encoded[i][side] for i in rows], self._tokenizer)
                for side in (0, 1)
            ]
            found[rows] = self.network.logits((sides[0] * sides[1]).sum(dim=-1))
        return found
