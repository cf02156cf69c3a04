"""Two heads on top of `bert`, for reading: one classifies texts, one guesses hidden word-pieces.

    BertClassifier    W tanh(V h_[CLS])
    BertMaskedLM      E LayerNorm(gelu(V h)) + b        E: the word embeddings of the network

Modules are named as in transformers, so that weights and adapters fit both. Anything unusual is
loaded by transformers (and peft).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from dialeval.models import peft_files
from dialeval.models.bert import Bert, plain_config, tensors_of
from dialeval.models.weights import filled


class BertClassifier(nn.Module):
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
    """The classifier of a directory, or one that an adapter makes of the encoder there; None if
    one of them is of another kind. `settings` go before those of the configuration."""
    config = plain_config(directory)
    learned = peft_files.read(adapter) if adapter else None
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
    """The masked language model of a directory, with a new head on an encoder that has none; None
    if it is of another kind."""
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
    """Those of one part of a network, by their names in it."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
