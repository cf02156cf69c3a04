"""Encoder-decoder models that write: BlenderBot, T5, and those that `dialeval train` made.

The encoder reads the dialogue once (see `layout.EncoderInput`); the decoder begins with the
model's start token, as in `seq2seq_lm`, and ends with the token that ends a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dialeval.errors import UsageError
from dialeval.generation.search import Endings
from dialeval.models.layout import SEPARATORS, EncoderInput
from dialeval.models.loading import (
    choose_device,
    load_language_model,
    load_tokenizer,
    network_window,
    silence,
    window_of,
)
from dialeval.networks import lstm_seq2seq
from dialeval.networks.lstm_seq2seq import LstmReading, LstmSeq2Seq
from dialeval.question import Layout
from dialeval.sample import Turn


def load(
    directory: Path, *, device: str = "auto", adapter: Path | None = None, layout: Layout = "tabs"
) -> Seq2SeqBackend:
    """Returns the model in a directory of the Hugging Face layout; an adapter (LoRA) is merged into
    it."""
    model, tokenizer = load_language_model(
        "AutoModelForSeq2SeqLM", directory, device=device, adapter=adapter
    )
    return Seq2SeqBackend(model, tokenizer, layout)


class Seq2SeqBackend:
    """A tokenizer and a model."""

    def __init__(self, model: Any, tokenizer: Any, layout: Layout) -> None:
        if layout not in SEPARATORS:
            raise UsageError(
                f"an encoder-decoder has no layout {layout!r}. It has: {', '.join(SEPARATORS)}"
            )
        self.layout = layout
        self.endings = endings_of(tokenizer, model.get_output_embeddings().weight.shape[0])
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._positions = network_window(model)
        self._input = EncoderInput(tokenizer, window_of(model, tokenizer))
        start = model.config.decoder_start_token_id
        if start is None:
            start = model.generation_config.decoder_start_token_id
        self._begin = (int(start), *self._input.before)

    def prompt(self, history: Sequence[Turn], speaker: str, new_tokens: int) -> tuple[int, ...]:
        room = self._positions - len(self._begin)
        if new_tokens > room:
            raise UsageError(f"{new_tokens} new tokens are more than this model can write: {room}")
        return self._input.write(history, self.layout)[0]

    def read(self, prompts: Sequence[tuple[int, ...]]) -> Seq2SeqReading:
        return Seq2SeqReading(self._model, prompts, self._begin)

    def text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(ids, clean_up_tokenization_spaces=False))


class Seq2SeqReading:
    """The encoder's states, and the decoder's cache; see `search.Reading`."""

    log_probs: torch.Tensor

    def __init__(
        self, model: Any, prompts: Sequence[tuple[int, ...]], begin: tuple[int, ...]
    ) -> None:
        from transformers import DynamicCache, EncoderDecoderCache

        longest = max(map(len, prompts))
        ids = torch.zeros((len(prompts), longest), dtype=torch.long, device=model.device)
        self._mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, : len(prompt)] = torch.tensor(prompt, device=model.device)
            self._mask[row, : len(prompt)] = 1
        self._model = model
        encoded = model.get_encoder()(input_ids=ids, attention_mask=self._mask)
        self._states = encoded.last_hidden_state
        self._cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        self._forward(torch.tensor([begin] * len(prompts), device=model.device))

    def select(self, rows: Sequence[int]) -> None:
        if list(rows) == list(range(len(self.log_probs))):
            return
        index = torch.tensor(rows, device=self._mask.device)
        self._cache.batch_select_indices(index)
        self._mask, self._states = self._mask[index], self._states[index]
        self.log_probs = self.log_probs[index]

    def write(self, tokens: Sequence[int]) -> None:
        self._forward(torch.tensor(tokens, device=self._mask.device)[:, None])

    def _forward(self, ids: torch.Tensor) -> None:
        from transformers.modeling_outputs import BaseModelOutput

        out = self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=self._states),
            attention_mask=self._mask,
            decoder_input_ids=ids,
            past_key_values=self._cache,
            use_cache=True,
        )
        self.log_probs = out.logits[:, -1].float().log_softmax(-1)


def endings_of(tokenizer: Any, rows: int) -> Endings:
    """A text ends with the token for it, and holds no other special token."""
    special = {*tokenizer.all_special_ids, *range(len(tokenizer), rows)}
    end = int(tokenizer.eos_token_id)
    return Endings(marks=(end,), banned=tuple(sorted(special - {end})))


def load_lstm(directory: Path, *, device: str = "auto") -> LstmBackend:
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
