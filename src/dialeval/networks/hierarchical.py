"""Chatbots that read a dialogue turn by turn: HRED and ReCoSa, PONE's multi-turn systems.

HRED (Serban et al., 2016): a hierarchy of recurrent networks,

    u_i = GRU over the words of turn i, its last state
    c   = GRU over u_1 ... u_n, its last state
    d_t = GRU over [w_t ; c], from tanh(D c)
    P(token) = softmax(U tanh(V [d_t ; c ; w_t]) + b)

where the decoder sees the dialogue through c alone.

ReCoSa (Zhang et al., 2019): which turns matter is found by attention,

    h_i = W [LSTM over the words of turn i, its last state ; the position of the turn]
    r   = self-attention over h_1 ... h_n
    o   = masked self-attention over the words of the reply, then attention from them to r

with feed-forward layers and residual connections as in the Transformer, each normalised before it.

The token that begins a turn (`NetworkConfig.turn`) tells turns apart. A history that was cut may
begin inside of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from dialeval.networks.reply_network import NetworkConfig, ReplyNetwork, State, padding_of


@dataclass(frozen=True)
class SplitHistories:
    """The turns of all histories, `most` to each; those that a history lacks are of length 1.

    ids      (histories * most, longest turn)
    sizes    tokens of each turn
    counts   turns of each history
    """

    ids: torch.Tensor
    sizes: torch.Tensor
    counts: torch.Tensor
    most: int


def split_turns(ids: torch.Tensor, lengths: torch.Tensor, turn: int) -> SplitHistories:
    """Splits before each token that begins a turn."""
    real = ~padding_of(lengths, ids.shape[1])
    number = ((ids == turn) & real).cumsum(1)
    number = number - number[:, :1]
    counts = number.masked_fill(~real, 0).amax(1) + 1
    most = int(counts.max())
    place = (torch.arange(len(ids), device=ids.device)[:, None] * most + number)[real]
    sizes = torch.bincount(place, minlength=len(ids) * most)
    # Tokens of a turn stand together: a turn begins where all turns before it end.
    within = torch.arange(len(place), device=ids.device) - (sizes.cumsum(0) - sizes)[place]
    found = ids.new_zeros(len(sizes), int(sizes.max()))
    found[place, within] = ids[real]
    return SplitHistories(found, sizes.clamp_min(1), counts, most)


class Hred(ReplyNetwork):
    """State: the `context` c, and the `hidden` states of the decoder's layers."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        units, layers = config.units, config.layers
        between = config.dropout if layers > 1 else 0.0
        self.words = nn.Embedding(config.vocabulary, units)
        self.turns = nn.GRU(units, units, layers, dropout=between, batch_first=True)
        self.dialogue = nn.GRU(units, units, batch_first=True)
        self.begin = nn.Linear(units, layers * units)
        self.decoder = nn.ModuleList(
            nn.GRUCell(2 * units if layer == 0 else units, units) for layer in range(layers)
        )
        self.combine = nn.Linear(3 * units, units)
        self.head = nn.Linear(units, config.vocabulary)
        self.dropout = nn.Dropout(config.dropout)

    def encode(self, ids: torch.Tensor, lengths: torch.Tensor) -> State:
        split = split_turns(ids, lengths, self.config.turn)
        read = pack_padded_sequence(
            self.dropout(self.words(split.ids)),
            split.sizes.cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        last = self.turns(read)[1][-1].view(len(ids), split.most, -1)
        turns = pack_padded_sequence(
            last, split.counts.cpu(), batch_first=True, enforce_sorted=False
        )
        context = self.dialogue(turns)[1][0]
        hidden = torch.tanh(self.begin(context)).view(len(ids), self.config.layers, -1)
        return {"context": context, "hidden": hidden}

    def step(self, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        word, context = self.dropout(self.words(tokens)), state["context"]
        value = torch.cat([word, context], 1)
        hidden = []
        for number, layer in enumerate(self.decoder):
            above = layer(value, state["hidden"][:, number])
            hidden.append(above)
            value = self.dropout(above)
        output = self.dropout(torch.tanh(self.combine(torch.cat([value, context, word], 1))))
        return self.head(output), {**state, "hidden": torch.stack(hidden, 1)}


class ReCoSa(ReplyNetwork):
    """State: the turns as `memory` with their `padding`, and the `tokens` of the reply so far."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        units = config.units
        attention: dict[str, Any] = {
            "d_model": units,
            "nhead": config.heads,
            "dim_feedforward": 4 * units,
            "dropout": config.dropout,
            "batch_first": True,
            "norm_first": True,
        }
        self.words = nn.Embedding(config.vocabulary, units)
        self.turns = nn.LSTM(units, units, batch_first=True)
        self.place = nn.Linear(2 * units, units)
        self.dialogue = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**attention),
            config.layers,
            nn.LayerNorm(units),
            enable_nested_tensor=False,
        )
        self.reply = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(**attention), config.layers, nn.LayerNorm(units)
        )
        self.head = nn.Linear(units, config.vocabulary)
        self.dropout = nn.Dropout(config.dropout)

    def encode(self, ids: torch.Tensor, lengths: torch.Tensor) -> State:
        split = split_turns(ids, lengths, self.config.turn)
        read = pack_padded_sequence(
            self.dropout(self.words(split.ids) * math.sqrt(self.config.units)),
            split.sizes.cpu(),
            batch_first=True,
            enforce_sorted=False,
        )
        last = self.turns(read)[1][0][-1].view(len(ids), split.most, -1)
        padding = padding_of(split.counts, split.most)
        # The last turn has position 0: how far back a turn lies does not depend on the rest.
        numbers = torch.arange(split.most, device=ids.device)
        back = (split.counts[:, None] - 1 - numbers).clamp_min(0)
        where = positions(split.most, self.config.units, last)[back]
        placed = self.place(torch.cat([last, where], 2))
        memory = self.dialogue(placed, src_key_padding_mask=padding)
        return {"memory": memory, "padding": padding, "tokens": ids[:, :0]}

    def step(self, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        said = torch.cat([state["tokens"], tokens[:, None]], 1)
        return self._scores(said, state)[:, -1], {**state, "tokens": said}

    def forward(
        self, sources: torch.Tensor, lengths: torch.Tensor, targets: torch.Tensor
    ) -> torch.Tensor:
        """All tokens at once: what comes after a token is masked."""
        return self._scores(targets, self.encode(sources, lengths))

    def _scores(self, tokens: torch.Tensor, state: State) -> torch.Tensor:
        units, length = self.config.units, tokens.shape[1]
        words = self.words(tokens) * math.sqrt(units)
        later = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)
        output = self.reply(
            self.dropout(words + positions(length, units, words)),
            state["memory"],
            tgt_mask=later,
            memory_key_padding_mask=state["padding"],
        )
        scores: torch.Tensor = self.head(output)
        return scores


def positions(count: int, units: int, like: torch.Tensor) -> torch.Tensor:
    """Sines and cosines of positions (Vaswani et al., 2017, section 3.5): (count, units)."""
    numbers = torch.arange(count, device=like.device, dtype=like.dtype)[:, None]
    steps = torch.arange(0, units, 2, device=like.device, dtype=like.dtype)
    angles = numbers * torch.exp(-math.log(10_000.0) / units * steps)
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)
