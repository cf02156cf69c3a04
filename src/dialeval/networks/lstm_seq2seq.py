"""The chatbots that the papers put to the test: an LSTM that reads, an LSTM that answers.

OpenNMT's model of that time (Klein et al., 2017), with its defaults in `dialeval train seq2seq
--preset paper`: `layers` of LSTM on both sides; global attention of the kind `general` (Luong et
al., 2015, section 3.1)

    score(h_t, s) = h_t W s        c_t = softmax-weighted mean of the encoder's states s
    o_t = tanh(V [c_t ; h_t])      P(token) = softmax(U o_t + b)

and input feeding (section 3.3): o_t goes into the first layer of the decoder together with the next
token. The decoder starts in the last state of the encoder.

CopyNet (Gu et al., 2016) adds a second way to say a token: to copy it from the history. Both ways
share one softmax (equations 4 to 8),

    psi_g(y)   = U o_t + b                       for each token of the vocabulary
    psi_c(x_j) = tanh(s_j W_c) h_t               for each token x_j of the history
    P(y)       = (exp psi_g(y) + sum of exp psi_c(x_j) over all j with x_j = y) / Z

and the decoder also reads the encoder's states where the token that it just said stands in the
history, weighted by how likely it was to be copied from there (selective read, equation 9). Pieces
of bytes leave no word unknown, so that every word of a history can be copied; the marks that
separate turns cannot.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dialeval.networks.reply_network import NetworkConfig, ReplyNetwork, State, padding_of

SMALLEST = 1e-30
"""A probability that is 0 in 32 bits still has a logarithm."""


class LstmSeq2Seq(ReplyNetwork):
    """State: `hidden` and `cell` of each layer, the last `output` (input feeding), and the
    encoder's states (`memory`) with their `padding`."""

    more_inputs = 0
    """What the decoder reads besides a token and its last output, in units."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        units = config.units
        between = config.dropout if config.layers > 1 else 0.0
        self.source_words = nn.Embedding(config.vocabulary, units)
        self.target_words = nn.Embedding(config.vocabulary, units)
        self.encoder = nn.LSTM(units, units, config.layers, dropout=between, batch_first=True)
        self.decoder = nn.ModuleList(
            nn.LSTMCell((2 + self.more_inputs) * units if layer == 0 else units, units)
            for layer in range(config.layers)
        )
        self.attend = nn.Linear(units, units, bias=False)
        self.combine = nn.Linear(2 * units, units, bias=False)
        self.head = nn.Linear(units, config.vocabulary)
        self.dropout = nn.Dropout(config.dropout)

    def encode(self, ids: torch.Tensor, lengths: torch.Tensor) -> State:
        packed = pack_padded_sequence(
            self.source_words(ids), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, (hidden, cell) = self.encoder(packed)
        memory, _ = pad_packed_sequence(states, batch_first=True)
        return {
            "hidden": hidden.transpose(0, 1),
            "cell": cell.transpose(0, 1),
            "output": memory.new_zeros(len(ids), self.config.units),
            "memory": memory,
            "padding": padding_of(lengths, memory.shape[1]),
        }

    def step(self, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        _, after = self._decode(torch.cat([self.target_words(tokens), state["output"]], 1), state)
        return self.head(after["output"]), after

    def _decode(self, value: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Runs the decoder's layers and the attention; also returns the highest hidden state."""
        hidden, cell = [], []
        for number, layer in enumerate(self.decoder):
            above, kept = layer(value, (state["hidden"][:, number], state["cell"][:, number]))
            hidden.append(above)
            cell.append(kept)
            value = self.dropout(above) if number + 1 < len(self.decoder) else above
        memory = state["memory"]
        scores = torch.bmm(memory, self.attend(value)[:, :, None])[:, :, 0]
        weights = scores.masked_fill(state["padding"], -torch.inf).softmax(1)
        context = torch.bmm(weights[:, None], memory)[:, 0]
        output = self.dropout(torch.tanh(self.combine(torch.cat([context, value], 1))))
        after = {"hidden": torch.stack(hidden, 1), "cell": torch.stack(cell, 1), "output": output}
        return value, {**state, **after}


class CopyNet(LstmSeq2Seq):
    """State: that of the LSTM; the tokens of the history (`ids`), their `keys` tanh(s W_c), where
    nothing can be copied from (`fixed`), and the last psi_c (`copying`)."""

    more_inputs = 1

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.copy = nn.Linear(config.units, config.units, bias=False)

    def encode(self, ids: torch.Tensor, lengths: torch.Tensor) -> State:
        state = super().encode(ids, lengths)
        width = state["memory"].shape[1]
        fixed = state["padding"] | (ids[:, :width] == self.config.turn)
        return {
            **state,
            "ids": ids[:, :width],
            "keys": torch.tanh(self.copy(state["memory"])),
            "fixed": fixed,
            "copying": torch.zeros_like(fixed, dtype=state["memory"].dtype),
        }

    def step(self, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        read = torch.cat(
            [self.target_words(tokens), self._selective_read(tokens, state), state["output"]], 1
        )
        value, after = self._decode(read, state)
        copying = torch.bmm(state["keys"], value[:, :, None])[:, :, 0]
        after["copying"] = copying
        generating = self.head(after["output"])
        allowed = copying.masked_fill(state["fixed"], -torch.inf)
        total = torch.cat([generating, allowed], 1).logsumexp(1, keepdim=True)
        copied = (allowed - total).exp()
        shares = (generating - total).exp().scatter_add(1, state["ids"], copied)
        return shares.clamp_min(SMALLEST).log(), after

    def _selective_read(self, tokens: torch.Tensor, state: State) -> torch.Tensor:
        """Returns 0 where the token does not stand in the history."""
        elsewhere = (state["ids"] != tokens[:, None]) | state["fixed"]
        found = ~elsewhere.all(1, keepdim=True)
        # A row without the token would be a softmax over nothing.
        scores = state["copying"].masked_fill(elsewhere & found, -torch.inf)
        weights = scores.softmax(1) * found
        return torch.bmm(weights[:, None], state["memory"])[:, 0]
