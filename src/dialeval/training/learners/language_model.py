"""Next-token prediction over whole dialogues, packed by length (see `recipes/lm.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dialeval.training.examples.corpora import Dialogue
from dialeval.training.loop import NetworkLearner, Validation

if TYPE_CHECKING:
    from dialeval.training.recipes.lm import LanguageModel

BUCKET = 8
"""Dialogues whose lengths differ by fewer tokens count as equally long."""


class LanguageModelLearner(NetworkLearner):
    """Next-token prediction."""

    network: Any

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        train: Sequence[Dialogue],
        validation: Sequence[Dialogue],
        recipe: LanguageModel,
    ) -> None:
        self.network = network
        self._recipe = recipe
        self._train = self._choose(encode_dialogues(tokenizer, train, recipe.dialogue_tokens))
        self._validation = encode_dialogues(tokenizer, validation, recipe.dialogue_tokens)
        self._pad = tokenizer.eos_token_id or 0
        # The batches of the first epoch say how large those of all epochs are: as many in each.
        order = _order(self._train, np.random.default_rng([recipe.seed, 0]))
        self._sizes = _sizes([len(self._train[i]) for i in order], recipe.batch_tokens)

    @property
    def tokens(self) -> int:
        """Tokens that one epoch sees."""
        return sum(len(ids) for ids in self._train)

    def batches(self, epoch: int) -> list[list[list[int]]]:
        generator = np.random.default_rng([self._recipe.seed, epoch])
        return _shuffled(self._train, _order(self._train, generator), self._sizes, generator)

    def loss(self, batch: list[list[int]]) -> torch.Tensor:
        self.network.train()
        total, count = self._nll(batch)
        return total / count

    def validate(self) -> Validation:
        loss = self.mean_nll(self._validation)
        return Validation(loss, {"validation_perplexity": math.exp(loss)})

    @torch.no_grad()
    def mean_nll(self, encoded: Sequence[list[int]]) -> float:
        """Mean negative log-likelihood of a token."""
        self.network.eval()
        generator = np.random.default_rng(0)
        order = _order(encoded, generator)
        sizes = _sizes([len(encoded[i]) for i in order], 2 * self._recipe.batch_tokens)
        total, count = 0.0, 0
        for batch in _shuffled(encoded, order, sizes, generator):
            nll, n = self._nll(batch)
            total, count = total + float(nll), count + n
        return total / count

    def _nll(self, batch: list[list[int]]) -> tuple[torch.Tensor, int]:
        width = max(len(ids) for ids in batch)
        ids = torch.full((len(batch), width), self._pad)
        real = torch.zeros((len(batch), width), dtype=torch.bool)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = torch.tensor(tokens)
            real[row, : len(tokens)] = True
        # Padding lies on the right, where causal attention never looks: no mask is needed.
        logits = self.network(input_ids=ids, use_cache=False).logits[:, :-1]
        wanted = real[:, 1:]
        nll = torch.nn.functional.cross_entropy(
            logits[wanted].float(), ids[:, 1:][wanted], reduction="sum"
        )
        return nll, int(wanted.sum())

    def _choose(self, encoded: list[list[int]]) -> list[list[int]]:
        """A seeded selection of dialogues with at most `tokens` tokens."""
        if self._recipe.tokens is None:
            return encoded
        order = np.random.default_rng(self._recipe.seed).permutation(len(encoded))
        chosen, total = [], 0
        for i in order:
            if total + len(encoded[i]) > self._recipe.tokens:
                break
            chosen.append(encoded[i])
            total += len(encoded[i])
        return chosen


def encode_dialogues(tokenizer: Any, dialogues: Sequence[Dialogue], block: int) -> list[list[int]]:
    """Token ids of each dialogue, turn by turn as in the layout `plain`; a long end is cut."""
    from dialeval.models.layout import start_token

    start = start_token(tokenizer)
    encoded = []
    for dialogue in dialogues:
        ids = [start] if start is not None else []
        for i, turn in enumerate(dialogue):
            ids += tokenizer.encode(turn if i == 0 else f" {turn}", add_special_tokens=False)
        if len(ids) > 1:
            encoded.append(ids[:block])
    return encoded


def _order(encoded: Sequence[list[int]], generator: np.random.Generator) -> list[int]:
    """From short to long, and at random among those of about one length."""
    jitter = generator.random(len(encoded))
    return sorted(range(len(encoded)), key=lambda i: (len(encoded[i]) // BUCKET, jitter[i]))


def _sizes(lengths: Sequence[int], batch_tokens: int) -> list[int]:
    """How many dialogues of these lengths, in this order, fit into each batch."""
    sizes: list[int] = []
    for length in lengths:
        if sizes and (sizes[-1] + 1) * length <= batch_tokens:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return sizes


def _shuffled(
    encoded: Sequence[list[int]],
    order: Sequence[int],
    sizes: Sequence[int],
    generator: np.random.Generator,
) -> list[list[list[int]]]:
    """The dialogues cut into batches of these sizes, the batches in random order."""
    remaining = iter(order)
    batches = [[encoded[i] for i in islice(remaining, size)] for size in sizes]
    return [batches[i] for i in generator.permutation(len(batches))]
