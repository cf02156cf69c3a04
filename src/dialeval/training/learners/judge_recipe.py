"""What judges that read text have in common when they learn (see `text_judge`, `twin_judge`).

What is good and bad differs from sub-metric to sub-metric; a recipe sees examples only. They are
made anew for every epoch, so that a response is not always spoiled in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from dialeval.training.loop import Validation

PREDICTED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Example:
    """What is read, and how good it is, from 0 to 1."""

    turns: tuple[str, ...]
    response: str
    target: float


Examples = Callable[[int], Sequence[Example]]
"""Those of an epoch: always the same for the same epoch, and as many in each."""

Encoded = TypeVar("Encoded")
Network = TypeVar("Network", bound=torch.nn.Module)


class JudgeRecipe(ABC, Generic[Network, Encoded]):
    """Examples of similar length in batches, validation by cross-entropy with the targets."""

    def __init__(
        self,
        network: Network,
        tokenizer: Any,
        examples: Examples,
        validation: Sequence[Example],
        *,
        batch: int,
        seed: int,
    ) -> None:
        self.network = network
        self._tokenizer = tokenizer
        self._examples = examples
        self._validation = validation
        self._batch = batch
        self._seed = seed
        self._epoch: tuple[int, list[list[Encoded]]] = (-1, [])

    @abstractmethod
    def encode(self, examples: Sequence[Example]) -> list[Encoded]: ...

    @abstractmethod
    def length(self, encoded: Encoded) -> int:
        """By which examples are put together."""

    @abstractmethod
    def loss(self, batch: list[Encoded]) -> torch.Tensor: ...

    @abstractmethod
    def logits(self, batch: Sequence[Encoded]) -> torch.Tensor:
        """One per example."""

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {name: p for name, p in self.network.named_parameters() if p.requires_grad}

    def batches(self, epoch: int) -> list[list[Encoded]]:
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._make_batches(epoch))
        return self._epoch[1]

    def _make_batches(self, epoch: int) -> list[list[Encoded]]:
        encoded = self.encode(self._examples(epoch))
        generator = np.random.default_rng([self._seed, epoch])
        jitter = generator.random(len(encoded))
        order = sorted(range(len(encoded)), key=lambda i: (self.length(encoded[i]), jitter[i]))
        starts = range(0, len(order), self._batch)
        batches = [[encoded[i] for i in order[start : start + self._batch]] for start in starts]
        return [batches[i] for i in generator.permutation(len(batches))]

    def validate(self) -> Validation:
        logits = self.predict(self._validation)
        targets = targets_of(self._validation)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
        return Validation(float(loss), {"validation_accuracy": accuracy(logits, targets)})

    @torch.no_grad()
    def predict(self, examples: Sequence[Example]) -> torch.Tensor:
        """One logit per example."""
        self.network.eval()
        encoded = self.encode(examples)
        found = torch.empty(len(encoded))
        order = sorted(range(len(encoded)), key=lambda i: self.length(encoded[i]))
        for start in range(0, len(order), PREDICTED_AT_ONCE):
            rows = order[start : start + PREDICTED_AT_ONCE]
            found[rows] = self.logits([encoded[i] for i in rows])
        return found


def targets_of(examples: Sequence[Example]) -> torch.Tensor:
    return torch.tensor([example.target for example in examples])


def accuracy(logits: torch.Tensor, targets: torch.Tensor) -> float:
    """Share of examples on the right side of one half."""
    return float(((logits > 0) == (targets > 0.5)).double().mean())
