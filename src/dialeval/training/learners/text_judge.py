"""Judges that read text learn to tell good responses from bad ones (see `models.text_judge`).

`TextJudgeLearner` minimises cross-entropy with the target, which may lie between 0 and 1.
`RankingLearner` learns only an order: the loss of Bradley and Terry is
- log sigmoid(logit of the better - logit of the worse). `TwinJudgeLearner` encodes turns and
response separately: every response of a batch is a wrong one for the turns of all the others, so
that a batch of B dialogues holds B right pairs and B (B - 1) wrong ones, for 2 B texts that are
read (the pairwise sigmoid loss of Zhai et al., ICCV 2023). Right and wrong pairs weigh the same in
the loss, hence a pair that may as well be right as wrong scores one half. A wrong pair with the
words of the right response is left out.

Examples are made again for every epoch, so that a response is not always corrupted in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from dialeval.models.classifier import Segmented, pad
from dialeval.models.loading import positions_of
from dialeval.models.text_judge import (
    Reading,
    TextJudgeConfig,
    TextJudgeNetwork,
    TwinJudgeConfig,
    TwinJudgeNetwork,
    TwinReading,
)
from dialeval.training.examples.pair_corpus import Example, Examples
from dialeval.training.learners.sentence_head import accuracy, targets_of
from dialeval.training.loop import NetworkLearner, Validation, similar_batches

PREDICTED_AT_ONCE = 64

Encoded = TypeVar("Encoded")
Network = TypeVar("Network", bound=torch.nn.Module)


class JudgeLearner(NetworkLearner, ABC, Generic[Network, Encoded]):
    """Examples of similar length in batches, validation by cross-entropy with the targets."""

    network: Network

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
        """Examples of equal length share batches."""

    @abstractmethod
    def loss(self, batch: list[Encoded]) -> torch.Tensor: ...

    @abstractmethod
    def logits(self, batch: Sequence[Encoded]) -> torch.Tensor:
        """Returns one logit per example."""

    def batches(self, epoch: int) -> list[list[Encoded]]:
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._make_batches(epoch))
        return self._epoch[1]

    def _make_batches(self, epoch: int) -> list[list[Encoded]]:
        encoded = self.encode(self._examples(epoch))
        generator = np.random.default_rng([self._seed, epoch])
        batches = similar_batches([*map(self.length, encoded)], self._batch, generator)
        return [[encoded[row] for row in batch] for batch in batches]

    def _begin_step(self) -> None:
        self.network.train()
        encoder: Any = self.network.encoder
        encoder.eval()  # dropout in every block takes a third of the time

    def validate(self) -> Validation:
        logits = self.predict(self._validation)
        targets = targets_of(self._validation)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
        return Validation(float(loss), {"validation_accuracy": accuracy(logits, targets)})

    @torch.no_grad()
    def predict(self, examples: Sequence[Example]) -> torch.Tensor:
        """Returns one logit per example."""
        self.network.eval()
        encoded = self.encode(examples)
        found = torch.empty(len(encoded))
        order = sorted(range(len(encoded)), key=lambda i: self.length(encoded[i]))
        for start in range(0, len(order), PREDICTED_AT_ONCE):
            rows = order[start : start + PREDICTED_AT_ONCE]
            found[rows] = self.logits([encoded[i] for i in rows])
        return found


WithTarget = tuple[Segmented, float]
"""What is read, and the target."""


class TextJudgeLearner(JudgeLearner[TextJudgeNetwork, WithTarget]):
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

    def encode(self, examples: Sequence[Example]) -> list[WithTarget]:
        read, _ = self._read([(example.turns, example.response) for example in examples])
        return [(ids, example.target) for ids, example in zip(read, examples, strict=True)]

    def length(self, encoded: WithTarget) -> int:
        return len(encoded[0][0]) // 4

    def loss(self, batch: list[WithTarget]) -> torch.Tensor:
        self._begin_step()
        targets = torch.tensor([target for _, target in batch])
        return torch.nn.functional.binary_cross_entropy_with_logits(self.logits(batch), targets)

    def logits(self, batch: Sequence[WithTarget]) -> torch.Tensor:
        logits: torch.Tensor = self.network(**pad([read for read, _ in batch], self._tokenizer))
        return logits


class RankingLearner(TextJudgeLearner):
    """Examples come two by two, the better one first. Their targets are not used."""

    def _make_batches(self, epoch: int) -> list[list[WithTarget]]:
        encoded = self.encode(self._examples(epoch))
        pairs = list(zip(encoded[::2], encoded[1::2], strict=True))
        generator = np.random.default_rng([self._seed, epoch])
        lengths = [self.length(better) for better, _ in pairs]
        batches = similar_batches(lengths, max(1, self._batch // 2), generator)
        return [[one for row in batch for one in pairs[row]] for batch in batches]

    def loss(self, batch: list[WithTarget]) -> torch.Tensor:
        self._begin_step()
        return _ranking_loss(self.logits(batch))

    def validate(self) -> Validation:
        logits = self.predict(self._validation)
        return Validation(float(_ranking_loss(logits)), {"validation_accuracy": in_order(logits)})

    @torch.no_grad()
    def standardise(self) -> None:
        """An order has no scale of its own: scale the head so that the logits of the validation
        examples have mean 0 and standard deviation 1."""
        logits = self.predict(self._validation)
        mean, deviation = logits.mean(), logits.std()
        if deviation > 0:
            last = self.network.head[-1]
            assert isinstance(last, torch.nn.Linear)
            last.weight.div_(deviation)
            last.bias.sub_(mean).div_(deviation)


BothSides = tuple[tuple[int, ...], tuple[int, ...]]
"""Token ids of the turns and of the response."""


class TwinJudgeLearner(JudgeLearner[TwinJudgeNetwork, BothSides]):
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

    def encode(self, examples: Sequence[Example]) -> list[BothSides]:
        contexts = self._read.contexts([example.turns for example in examples])
        responses = self._read.responses([example.response for example in examples])
        return [(turns, said) for (turns, _), (said, _) in zip(contexts, responses, strict=True)]

    def length(self, encoded: BothSides) -> int:
        return len(encoded[0]) // 16

    def loss(self, batch: list[BothSides]) -> torch.Tensor:
        self._begin_step()
        contexts, responses = self._vectors(batch)
        logits = self.network.logits(contexts @ responses.T)
        texts = [response for _, response in batch]
        right = torch.eye(len(batch))
        wrong = torch.tensor([[float(one != other) for other in texts] for one in texts])
        losses = -torch.nn.functional.logsigmoid((2 * right - 1) * logits)
        weights = right / (2 * len(batch)) + wrong / (2 * wrong.sum().clamp(min=1))
        return (losses * weights).sum()

    def logits(self, batch: Sequence[BothSides]) -> torch.Tensor:
        contexts, responses = self._vectors(batch)
        return self.network.logits((contexts * responses).sum(dim=-1))

    def _vectors(self, batch: Sequence[BothSides]) -> tuple[torch.Tensor, torch.Tensor]:
        contexts = self.network.vectors([context for context, _ in batch], self._tokenizer)
        return contexts, self.network.vectors([said for _, said in batch], self._tokenizer)


def _ranking_loss(logits: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.softplus(logits[1::2] - logits[::2]).mean()


def in_order(logits: torch.Tensor) -> float:
    """Returns the share of pairs whose better one has the higher logit; a tie counts half."""
    ahead = logits[::2] - logits[1::2]
    return float(((ahead > 0).double() + 0.5 * (ahead == 0).double()).mean())
