"""Learning to say the next turn: cross-entropy over the tokens of a reply, given the history."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from dialeval.training.examples.reply_pairs import Pair, make_batches
from dialeval.training.examples.vocabulary import Pieces
from dialeval.training.learners.architectures import Architecture
from dialeval.training.loop import Objective, Validation

VALIDATION_TOKENS = 4096


@dataclass(frozen=True)
class Seq2SeqOptions:
    """What is learned from, and how it is put together.

    batch, per  the size of a batch, in pairs or in tokens; a step minimises the loss per pair, or
                per token
    smoothing   share of the probability that is spread over the whole vocabulary
    pairs       a seeded selection of so many pairs is learned from; None: all
    """

    vocabulary: int = 4000
    pieces: Pieces = "bpe"
    history_tokens: int = 48
    reply_tokens: int = 40
    batch: int = 64
    per: Literal["pairs", "tokens"] = "pairs"
    smoothing: float = 0.0
    pairs: int | None = None


class Seq2SeqRecipe:
    """A network of `architectures`, and pairs."""

    def __init__(
        self,
        model: torch.nn.Module,
        architecture: Architecture,
        start: int,
        train: Sequence[Pair],
        validation: Sequence[Pair],
        options: Seq2SeqOptions,
        seed: int,
    ) -> None:
        self.model = model
        self._architecture = architecture
        self._start = start
        self._validation = validation
        self._options = options
        self._seed = seed
        chosen = np.random.default_rng(seed).permutation(len(train))[: options.pairs]
        self.train = [train[i] for i in sorted(chosen)]

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    def batches(self, epoch: int) -> list[list[Pair]]:
        generator = np.random.default_rng([self._seed, epoch])
        return make_batches(self.train, self._options.batch, self._options.per, generator)

    def loss(self, batch: list[Pair]) -> Objective:
        self.model.train()
        logits, wanted = self._predict(batch)
        nll = cross_entropy(logits, wanted, reduction="sum")
        learned = nll
        if self._options.smoothing:
            learned = cross_entropy(
                logits, wanted, reduction="sum", label_smoothing=self._options.smoothing
            )
        share = len(batch) if self._options.per == "pairs" else len(wanted)
        return Objective(learned / share, nll / len(wanted))

    def validate(self) -> Validation:
        loss = self.mean_nll(self._validation)
        return Validation(loss, {"validation_perplexity": math.exp(loss)})

    @torch.no_grad()
    def mean_nll(self, pairs: Sequence[Pair]) -> float:
        """Mean negative log-likelihood of a token of the replies."""
        self.model.eval()
        total, count = 0.0, 0
        for batch in make_batches(pairs, VALIDATION_TOKENS, "tokens", np.random.default_rng(0)):
            logits, wanted = self._predict(batch)
            total += float(cross_entropy(logits, wanted, reduction="sum"))
            count += len(wanted)
        return total / count

    def _predict(self, batch: Sequence[Pair]) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits at each token of the replies, and the tokens themselves."""
        sources, lengths = _pad([pair.source for pair in batch])
        read, _ = _pad([(self._start, *pair.target[:-1]) for pair in batch])
        wanted, sizes = _pad([pair.target for pair in batch])
        real = torch.arange(wanted.shape[1])[None] < sizes[:, None]
        logits = self._architecture.logits(self.model, sources, lengths, read)
        return logits[real].float(), wanted[real]


def _pad(rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """On the right, with 0, and how long each row is."""
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.zeros((len(rows), int(lengths.max())), dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
    return ids, lengths


def describe(model: Any) -> str:
    """`2.1 M parameters`."""
    count = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return f"{count / 1e6:.1f} M parameters"
