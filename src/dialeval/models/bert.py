"""BERT (Devlin et al., NAACL 2019) for reading: one state per token, and nothing for padding.

    h = LayerNorm(h + W_o attention(h));   h = LayerNorm(h + W_2 gelu(W_1 h))

transformers has the same network. This one is here for two reasons:

- transformers takes some four seconds to import, three times what a small encoder takes to answer
  ten dialogues. `load` needs torch and safetensors only.
- Padding is never computed. The texts of a batch lie behind each other, token by token; all that
  mixes tokens is attention, and that goes over texts of equal length together, without a mask.

Modules are named as in transformers, so that weights, adapters and heads fit both. Encoders of any
other kind are loaded by transformers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from dialeval.models.low_rank import Linear
from dialeval.models.weights import ONE_FILE, filled, read_json, read_tensors

DEFAULTS = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}
"""BERT-base, as transformers has it where a configuration is silent."""


@dataclass(frozen=True, slots=True)
class Span:
    """Texts of equal length that lie behind each other, from token `start` on."""

    start: int
    texts: int
    length: int


def load(directory: Path) -> Bert | None:
    """The BERT of a directory in the Hugging Face layout; None if it is another kind of network."""
    config = plain_config(directory)
    return None if config is None else filled(lambda: Bert(config), tensors_of(directory))


def plain_config(directory: Path) -> dict[str, Any] | None:
    """The configuration of a network that `Bert` can be; None if only transformers knows it."""
    config = DEFAULTS | read_json(directory / "config.json")
    plain = (
        config.get("model_type") == "bert"
        and config["hidden_act"] == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder", False)
    )
    return config if plain and (directory / ONE_FILE).is_file() else None


def tensors_of(directory: Path) -> dict[str, torch.Tensor]:
    """Weights by their names in `Bert`: under a head, the network is called `bert`."""
    found = read_tensors(directory / ONE_FILE)
    return {name.removeprefix("bert."): tensor for name, tensor in found.items()}


class Bert(nn.Module):
    """All layers, and for heads that want it the pooler on top. Dropout acts in training only."""

    def __init__(self, config: dict[str, Any], *, pooled: bool = False) -> None:
        super().__init__()
        self.config = SimpleNamespace(**config)
        self.embeddings = Embeddings(self.config)
        self.encoder = Stack(self.config)
        if pooled:
            self.pooler = Pooler(self.config.hidden_size)

    @property
    def device(self) -> torch.device:
        return self.embeddings.word_embeddings.weight.device

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> SimpleNamespace:
        """`last_hidden_state` of texts that are padded on the right; of padding it is 0."""
        lengths = attention_mask.sum(dim=1)
        order = torch.argsort(lengths, descending=True, stable=True)
        real = attention_mask[order].bool()
        kinds = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        positions = torch.arange(input_ids.shape[1], device=self.device).expand_as(input_ids)
        states = self.embeddings(input_ids[order][real], positions[real], kinds[order][real])
        spans = list(_spans(lengths[order].tolist()))
        for layer in self.encoder.layer:
            states = layer(states, spans)
        padded = states.new_zeros(*input_ids.shape, states.shape[-1])
        padded[order[:, None].expand_as(real)[real], positions[real]] = states
        return SimpleNamespace(last_hidden_state=padded)


class Pooler(nn.Module):
    """tanh(W h) of the first token, which stands for the whole text."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.dense = Linear(size, size)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        pooled: torch.Tensor = self.dense(states[:, 0]).tanh()
        return pooled


class Stack(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Embeddings(nn.Module):
    """What a token is, where it stands and which of two texts it belongs to, added up."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        size = config.hidden_size
        self.word_embeddings = _table(config.vocab_size, size)
        self.position_embeddings = _table(config.max_position_embeddings, size)
        self.token_type_embeddings = _table(config.type_vocab_size, size)
        self.LayerNorm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, ids: torch.Tensor, positions: torch.Tensor, kinds: torch.Tensor
    ) -> torch.Tensor:
        found = self.word_embeddings(ids) + self.token_type_embeddings(kinds)
        dropped: torch.Tensor = self.dropout(
            self.LayerNorm(found + self.position_embeddings(positions))
        )
        return dropped


class Layer(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.attention = Attention(config)
        dense = Linear(config.hidden_size, config.intermediate_size)
        self.intermediate = nn.ModuleDict({"dense": dense})
        self.output = Added(config.intermediate_size, config)

    def forward(self, states: torch.Tensor, spans: Sequence[Span]) -> torch.Tensor:
        states = self.attention(states, spans)
        wide = nn.functional.gelu(self.intermediate["dense"](states))
        added: torch.Tensor = self.output(wide, states)
        return added


class Attention(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        size = config.hidden_size
        self.self = nn.Module()
        for name in ("query", "key", "value"):
            setattr(self.self, name, Linear(size, size))
        self.output = Added(size, config)
        self._heads = config.num_attention_heads
        self._dropout = config.attention_probs_dropout_prob

    def forward(self, states: torch.Tensor, spans: Sequence[Span]) -> torch.Tensor:
        sides = [getattr(self.self, name)(states) for name in ("query", "key", "value")]
        mixed = [self._attend(sides, span) for span in spans]
        added: torch.Tensor = self.output(torch.cat(mixed), states)
        return added

    def _attend(self, sides: Sequence[torch.Tensor], span: Span) -> torch.Tensor:
        tokens = span.texts * span.length
        shape = (span.texts, span.length, self._heads, -1)
        query, key, value = (
            side[span.start : span.start + tokens].view(shape).transpose(1, 2) for side in sides
        )
        found = nn.functional.scaled_dot_product_attention(
            query, key, value, dropout_p=self._dropout if self.training else 0.0
        )
        return found.transpose(1, 2).reshape(tokens, -1)


class Added(nn.Module):
    """LayerNorm(before + W h)."""

    def __init__(self, width: int, config: Any) -> None:
        super().__init__()
        self.dense = Linear(width, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, states: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = self.LayerNorm(before + self.dropout(self.dense(states)))
        return added


def _table(rows: int, size: int) -> nn.Embedding:
    """Not filled at random: torch would load its compiler for that, and weights come anyway."""
    return nn.Embedding(rows, size, _weight=torch.empty(rows, size))


def _spans(lengths: Sequence[int]) -> Iterator[Span]:
    """Of lengths in descending order."""
    start = first = 0
    for number in range(1, len(lengths) + 1):
        if number == len(lengths) or lengths[number] != lengths[first]:
            if lengths[first]:
                yield Span(start, number - first, lengths[first])
            start += (number - first) * lengths[first]
            first = number
