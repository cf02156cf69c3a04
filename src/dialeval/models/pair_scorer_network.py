"""The scorer of BERT-RUBER and PONE: does this response fit this query? (Lan et al., 2020, 3.3.3)

Both are vectors of a frozen encoder. With a learned matrix M,

    x = [q ; q^T M r ; r]      x -> 256 -> 512 -> 128 -> 1, ReLU and dropout after each hidden layer

and the sigmoid of the last number is the score. BERT-RUBER and PONE are this one network; they
differ in what it learns from.

What the encoder reads is here too, since a trained network knows nothing else: the last 100 words
of an utterance, and how the utterances before a response become one query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

import torch

from dialeval.words import UNSPACED

ContextRule = Literal["sum", "weighted", "last"]
"""How utterance vectors become the query.

sum       all of them, as in the released code
weighted  their mean, each turn counting half as much as the one after it
last      the last one, whatever was said before
"""

CONTEXT_RULES: tuple[ContextRule, ...] = get_args(ContextRule)

HIDDEN = (256, 512, 128)

UNKNOWN = "[UNK]"
"""What the released code encodes instead of a blank utterance."""

_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
"""A Chinese or Japanese character, or a run of other letters: those scripts have no spaces."""


class PairScorerNetwork(torch.nn.Module):
    """`dimensions` of a vector, sizes of the `hidden` layers. Outputs are logits."""

    def __init__(
        self, dimensions: int, hidden: Sequence[int] = HIDDEN, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.bilinear = torch.nn.Parameter(torch.rand(dimensions, dimensions))
        sizes = [2 * dimensions + 1, *hidden]
        self.hidden = torch.nn.ModuleList(
            torch.nn.Linear(size, following) for size, following in pairwise(sizes)
        )
        self.out = torch.nn.Linear(sizes[-1], 1)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, query: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
        """Logits, one per row of both."""
        logits: torch.Tensor = self.out(self.pair_vectors(query, response)).squeeze(-1)
        return logits

    def pair_vectors(self, query: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
        """What the last layer reads of each pair: the plane where it is 0 divides good from bad."""
        match = ((query @ self.bilinear) * response).sum(dim=-1, keepdim=True)
        x = torch.cat([query, match, response], dim=-1)
        for layer in self.hidden:
            x = self.dropout(torch.relu(layer(x)))
        return x


def context_vector(vectors: torch.Tensor, rule: ContextRule) -> torch.Tensor:
    """The query, from one row per turn, the last turn last. No turn at all is the zero vector."""
    turns = len(vectors)
    if not turns:
        return vectors.new_zeros(vectors.shape[-1])
    if rule == "last":
        return vectors[-1]
    if rule == "sum":
        return vectors.sum(dim=0)
    weights = 0.5 ** torch.arange(turns - 1, -1, -1, dtype=vectors.dtype, device=vectors.device)
    return (weights / weights.sum()) @ vectors


def too_long(text: str, words: int) -> bool:
    """Whether `last_words` leaves something out."""
    return sum(1 for _ in _WORD.finditer(text)) > words


def last_words(text: str, words: int) -> str:
    """The end of a text: its last so many words, in Chinese its last so many characters."""
    starts = [word.start() for word in _WORD.finditer(text)]
    if not starts:
        return UNKNOWN
    return text[starts[-words] if len(starts) > words else starts[0] :].rstrip()
