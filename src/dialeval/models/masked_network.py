"""The networks of masked language models: an encoder, and the head that guesses hidden pieces.

To be trained they are transformers' own. To be read they are ours (`bert_heads`), where ours can be
all that they are, and need no transformers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from dialeval.errors import UsageError
from dialeval.models import bert_heads
from dialeval.models.loading import load_tokenizer, silence
from dialeval.models.low_rank import low_rank_tensors

HEADS = (
    ("cls",),  # BERT
    ("lm_head",),  # RoBERTa, MPNet
    ("predictions",),  # ALBERT
    ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),  # DistilBERT
    ("generator_predictions", "generator_lm_head"),  # ELECTRA
    ("head", "decoder"),  # ModernBERT
)
"""The parts of transformers' models that turn the states of their encoder into logits, in order."""


class MaskedNetwork(torch.nn.Module):
    """An encoder, and the head on top of it; `is_new`: the head has yet to learn."""

    def __init__(self, model: Any, is_new: bool) -> None:
        super().__init__()
        self.encoder: Any = model.base_model
        self.head = _head_of(model)
        self.is_new = is_new

    def own_head(self) -> dict[str, torch.nn.Parameter]:
        """The parameters of the head but for those that are the encoder's word embeddings."""
        shared = {id(parameter) for parameter in self.encoder.parameters()}
        return {n: p for n, p in self.head.named_parameters() if id(p) not in shared}

    def trained_tensors(self) -> dict[str, torch.Tensor]:
        """What a directory keeps: the head, and the adapters or the whole encoder."""
        own = low_rank_tensors(self.encoder) or self.encoder.state_dict()
        head = {f"head.{name}": parameter.detach() for name, parameter in self.own_head().items()}
        return head | {f"encoder.{name}": tensor for name, tensor in own.items()}


def load_network(name: str) -> tuple[MaskedNetwork, Any]:
    """Network and tokenizer of transformers, which can be trained: of an encoder by a name that
    `dialeval models` knows, or by path."""
    directory = encoder_directory(name)
    return _network(directory), load_tokenizer(directory)


def encoder_directory(name: str) -> Path:
    from dialeval.models.locate import locate
    from dialeval.models.source import ready

    found = locate(name)
    if found.role != "encoder" or found.base:
        raise UsageError(
            f"model {name!r} is a {found.role}: a masked language model stands on an encoder."
            " See: dialeval models"
        )
    return ready(found)


def load_head(directory: Path) -> torch.nn.Module:
    """The head that an encoder of the hub brings along."""
    network = light_network(directory)
    if network.is_new:
        raise UsageError(
            f"the encoder in {directory} has no head for guessing masked tokens."
            " Teach it: dialeval train mme-specificity --backbone NAME"
        )
    return network.head.eval()


def light_network(directory: Path) -> MaskedNetwork:
    """One that only reads: without transformers, where that can be."""
    ours = bert_heads.load_masked(directory)
    return MaskedNetwork(ours, ours.is_new) if ours else _network(directory)


def _network(directory: Path) -> MaskedNetwork:
    from transformers import AutoModelForMaskedLM

    with silence():
        try:
            model, found = AutoModelForMaskedLM.from_pretrained(
                directory,
                local_files_only=True,
                weights_only=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except ValueError as error:
            raise UsageError(f"{directory}: there are no masked models of this kind") from error
    return MaskedNetwork(model, bool(found["missing_keys"]))


def _head_of(model: Any) -> torch.nn.Module:
    for names in HEADS:
        if all(hasattr(model, name) for name in names):
            return torch.nn.Sequential(*(getattr(model, name) for name in names))
    raise UsageError(f"a {type(model).__name__} keeps its head where dialeval does not find it")
