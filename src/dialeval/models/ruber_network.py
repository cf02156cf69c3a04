"""RUBER's unreferenced scorer: does this response fit this query? (Tao et al., AAAI 2018, 3.2)

    q = final states of a bi-directional GRU over the words of the query; r likewise, a GRU of its
        own over the words of the response
    x = [q ; q^T M r ; r]      x -> tanh layer -> 1, dropout in between

and the sigmoid of the last number is the score. As in PONE's code (Lan et al., 2020), the final
states of both directions are added. Words come as vectors that are not trained; all words without
one share a vector that is.
"""

from __future__ import annotations

import torch

UNITS, HIDDEN = 96, 96


class RuberNetwork(torch.nn.Module):
    """`dimensions` of a word vector, `units` of a GRU, size of the `hidden` layer. Outputs are
    logits."""

    def __init__(
        self, dimensions: int, units: int = UNITS, hidden: int = HIDDEN, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.unknown = torch.nn.Parameter(torch.zeros(dimensions))
        self.query = torch.nn.GRU(dimensions, units, batch_first=True, bidirectional=True)
        self.response = torch.nn.GRU(dimensions, units, batch_first=True, bidirectional=True)
        self.bilinear = torch.nn.Parameter(torch.empty(units, units))
        torch.nn.init.xavier_uniform_(self.bilinear)
        self.hidden = torch.nn.Linear(2 * units + 1, hidden)
        self.out = torch.nn.Linear(hidden, 1)
        self.dropout = torch.nn.Dropout(dropout)

    def encode_queries(self, words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """(texts, words, dimensions), NaN where a word is unknown -> (texts, units)."""
        return self._encode(self.query, words, lengths)

    def encode_responses(self, words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return self._encode(self.response, words, lengths)

    def forward(self, query: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
        """Logits of encoded queries and responses, one per row of both."""
        match = ((query @ self.bilinear) * response).sum(dim=-1, keepdim=True)
        x = torch.tanh(self.hidden(torch.cat([query, match, response], dim=-1)))
        logits: torch.Tensor = self.out(self.dropout(x)).squeeze(-1)
        return logits

    def _encode(
        self, gru: torch.nn.GRU, words: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        known = torch.where(words.isnan(), self.unknown, words)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            known, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        _, states = gru(packed)
        summed: torch.Tensor = states.sum(dim=0)
        return summed
