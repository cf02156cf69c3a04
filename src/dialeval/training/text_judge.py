"""A judge that reads text learns to tell good responses from bad ones (see `models.text_judge`).

What is good and bad differs from sub-metric to sub-metric; the recipe sees examples only. They are
made anew for every epoch, so that a response is not always spoiled in the same way. The loss is
cross-entropy with the target, which may lie between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dialeval.models.classifier import Segmented, pad
from dialeval.models.loading import positions_of
from dialeval.models.text_judge import Reading, TextJudgeConfig, TextJudgeNetwork
from dialeval.training.loop import Validation


@dataclass(frozen=True, slots=True)
class Example:
    """What is read, and how good it is, from 0 to 1."""

    turns: tuple[str, ...]
    response: str
    target: float


Encoded = tuple[Segmented, float]
Examples = Callable[[int], Sequence[Example]]
"""Those of an epoch: always the same for the same epoch, and as many in each."""


class TextJudgeRecipe:
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
        self.network = network
        self._tokenizer = tokenizer
        self._read = Reading(tokenizer, config, positions_of(network.encoder))
        self._examples = examples
        self._batch = batch
        self._seed = seed
        self._validation = validation
        self._epoch: tuple[int, list[list[Encoded]]] = (-1, [])

    def _encode(self, examples: Sequence[Example]) -> list[Encoded]:
        read = self._read([(example.turns, example.response) for example in examples])
        return [(ids, example.target) for ids, example in zip(read, examples, strict=True)]

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {name: p for name, p in self.network.named_parameters() if p.requires_grad}

    def batches(self, epoch: int) -> list[list[Encoded]]:
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._make_batches(epoch))
        return self._epoch[1]

    def _make_batches(self, epoch: int) -> list[list[Encoded]]:
        encoded = self._encode(self._examples(epoch))
        generator = np.random.default_rng([self._seed, epoch])
        jitter = generator.random(len(encoded))
        order = sorted(range(len(encoded)), key=lambda i: (len(encoded[i][0][0]) // 4, jitter[i]))
        starts = range(0, len(order), self._batch)
        batches = [[encoded[i] for i in order[start : start + self._batch]] for start in starts]
        return [batches[i] for i in generator.permutation(len(batches))]

    def loss(self, batch: list[Encoded]) -> torch.Tensor:
        self.network.train()
        self.network.encoder.eval()  # dropout in every block takes a third of the time
        targets = torch.tensor([target for _, target in batch])
        return _cross_entropy(self._logits(batch), targets)

    @torch.no_grad()
    def validate(self) -> Validation:
        logits = self.predict(self._validation)
        targets = torch.tensor([example.target for example in self._validation])
        loss = float(_cross_entropy(logits, targets))
        right = float(((logits > 0) == (targets > 0.5)).double().mean())
        return Validation(loss, {"validation_accuracy": right})

    @torch.no_grad()
    def predict(self, examples: Sequence[Example]) -> torch.Tensor:
        """One logit per example."""
        self.network.eval()
        encoded = self._encode(examples)
        found = torch.empty(len(encoded))
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i][0][0]))
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            found[rows] = self._logits([encoded[i] for i in rows])
        return found

    def _logits(self, batch: Sequence[Encoded]) -> torch.Tensor:
        inputs = pad([read for read, _ in batch], self._tokenizer)
        logits: torch.Tensor = self.network(**inputs)
        return logits


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
