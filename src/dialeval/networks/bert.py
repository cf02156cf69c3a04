"""BERT (Devlin et al., NAACL 2019) for reading: one state per token, and nothing for padding.

    h = LayerNorm(h + W_o attention(h));   h = LayerNorm(h + W_2 gelu(W_1 h))

transformers has the same network. This one is here for two reasons:

- transformers takes some four seconds to import, three times what a small encoder takes to answer
  ten dialogues. `load` needs torch and safetensors only.
- Padding is never computed. The texts of a batch lie behind each other, token by token; all that
  mixes tokens is attention, and that goes over texts of equal length together, without a mask.

Modules are named as in transformers, so that weights, adapters and heads fit both. Encoders of any
other kind are loaded by transformers.

`BertClassifier` and `BertMaskedLM` put a head on top, for reading:

    BertClassifier    W tanh(V h_[CLS])
    BertMaskedLM      E LayerNorm(gelu(V h)) + b        E: the word embeddings of the network
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from dialeval.model_store.weights import ONE_FILE, filled, read_json, read_tensors
from dialeval.networks.low_rank import Linear, read_adapter

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
    """Returns the BERT of a directory in the Hugging Face layout; None if it is another kind of
    network."""
    config = plain_config(directory)
    return None if config is None else filled(lambda: Bert(config), tensors_of(directory))


def load_pooler(directory: Path) -> Pooler | None:
    """Returns the layer on top of the BERT of a directory; None if its weights are not there."""
    if (config := plain_config(directory)) is None:
        return None
    tensors = tensors_of(directory)
    prefix = "pooler."
    own = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
    return filled(lambda: Pooler(config["hidden_size"]), own)


def plain_config(directory: Path) -> dict[str, Any] | None:
    """Returns the configuration of a network that `Bert` can be; None if only transformers knows
    it."""
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
    """The layers, under the name that the weights have in the file."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))


class Embeddings(nn.Module):
    """The sum of three vectors: of the token, of its position, and of the text that it is in."""

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
    """Attention, then a wide linear layer with gelu; each is added to what it read."""

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
    """Every token of a text attends to every other token of it."""

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
    """Yields a span for each run of equal lengths; the lengths are in descending order."""
    start = first = 0
    for number in range(1, len(lengths) + 1):
        if number == len(lengths) or lengths[number] != lengths[first]:
            if lengths[first]:
                yield Span(start, number - first, lengths[first])
            start += (number - first) * lengths[first]
            first = number


class BertClassifier(nn.Module):
    """BERT with a linear head over the pooled state of the first token."""

    base_model_prefix = "bert"

    def __init__(self, bert: Bert, classifier: nn.Linear) -> None:
        super().__init__()
        self.bert = bert
        self.classifier = classifier
        self.config = bert.config

    @property
    def device(self) -> torch.device:
        return self.bert.device

    def forward(self, **inputs: torch.Tensor) -> SimpleNamespace:
        pooled = self.bert.pooler(self.bert(**inputs).last_hidden_state)
        return SimpleNamespace(logits=self.classifier(pooled))


def load_classifier(
    directory: Path, adapter: Path | None = None, settings: Mapping[str, Any] | None = None
) -> BertClassifier | None:
    """Returns the classifier of a directory, or one that an adapter makes of the encoder there;
    None if one of them is of another kind. `settings` go before those of the configuration."""
    config = plain_config(directory)
    learned = read_adapter(adapter) if adapter else None
    if config is None or (adapter and learned is None):
        return None
    config |= settings or {}
    labels = len(config.get("id2label") or ())
    if not labels:
        return None
    tensors = tensors_of(directory)
    bert = filled(lambda: Bert(config, pooled=True), tensors)
    head = _under("classifier.", learned.whole if learned else tensors)
    classifier = filled(lambda: nn.Linear(config["hidden_size"], labels), head)
    if bert is None or classifier is None or (learned and len(learned.whole) > len(head)):
        return None
    model = BertClassifier(bert, classifier)
    return model if not learned or learned.merge_into(model) else None


class BertMaskedLM(nn.Module):
    """`is_new`: there was no head, and this one is random."""

    def __init__(self, bert: Bert, predictions: Predictions, is_new: bool) -> None:
        super().__init__()
        self.bert = bert
        self.cls = nn.Sequential(OrderedDict(predictions=predictions))
        self.is_new = is_new
        predictions.words = bert.embeddings.word_embeddings

    @property
    def base_model(self) -> Bert:
        return self.bert


class Predictions(nn.Module):
    """States to logits of the vocabulary. `words`, the table of the network, is put in later."""

    words: nn.Embedding

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        size = config["hidden_size"]
        norm = nn.LayerNorm(size, eps=config["layer_norm_eps"])
        self.transform = nn.ModuleDict({"dense": nn.Linear(size, size), "LayerNorm": norm})
        self.bias = nn.Parameter(torch.zeros(config["vocab_size"]))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        found = nn.functional.gelu(self.transform["dense"](states))
        return nn.functional.linear(
            self.transform["LayerNorm"](found), self.words.weight, self.bias
        )


def load_masked(directory: Path) -> BertMaskedLM | None:
    """Returns the masked language model of a directory, with a new head on an encoder that has
    none; None if it is of another kind."""
    config = plain_config(directory)
    if config is None or not config.get("tie_word_embeddings", True):
        return None
    tensors = tensors_of(directory)
    bert = filled(lambda: Bert(config), tensors)
    if bert is None:
        return None
    head = filled(lambda: Predictions(config), _under("cls.predictions.", tensors))
    return BertMaskedLM(bert, head or Predictions(config), is_new=head is None)


def _under(prefix: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Returns the tensors of one part of a network, by their names in it."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
