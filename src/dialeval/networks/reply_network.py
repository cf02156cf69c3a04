"""Networks that read a dialogue and say the next turn: four of them, with one interface.

    seq2seq   an LSTM with attention              `LstmSeq2Seq`
    copynet   the same, which may also copy       `CopyNet`
    hred      a hierarchy: words, turns, reply    `Hred`
    recosa    turns that attend to each other     `ReCoSa`

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

HRED and ReCoSa, PONE's multi-turn systems, read a dialogue turn by turn. HRED (Serban et al.,
2016): a hierarchy of recurrent networks,

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
