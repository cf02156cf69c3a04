"""The chatbot that the papers put to the test: an LSTM that reads, an LSTM that answers.

OpenNMT's model of that time (Klein et al., 2017), with its defaults in `dialeval train seq2seq
--preset paper`: `layers` of LSTM on both sides; global attention of the kind `general` (Luong et
al., 2015, section 3.1)

    score(h_t, s) = h_t W s        c_t = softmax-weighted mean of the encoder's states s
    o_t = tanh(V [c_t ; h_t])      P(token) = softmax(U o_t + b)

and input feeding (section 3.3): o_t goes into the first layer of the decoder together with the next
token. The decoder starts in the last state of the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dialeval.errors import UsageError
from dialeval.model_store.weights import read_json
from dialeval.storage import atomic_path, write_json

MODEL_TYPE = "dialeval-lstm"


@dataclass(frozen=True)
class LstmConfig:
    """`history_tokens`: the most that it was trained to read; `start` begins an answer."""

    vocabulary: int
    start: int
    units: int = 500
    layers: int = 2
    dropout: float = 0.3
    history_tokens: int = 50


@dataclass(frozen=True)
class DecoderState:
    """Per row: hidden and cell state of each layer, and the last output (input feeding)."""

    hidden: tuple[torch.Tensor, ...]
    cell: tuple[torch.Tensor, ...]
    output: torch.Tensor

    def select(self, rows: torch.Tensor) -> DecoderState:
        return DecoderState(
            tuple(layer[rows] for layer in self.hidden),
            tuple(layer[rows] for layer in self.cell),
            self.output[rows],
        )


class LstmSeq2Seq(nn.Module):
    """Reads padded ids, writes logits."""

    def __init__(self, config: LstmConfig) -> None:
        super().__init__()
        self.config = config
        units = config.units
        between = config.dropout if config.layers > 1 else 0.0
        self.source_words = nn.Embedding(config.vocabulary, units)
        self.target_words = nn.Embedding(config.vocabulary, units)
        self.encoder = nn.LSTM(units, units, config.layers, dropout=between, batch_first=True)
        self.decoder = nn.ModuleList(
            nn.LSTMCell(2 * units if layer == 0 else units, units) for layer in range(config.layers)
        )
        self.attend = nn.Linear(units, units, bias=False)
        self.combine = nn.Linear(2 * units, units, bias=False)
        self.head = nn.Linear(units, config.vocabulary)
        self.dropout = nn.Dropout(config.dropout)

    def encode(self, ids: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, DecoderState]:
        """Returns the encoder's states, and where the decoder starts."""
        packed = pack_padded_sequence(
            self.source_words(ids), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, (hidden, cell) = self.encoder(packed)
        memory, _ = pad_packed_sequence(states, batch_first=True)
        nothing = memory.new_zeros(len(ids), self.config.units)
        return memory, DecoderState(tuple(hidden), tuple(cell), nothing)

    def step(
        self, words: torch.Tensor, state: DecoderState, memory: torch.Tensor, padding: torch.Tensor
    ) -> DecoderState:
        """Decodes one more token; `words` are embedded tokens, the result's `output` predicts."""
        value = torch.cat([words, state.output], 1)
        hidden, cell = [], []
        for number, layer in enumerate(self.decoder):
            above, kept = layer(value, (state.hidden[number], state.cell[number]))
            hidden.append(above)
            cell.append(kept)
            value = self.dropout(above) if number + 1 < len(self.decoder) else above
        scores = torch.bmm(memory, self.attend(value)[:, :, None])[:, :, 0]
        weights = scores.masked_fill(padding, -torch.inf).softmax(1)
        context = torch.bmm(weights[:, None], memory)[:, 0]
        output = self.dropout(torch.tanh(self.combine(torch.cat([context, value], 1))))
        return DecoderState(tuple(hidden), tuple(cell), output)

    def forward(
        self, sources: torch.Tensor, lengths: torch.Tensor, targets: torch.Tensor
    ) -> torch.Tensor:
        """Logits (batch, length, vocabulary) of the tokens that follow those of `targets`."""
        memory, state = self.encode(sources, lengths)
        padding = padding_of(lengths, memory.shape[1])
        outputs = []
        for words in self.target_words(targets).unbind(1):
            state = self.step(words, state, memory, padding)
            outputs.append(state.output)
        logits: torch.Tensor = self.head(torch.stack(outputs, 1))
        return logits


def padding_of(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """True where a row is longer than its text."""
    return torch.arange(width, device=lengths.device)[None] >= lengths[:, None]


def save(model: LstmSeq2Seq, out: Path) -> None:
    write_json(out / "config.json", {"model_type": MODEL_TYPE, **asdict(model.config)})
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    with atomic_path(out / "model.safetensors") as temporary:
        save_file(tensors, temporary)


def load(directory: Path) -> LstmSeq2Seq:
    """Loads what `save` wrote."""
    path = directory / "config.json"
    facts: dict[str, Any] = read_json(path)
    facts.pop("model_type", None)
    try:
        model = LstmSeq2Seq(LstmConfig(**facts))
        model.load_state_dict(load_file(directory / "model.safetensors"))
    except (TypeError, RuntimeError, ValueError) as error:
        raise UsageError(f"{path}: does not fit its weights ({str(error)[:200]})") from error
    return model.eval()


class LstmReading:
    """Answers being written; see `search.Reading`."""

    log_probs: torch.Tensor

    def __init__(self, model: LstmSeq2Seq, prompts: Sequence[tuple[int, ...]]) -> None:
        device = model.head.weight.device
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        ids = torch.zeros((len(prompts), int(lengths.max())), dtype=torch.long, device=device)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = torch.tensor(prompt, device=device)
        self._model = model
        self._memory, self._state = model.encode(ids, lengths)
        self._padding = padding_of(lengths, self._memory.shape[1])
        self.write([model.config.start] * len(prompts))

    def select(self, rows: Sequence[int]) -> None:
        if list(rows) == list(range(len(self.log_probs))):
            return
        index = torch.tensor(rows, device=self._memory.device)
        self._memory, self._padding = self._memory[index], self._padding[index]
        self._state, self.log_probs = self._state.select(index), self.log_probs[index]

    def write(self, tokens: Sequence[int]) -> None:
        words = self._model.target_words(torch.tensor(tokens, device=self._memory.device))
        self._state = self._model.step(words, self._state, self._memory, self._padding)
        self.log_probs = self._model.head(self._state.output).float().log_softmax(-1)
