"""Models that write, by kind: causal language models (the next turn after `Writer`'s form of a
dialogue), encoder-decoders, and the networks of our own.

Where a turn of a causal model ends depends on the layout:

    chat    the mark that closes a turn in the chat template
    eos     the end of the text
    lines   the end of the line
    plain   nothing marks it: turns follow each other with a space between, sentence after sentence.
            So a turn is one sentence, and it has ended when a new word comes after its full stop.
            The probability of that is the sum over all tokens that begin a word
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dialeval.errors import UsageError
from dialeval.generation.search import Endings
from dialeval.models.layout import SEPARATORS, EncoderInput, Writer, chat_pieces, template_text
from dialeval.models.loading import (
    choose_device,
    load_language_model,
    load_tokenizer,
    network_window,
    silence,
    window_of,
)
from dialeval.networks import reply_network
from dialeval.networks.reply_network import ReplyNetwork, ReplyReading
from dialeval.question import Layout, Likelihood
from dialeval.sample import Turn

SENTENCE_END = re.compile(r"""(?<!\.)[.!?][\s"'”’)\]]*$""")
ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|(?!I)[A-Za-z])\s*\.$")
"""A title or an initial: the sentence goes on. DailyDialog writes `p . m .`"""

LINE_BREAKS = ("Ċ", "\n", "<0x0A>")
"""A line break in the vocabularies: byte-level, plain, SentencePiece."""
WORD_STARTS = ("Ġ", "▁", " ")
BLANK = "ĊčĠ▁ \n\r\t"


def load_causal(
    directory: Path, *, device: str = "auto", adapter: Path | None = None, layout: Layout = "native"
) -> CausalBackend:
    """Returns the model in a directory of the Hugging Face layout; an adapter (LoRA) is merged into
    it."""
    model, tokenizer = load_language_model(
        "AutoModelForCausalLM", directory, device=device, adapter=adapter
    )
    return CausalBackend(model, tokenizer, layout)


class CausalBackend:
    """A tokenizer and a model that read dialogues in one layout."""

    def __init__(self, model: Any, tokenizer: Any, layout: Layout) -> None:
        self.layout = known_layout(layout, tokenizer)
        self.endings = endings_of(model, tokenizer, self.layout)
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._window = window_of(model, tokenizer)
        self._writer = Writer(tokenizer, self._window)

    def prompt(self, history: Sequence[Turn], speaker: str, new_tokens: int) -> tuple[int, ...]:
        self._writer.window = self._window - new_tokens
        if self._writer.window < self._window // 4:
            raise UsageError(
                f"{new_tokens} new tokens leave no room for a dialogue: this model reads"
                f" {self._window} tokens in all"
            )
        question = Likelihood(
            "", text="", turns=tuple(history), speaker=speaker, layout=self.layout
        )
        return self._writer.write(question).ids

    def read(self, prompts: Sequence[tuple[int, ...]]) -> CausalReading:
        return CausalReading(self._model, prompts)

    def text(self, ids: Sequence[int]) -> str:
        text = str(self._tokenizer.decode(ids, clean_up_tokenization_spaces=False))
        return text if self.layout == "chat" else text.split("\n")[0] or text


def known_layout(layout: Layout, tokenizer: Any) -> Layout:
    """Returns the layout that `auto` or `native` stands for with this model."""
    if layout == "native":
        return "chat" if template_text(tokenizer) else "lines"
    return "lines" if layout == "auto" else layout


class CausalReading:
    """Prompts padded on the left, so that all go on at the same place; see `search.Reading`."""

    log_probs: torch.Tensor

    def __init__(self, model: Any, prompts: Sequence[tuple[int, ...]]) -> None:
        from transformers import DynamicCache

        longest = max(map(len, prompts))
        ids = torch.zeros((len(prompts), longest), dtype=torch.long, device=model.device)
        self._mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt) :] = torch.tensor(prompt, device=model.device)
            self._mask[row, longest - len(prompt) :] = 1
        self._model = model
        self._accepts = set(inspect.signature(model.forward).parameters)
        self._cache = DynamicCache(config=model.config)
        self._forward(ids, (self._mask.cumsum(1) - 1).clamp(min=0))

    def select(self, rows: Sequence[int]) -> None:
        if list(rows) == list(range(len(self.log_probs))):
            return
        index = torch.tensor(rows, device=self._mask.device)
        self._cache.batch_select_indices(index)
        self._mask, self.log_probs = self._mask[index], self.log_probs[index]

    def write(self, tokens: Sequence[int]) -> None:
        ids = torch.tensor(tokens, device=self._mask.device)[:, None]
        self._mask = torch.cat([self._mask, torch.ones_like(ids)], 1)
        self._forward(ids, self._mask.sum(1, keepdim=True) - 1)

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor) -> None:
        optional = {"position_ids": positions, "logits_to_keep": 1}
        out = self._model(
            input_ids=ids,
            attention_mask=self._mask,
            past_key_values=self._cache,
            use_cache=True,
            **{name: value for name, value in optional.items() if name in self._accepts},
        )
        self.log_probs = out.logits[:, -1].float().log_softmax(-1)


def endings_of(model: Any, tokenizer: Any, layout: Layout) -> Endings:
    """Returns where a turn ends in a layout, in the vocabulary of a model."""
    rows = model.get_output_embeddings().weight.shape[0]
    spelled = [token or "" for token in tokenizer.convert_ids_to_tokens(range(len(tokenizer)))]
    marks = _end_tokens(model, tokenizer)
    last: set[int] = set()
    if layout == "chat":
        backend, pieces = tokenizer.backend_tokenizer, chat_pieces(tokenizer)
        for role in ("user", "system"):
            marks.update(backend.encode(pieces.closing[role], add_special_tokens=False).ids[:1])
    else:
        breaks = {i for i, t in enumerate(spelled) if any(mark in t for mark in LINE_BREAKS)}
        last = {i for i in breaks if spelled[i].replace("<0x0A>", "").strip(BLANK)}
        marks |= breaks - last
    special = {*tokenizer.all_special_ids, *_flagged(tokenizer), *range(len(tokenizer), rows)}
    words = tuple(
        i for i, t in enumerate(spelled) if t.startswith(WORD_STARTS) and i not in marks | special
    )

    def is_whole(ids: Sequence[int]) -> bool:
        end = str(tokenizer.decode(ids[-8:], clean_up_tokenization_spaces=False))
        return bool(SENTENCE_END.search(end)) and not ABBREVIATION.search(end)

    return Endings(
        marks=tuple(sorted(marks)),
        last=frozenset(last),
        banned=tuple(sorted(special - marks)),
        words=words if layout == "plain" else (),
        is_whole=is_whole,
    )


def _end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """Returns the end of a text, by all names that models have for it."""
    declared = model.generation_config.eos_token_id
    known = declared if isinstance(declared, list) else [declared]
    added = tokenizer.get_added_vocab()
    named = [added.get(name) for name in ("<|endoftext|>", "<|end_of_text|>", "</s>")]
    return {int(i) for i in (*known, *named, tokenizer.eos_token_id) if i is not None}


def _flagged(tokenizer: Any) -> set[int]:
    return {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}


# Encoder-decoder models that write: BlenderBot, T5, and those that `dialeval train` made.
#
# The encoder reads the dialogue once (see `layout.EncoderInput`); the decoder begins with the
# model's start token, as in `seq2seq_lm`, and ends with the token that ends a text.


def load_seq2seq(
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
        self.endings = end_token_only(tokenizer, model.get_output_embeddings().weight.shape[0])
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


def end_token_only(tokenizer: Any, rows: int) -> Endings:
    """A text ends with the token for it, and holds no other special token."""
    special = {*tokenizer.all_special_ids, *range(len(tokenizer), rows)}
    end = int(tokenizer.eos_token_id)
    return Endings(marks=(end,), banned=tuple(sorted(special - {end})))


def load_reply_network(directory: Path, *, device: str = "auto") -> ReplyBackend:
    model = reply_network.load(directory).to(choose_device(device))
    with silence():
        return ReplyBackend(model, load_tokenizer(directory))


class ReplyBackend:
    """A tokenizer and a model. It may write without end, and reads what it was trained to read."""

    layout: Layout = "tabs"

    def __init__(self, model: ReplyNetwork, tokenizer: Any) -> None:
        self.endings = end_token_only(tokenizer, model.config.vocabulary)
        self._model = model
        self._tokenizer = tokenizer
        self._input = EncoderInput(tokenizer, model.config.history_tokens)

    def prompt(self, history: Sequence[Turn], speaker: str, new_tokens: int) -> tuple[int, ...]:
        return self._input.write(history, "tabs")[0]

    def read(self, prompts: Sequence[tuple[int, ...]]) -> ReplyReading:
        return ReplyReading(self._model, prompts)

    def text(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(ids, clean_up_tokenization_spaces=False))
