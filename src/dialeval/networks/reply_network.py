"""Networks that read a dialogue and say the next turn: the interface of our four, and the LSTMs.

    seq2seq   an LSTM with attention              `LstmSeq2Seq`
    copynet   the same, which may also copy       `CopyNet`
    hred      a hierarchy: words, turns, reply    `hierarchical.Hred`
    recosa    turns that attend to each other     `hierarchical.ReCoSa`

A network encodes the history once into a state, a table of tensors with a row for each text that is
being written, and steps through the reply token by token: so one `ReplyReading` serves all of them
in a search. `dialeval train seq2seq` trains them. `config.json` names the network and its sizes.

`LstmSeq2Seq` is OpenNMT's model of that time (Klein et al., 2017), with its defaults in `dialeval
train seq2seq --preset paper`: `layers` of LSTM on both sides; global attention of the kind
`general` (Luong et al., 2015, section 3.1)

    score(h_t, s) = h_t W s        c_t = softmax-weighted mean of the encoder's states s
    o_t = tanh(V [c_t ; h_t])      P(token) = softmax(U o_t + b)

and input feeding (section 3.3): o_t goes into the first layer of the decoder together with the next
token. The decoder starts in the last state of the encoder.

`CopyNet` (Gu et al., 2016) adds a second way to say a token: to copy it from the history. Both ways
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

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dialeval.errors import UsageError
from dialeval.model_store.weights import read_json
from dialeval.storage import atomic_path, write_json

NetworkName = Literal["seq2seq", "copynet", "hred", "recosa"]
NETWORKS: tuple[NetworkName, ...] = get_args(NetworkName)

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
        """Returns scores (batch, length, vocabulary) of the tokens after those of `targets`."""
        state = self.encode(sources, lengths)
        found = []
        for tokens in targets.unbind(1):
            scores, state = self.step(tokens, state)
            found.append(scores)
        return torch.stack(found, 1)


def make_network(name: NetworkName, config: NetworkConfig) -> ReplyNetwork:
    from dialeval.networks.hierarchical import Hred, ReCoSa

    classes: Mapping[NetworkName, type[ReplyNetwork]] = {
        "seq2seq": LstmSeq2Seq,
        "copynet": CopyNet,
        "hred": Hred,
        "recosa": ReCoSa,
    }
    return classes[name](config)


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
