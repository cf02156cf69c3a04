"""The LSTM of `dialeval train seq2seq` as a model that writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialeval.models import lstm_seq2seq
from dialeval.models.encoder_input import EncoderInput
from dialeval.models.loading import choose_device, load_tokenizer, silence
from dialeval.models.lstm_seq2seq import LstmReading, LstmSeq2Seq
from dialeval.models.seq2seq_generation import endings_of
from dialeval.question import Layout
from dialeval.sample import Turn


def load(directory: Path, *, device: str = "auto") -> LstmBackend:
    model = lstm_seq2seq.load(directory).to(choose_device(device))
    with silence():
        return LstmBackend(model, load_tokenizer(directory))


class LstmBackend:
    """A tokenizer and a model. It may write without end, and reads what it was trained to read."""

    layout: Layout = "tabs"

    def __init__(self, model: LstmSeq2Seq, tokenizer: Any) -> None:
        self.endings = endings_of(tokenizer, model.config.vocabulary)
        self._model = model
        self._tokenizer = tokenizer
        self._input = EncoderInput(tokenizer, model.config.history_tokens)

    def prompt(self, history: Sequence[Turn], speaker: str, new_tokens: int) -> tuple[int, ...]:
        return self._input.write(history, "tabs")[0]

    def read(self, prompts: Sequence[tuple[int, ...]]) -> LstmReading:
        return LstmReading(self._model, prompts)

    def text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(ids, clean_up_tokenization_spaces=False))
