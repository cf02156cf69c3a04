"""Learning to say the next turn: cross-entropy over the tokens of a reply, given the history."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from dialeval.training.examples.reply_pairs import ReplyPair, make_batches
from dialeval.training.examples.vocabulary import Pieces
from dialeval.training.learners.architectures import (
    Architecture,
    LstmArchitecture,
    TransformerArchitecture,
)
from dialeval.training.loop import NetworkLearner, Objective, Validation
from dialeval.training.settings import Settings

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


@dataclass(frozen=True)
class Preset:
    """All that decides what is learned."""

    architecture: Architecture
    options: Seq2SeqOptions
    settings: Settings


LSTM_SMALL = Preset(
    LstmArchitecture(),
    Seq2SeqOptions(batch=32),
    Settings(epochs=2, learning_rate=2e-3, clip=5.0),
)

# OpenNMT's defaults in 2017 and 2018; the papers name the layers, the units and SGD with rate 1.
LSTM_PAPER = Preset(
    LstmArchitecture(units=500, layers=2, dropout=0.3),
    Seq2SeqOptions(vocabulary=50_000, pieces="words", history_tokens=50, reply_tokens=50),
    Settings(
        epochs=13,
        learning_rate=1.0,
        optimizer="sgd",
        schedule="halving",
        halve_after=8,
        clip=5.0,
    ),
)

TRANSFORMER_SMALL = Preset(
    TransformerArchitecture(),
    Seq2SeqOptions(batch=2048, per="tokens", smoothing=0.1),
    Settings(epochs=1, learning_rate=2e-3, beta2=0.998),
)

# The command in the README of HolisticEval's release; its batch size of 16 counts tokens, and the
# gradients of two batches are added up. Gradients are not clipped, as in OpenNMT's Transformer.
TRANSFORMER_PAPER = Preset(
    TransformerArchitecture(layers=6, units=512, feed_forward=2048, heads=8, dropout=0.1),
    Seq2SeqOptions(
        vocabulary=50_000,
        pieces="words",
        history_tokens=100,
        reply_tokens=50,
        batch=2 * 16,
        per="tokens",
        smoothing=0.1,
    ),
    Settings(
        epochs=1,
        steps=100_000,
        learning_rate=2 * 512**-0.5,
        beta2=0.998,
        schedule="noam",
        warmup_steps=8000,
        clip=0.0,
    ),
)


def changed(
    preset: Preset,
    *,
    epochs: int | None = None,
    pairs: int | None = None,
    units: int | None = None,
    vocabulary: int | None = None,
    seed: int = 0,
) -> Preset:
    """A preset with some of it changed; None leaves things as they are."""
    settings = replace(preset.settings, seed=seed)
    if units is not None and settings.schedule == "noam":  # its rate has units ** -0.5 in it
        rate = settings.learning_rate * (preset.architecture.units / units) ** 0.5
        settings = replace(settings, learning_rate=rate)
    if epochs is not None:
        settings = replace(settings, epochs=epochs, steps=0)
    options = replace(
        preset.options, pairs=pairs, vocabulary=vocabulary or preset.options.vocabulary
    )
    architecture = replace(preset.architecture, units=units or preset.architecture.units)
    return Preset(architecture, options, settings)


class Seq2SeqLearner(NetworkLearner):
    """A network of `architectures`, and pairs."""

    def __init__(
        self,
        network: torch.nn.Module,
        preset: Preset,
        start: int,
        train: Sequence[ReplyPair],
        validation: Sequence[ReplyPair],
    ) -> None:
        options, seed = preset.options, preset.settings.seed
        self.network = network
        self._architecture = preset.architecture
        self._start = start
        self._validation = validation
        self._options = options
        self._seed = seed
        chosen = np.random.default_rng(seed).permutation(len(train))[: options.pairs]
        self.train = [train[i] for i in sorted(chosen)]

    def batches(self, epoch: int) -> list[list[ReplyPair]]:
        generator = np.random.default_rng([self._seed, epoch])
        return make_batches(self.train, self._options.batch, self._options.per, generator)

    def loss(self, batch: list[ReplyPair]) -> Objective:
        self.network.train()
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
    def mean_nll(self, pairs: Sequence[ReplyPair]) -> float:
        """Mean negative log-likelihood of a token of the replies."""
        self.network.eval()
        total, count = 0.0, 0
        for batch in make_batches(pairs, VALIDATION_TOKENS, "tokens", np.random.default_rng(0)):
            logits, wanted = self._predict(batch)
            total += float(cross_entropy(logits, wanted, reduction="sum"))
            count += len(wanted)
        return total / count

    def _predict(self, batch: Sequence[ReplyPair]) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits at each token of the replies, and the tokens themselves."""
        sources, lengths = _pad([pair.source for pair in batch])
        read, _ = _pad([(self._start, *pair.target[:-1]) for pair in batch])
        wanted, sizes = _pad([pair.target for pair in batch])
        real = torch.arange(wanted.shape[1])[None] < sizes[:, None]
        logits = self._architecture.logits(self.network, sources, lengths, read)
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
