"""An encoder learns to tell contradiction, neutral and entailment apart.

Both sentences are read together, `[CLS] premise [SEP] hypothesis [SEP]`, and a linear head on the
pooled state of the first token gives three logits. Pairs of similar length share a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dialeval.models.classifier import pad
from dialeval.question import NLI_LABELS
from dialeval.training.examples.inference import InferencePair
from dialeval.training.loop import NetworkLearner, Validation, multiply_in, similar_batches

if TYPE_CHECKING:
    from dialeval.training.recipes.nli import Inference

Encoded = tuple[list[int], list[int], int]
"""Token ids, segment of each token, label."""


class InferenceLearner(NetworkLearner):
    """Three-way classification of pairs of sentences."""

    network: Any

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        train: Sequence[InferencePair],
        validation: Sequence[InferencePair],
        recipe: Inference,
    ) -> None:
        self.network = network
        self._tokenizer = tokenizer
        self._recipe = recipe
        chosen = np.random.default_rng(recipe.seed).permutation(len(train))[: recipe.pairs]
        self._train = self.encode([train[i] for i in sorted(chosen)])
        self._validation = self.encode(validation)

    def encode(self, pairs: Sequence[InferencePair]) -> list[Encoded]:
        """Longer pairs are cut, the longer of both texts first."""
        read = self._tokenizer(
            [pair.premise for pair in pairs],
            [pair.hypothesis for pair in pairs],
            truncation=True,
            max_length=self._recipe.pair_tokens,
            return_token_type_ids=True,
        )
        labels = [pair.label for pair in pairs]
        return list(zip(read.input_ids, read.token_type_ids, labels, strict=True))

    @property
    def pairs(self) -> int:
        """Pairs that one epoch sees."""
        return len(self._train)

    def batches(self, epoch: int) -> list[list[Encoded]]:
        generator = np.random.default_rng([self._recipe.seed, epoch])
        lengths = [len(ids) // 4 for ids, _, _ in self._train]
        batches = similar_batches(lengths, self._recipe.batch, generator)
        return [[self._train[row] for row in batch] for batch in batches]

    def loss(self, batch: list[Encoded]) -> torch.Tensor:
        self.network.train()
        with multiply_in(self._recipe.precision):
            logits = self._logits(batch)
        return torch.nn.functional.cross_entropy(logits.float(), _labels(batch))

    def validate(self) -> Validation:
        probabilities = self.predict(self._validation)
        labels = _labels(self._validation)
        loss = -probabilities[torch.arange(len(labels)), labels].log().mean()
        correct = float((probabilities.argmax(1) == labels).double().mean())
        # If two epochs are right equally often, the surer one is kept.
        error = 1 - correct + float(loss) / (1000 * len(labels))
        return Validation(float(loss), {"validation_accuracy": correct}, error)

    @torch.no_grad()
    def predict(self, encoded: Sequence[Encoded]) -> torch.Tensor:
        """Probabilities of the labels, one row per pair."""
        self.network.eval()
        found = torch.empty(len(encoded), self.network.config.num_labels)
        order = sorted(range(len(encoded)), key=lambda i: len(encoded[i][0]))
        size = 2 * self._recipe.batch
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            found[rows] = self._logits([encoded[i] for i in rows]).softmax(-1)
        return found

    def accuracy(self, pairs: Sequence[InferencePair], *, by_contradiction: bool = False) -> float:
        """Returns the share of pairs whose label is found; `by_contradiction`: contradiction or
        not."""
        encoded = self.encode(pairs)
        found, labels = self.predict(encoded), _labels(encoded)
        if by_contradiction:
            place = NLI_LABELS.index("contradiction")
            right = (found[:, place] > 0.5) == (labels == place)
        else:
            right = found.argmax(1) == labels
        return float(right.double().mean())

    def _logits(self, batch: Sequence[Encoded]) -> torch.Tensor:
        inputs = pad([(ids, types) for ids, types, _ in batch], self._tokenizer)
        logits: torch.Tensor = self.network(**inputs).logits
        return logits


def _labels(batch: Sequence[Encoded]) -> torch.Tensor:
    return torch.tensor([label for _, _, label in batch])
