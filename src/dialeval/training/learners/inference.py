"""An encoder learns to tell contradiction, neutral and entailment apart.

Both sentences are read together, `[CLS] premise [SEP] hypothesis [SEP]`, and a linear head on the
pooled state of the first token gives three logits. Pairs of similar length share a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dialeval.models.classifier import pad
from dialeval.training.examples.inference_pairs import Pair
from dialeval.training.loop import Validation


@dataclass(frozen=True)
class InferenceModelOptions:
    """rank 0 trains all weights. `pairs` bounds what is learned from; None: everything."""

    rank: int = 32
    alpha: int = 64
    batch: int = 32
    length: int = 96
    pairs: int | None = None


Encoded = tuple[list[int], list[int], int]
"""Token ids, segment of each token, label."""


class InferenceModelRecipe:
    """Three-way classification of pairs of sentences."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        train: Sequence[Pair],
        validation: Sequence[Pair],
        options: InferenceModelOptions,
        seed: int,
    ) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._options = options
        self._seed = seed
        chosen = np.random.default_rng(seed).permutation(len(train))[: options.pairs]
        self._train = self.encode([train[i] for i in sorted(chosen)])
        self._validation = self.encode(validation)

    def encode(self, pairs: Sequence[Pair]) -> list[Encoded]:
        """Longer pairs are cut, the longer of both texts first."""
        read = self._tokenizer(
            [pair.premise for pair in pairs],
            [pair.hypothesis for pair in pairs],
            truncation=True,
            max_length=self._options.length,
            return_token_type_ids=True,
        )
        labels = [pair.label for pair in pairs]
        return list(zip(read.input_ids, read.token_type_ids, labels, strict=True))

    @property
    def pairs(self) -> int:
        """Pairs that one epoch sees."""
        return len(self._train)

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def batches(self, epoch: int) -> list[list[Encoded]]:
        generator = np.random.default_rng([self._seed, epoch])
        jitter = generator.random(len(self._train))
        order = sorted(
            range(len(self._train)), key=lambda i: (len(self._train[i][0]) // 4, jitter[i])
        )
        size = self._options.batch
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        return [[self._train[i] for i in batches[b]] for b in generator.permutation(len(batches))]

    def loss(self, batch: list[Encoded]) -> torch.Tensor:
        self.model.train()
        return torch.nn.functional.cross_entropy(self._logits(batch), _labels(batch))

    def validate(self) -> Validation:
        probabilities = self.predict(self._validation)
        labels = _labels(self._validation)
        loss = -probabilities[torch.arange(len(labels)), labels].log().mean()
        correct = float((probabilities.argmax(1) == labels).double().mean())
        # Of two epochs that are right equally often, the surer one.
        error = 1 - correct + float(loss) / (1000 * len(labels))
        return Validation(float(loss), {"validation_accuracy": correct}, error)

    @torch.no_grad()
    def predict(self, encoded: Sequence[Encoded]) -> torch.Tensor:
        """Probabilities of the labels, one row per pair."""
        self.model.eval()
        found = torch.empty(len(encoded), self.model.config.num_labels)
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i][0]))
        size = 2 * self._options.batch
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            found[rows] = self._logits([encoded[i] for i in rows]).softmax(-1)
        return found

    def accuracy(self, pairs: Sequence[Pair]) -> float:
        encoded = self.encode(pairs)
        return float((self.predict(encoded).argmax(1) == _labels(encoded)).double().mean())

    def _logits(self, batch: Sequence[Encoded]) -> torch.Tensor:
        inputs = pad([(ids, types) for ids, types, _ in batch], self._tokenizer)
        logits: torch.Tensor = self.model(**inputs).logits
        return logits


def _labels(batch: Sequence[Encoded]) -> torch.Tensor:
    return torch.tensor([label for _, _, label in batch])
