"""Networks that read a dialogue and say the next turn: what the four of our own have in common.

    seq2seq   an LSTM with attention              `lstm_seq2seq.LstmSeq2Seq`
    copynet   the same, which may also copy       `lstm_seq2seq.CopyNet`
    hred      a hierarchy: words, turns, reply    `hierarchical.Hred`
    recosa    turns that attend to each other     `hierarchical.ReCoSa`

A network encodes the history once into a state, a table of tensors with a row for each text that is
being written, and steps through the reply token by token: so one `ReplyReading` serves all of them
in a search. `dialeval train seq2seq` trains them. `config.json` names the network and its sizes.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from dialeval.errors import UsageError
from dialeval.model_store.weights import read_json
from dialeval.storage import atomic_path, write_json

NetworkName = Literal["seq2seq", "copynet", "hred", "recosa"]
NETWORKS: tuple[NetworkName, ...] = get_args(NetworkName)

_CLASSES: Mapping[str, str] = {
    "seq2seq": "lstm_seq2seq:LstmSeq2Seq",
    "copynet": "lstm_seq2seq:CopyNet",
    "hred": "hierarchical:Hred",
    "recosa": "hierarchical:ReCoSa",
}

MODEL_TYPES: Mapping[str, NetworkName] = {
    "dialeval-lstm": "seq2seq",
    "dialeval-copynet": "copynet",
    "dialeval-hred": "hred",
    "dialeval-recosa": "recosa",
}
"""`model_type` in config.json -> network."""

State = dict[str, torch.Tensor]
"""Tensors whose first dimension is that of the texts being written."""


@dataclass(frozen=True)
class NetworkConfig:
    """`history_tokens`: the most that it was trained to read; `start` begins an answer; `turn`, if
    it is known, begins each turn of a history; `heads` are those of ReCoSa."""

    vocabulary: int
    start: int
    units: int = 500
    layers: int = 2
    dropout: float = 0.3
    history_tokens: int = 50
    turn: int = -1
    heads: int = 4


class ReplyNetwork(nn.Module, ABC):
    """Reads padded ids, writes scores of the next token (any that softmax makes probabilities)."""

    config: NetworkConfig

    @abstractmethod
    def encode(self, ids: torch.Tensor, lengths: torch.Tensor) -> State:
        """Returns what a decoder starts from, after histories padded on the right."""

    @abstractmethod
    def step(self, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Reads one more token of each reply; scores (rows, vocabulary) of the token after it."""

    def forward(
        self, sources: torch.Tensor, lengths: torch.Tensor, targets: torch.Tensor
    ) -> torch.Tensor:
        """Scores (batch, length, vocabulary) of the tokens that follow those of `targets`."""
        state = self.encode(sources, lengths)
        found = []
        for tokens in targets.unbind(1):
            scores, state = self.step(tokens, state)
            found.append(scores)
        return torch.stack(found, 1)


def make_network(name: NetworkName, config: NetworkConfig) -> ReplyNetwork:
    module, _, cls = _CLASSES[name].partition(":")
    found: ReplyNetwork = getattr(importlib.import_module(f"dialeval.networks.{module}"), cls)(
        config
    )
    return found


def padding_of(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """True where a row is longer than its text."""
    return torch.arange(width, device=lengths.device)[None] >= lengths[:, None]


def save(name: NetworkName, model: ReplyNetwork, out: Path) -> None:
    kind = next(kind for kind, known in MODEL_TYPES.items() if known == name)
    write_json(out / "config.json", {"model_type": kind, **asdict(model.config)})
    tensors = {key: tensor.contiguous() for key, tensor in model.state_dict().items()}
    with atomic_path(out / "model.safetensors") as temporary:
        save_file(tensors, temporary)


def load(directory: Path) -> ReplyNetwork:
    """Loads what `save` wrote."""
    path = directory / "config.json"
    facts: dict[str, Any] = read_json(path)
    kind = facts.pop("model_type", None)
    if kind not in MODEL_TYPES:
        raise UsageError(f"{path}: model_type: {kind!r} is none of {', '.join(MODEL_TYPES)}")
    try:
        model = make_network(MODEL_TYPES[kind], NetworkConfig(**facts))
        model.load_state_dict(load_file(directory / "model.safetensors"))
    except (TypeError, RuntimeError, ValueError, AssertionError) as error:
        raise UsageError(f"{path}: does not fit its weights ({str(error)[:200]})") from error
    return model.eval()


class ReplyReading:
    """Replies being written; see `generation.search.Reading`."""

    log_probs: torch.Tensor

    def __init__(self, model: ReplyNetwork, prompts: Sequence[tuple[int, ...]]) -> None:
        self._device = next(model.parameters()).device
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self._device)
        ids = torch.zeros((len(prompts), int(lengths.max())), dtype=torch.long, device=self._device)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = torch.tensor(prompt, device=self._device)
        self._model = model
        self._state = model.encode(ids, lengths)
        self.write([model.config.start] * len(prompts))

    def select(self, rows: Sequence[int]) -> None:
        if list(rows) == list(range(len(self.log_probs))):
            return
        index = torch.tensor(rows, device=self._device)
        self._state = {name: value[index] for name, value in self._state.items()}
        self.log_probs = self.log_probs[index]

    def write(self, tokens: Sequence[int]) -> None:
        scores, self._state = self._model.step(
            torch.tensor(tokens, device=self._device), self._state
        )
        self.log_probs = scores.float().log_softmax(-1)
