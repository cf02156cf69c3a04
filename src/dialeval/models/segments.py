"""From pieces of text to token ids: what people wrote, and what the layout adds, kept apart.

A dialogue is tokenised piece by piece: each turn and each marker on its own. So the ids of a
dialogue are literally the first ids of the same dialogue one turn later, and a model reads the
common part once. Byte-level tokenizers (GPT-2, Llama 3, SmolLM2, BlenderBot) split a text before
every space anyway; a piece that starts with its space gets the ids that it has in the whole text.

Dialogue text is hostile. Somebody who writes `<|im_end|>` into a chat gets the ids of these ten
ordinary characters. Special tokens come from markers only.

`start_token` is the token that begins a text: `<|endoftext|>` where the vocabulary has it, because
GPT-2, DialoGPT and SmolLM2 were pretrained on documents separated by it (SmolLM2's declared start
token, `<|im_start|>`, opens a chat turn). Else it is the declared start token, else the end token;
it is None if the tokenizer has none of them.

`EncoderInput` is what the encoder of an encoder-decoder reads: the turns of a dialogue, with its
own marks around.

`tabs` (also `auto` and `native`) is FULL's form, "\\t" + "\\t".join(turns); `plain` joins with
spaces. The tokenizer adds its own marks, and a space in front if it was saved so. What does not fit
is cut from the turns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from dialeval.errors import UsageError
from dialeval.models.loading import SURROGATE
from dialeval.sample import Turn


def start_token(tokenizer: Any) -> int | None:
    document = tokenizer.get_vocab().get("<|endoftext|>")
    for token in (document, tokenizer.bos_token_id, tokenizer.eos_token_id):
        if token is not None:
            return int(token)
    return None


REMEMBERED = 1 << 12
"""Pieces kept with their ids, a few kB each: a context comes back in every question about it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The ids of a piece of text and, for each, where it starts and ends, in characters."""

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


class Segmenter:
    """Tokenises pieces with the tokenizer of a model (a fast one of transformers)."""

    def __init__(self, tokenizer: Any) -> None:
        self._markers = tokenizer.backend_tokenizer
        self._text = _without_special_tokens(tokenizer)
        self._start_id = start_token(tokenizer)
        self._end_id = _end_token(tokenizer)
        self.text = lru_cache(REMEMBERED)(self._tokenise_text)
        self.marker = lru_cache(REMEMBERED)(self._tokenise_marker)

    @property
    def start_id(self) -> int:
        """The token that a text begins with."""
        if self._start_id is None:
            raise UsageError("this model has no start-of-text token. Ask with start=False.")
        return self._start_id

    @property
    def end_id(self) -> int:
        """The token that a text ends with."""
        if self._end_id is None:
            raise UsageError("this model has no end-of-text token: layout 'eos' and end need one.")
        return self._end_id

    def _tokenise_text(self, text: str, before: str = "") -> Segment:
        """`before` is written in front of the text and is part of no span."""
        shift = len(before)
        encoding = self._text.encode(SURROGATE.sub("\ufffd", before + text))
        spans = [(max(0, start - shift), max(0, end - shift)) for start, end in encoding.offsets]
        return Segment(tuple(encoding.ids), tuple(spans))

    def _tokenise_marker(self, text: str) -> tuple[int, ...]:
        return tuple(self._markers.encode(text, add_special_tokens=False).ids)


def _without_special_tokens(tokenizer: Any) -> Any:
    """A copy of the tokenizer to which special tokens are ordinary characters.

    Some chat models do not flag the marks of their template as special; they are treated alike.
    """
    from tokenizers import Tokenizer

    description = json.loads(tokenizer.backend_tokenizer.to_str())
    template = template_text(tokenizer)
    for added in description["added_tokens"]:
        added["special"] = added["special"] or added["content"] in template
    # A post-processor would add special tokens, and trim spaces off the spans.
    description |= {"post_processor": None, "truncation": None, "padding": None}
    copy = Tokenizer.from_str(json.dumps(description))
    copy.encode_special_tokens = True
    return copy


def template_text(tokenizer: Any) -> str:
    """The source of the chat template; empty where there is none."""
    template = tokenizer.chat_template
    if isinstance(template, dict):
        template = template.get("default")
    return template or ""


def _end_token(tokenizer: Any) -> int | None:
    """What separates documents; the `eos_token` of a chat model may only end a turn."""
    added = tokenizer.get_added_vocab()
    for name in ("<|endoftext|>", "<|end_of_text|>"):
        if name in added:
            return int(added[name])
    end: int | None = tokenizer.eos_token_id
    return end


SEPARATORS = {"auto": "\t", "native": "\t", "tabs": "\t", "plain": " "}


class EncoderInput:
    """Writes dialogues for one model; `window` is the number of tokens that it can read at once.

    `before` and `after` are the special tokens that stand around every text.
    """

    def __init__(self, tokenizer: Any, window: int) -> None:
        self.window = window
        self.segments = Segmenter(tokenizer)
        self.before, self.after = _marks(tokenizer)

    def write(
        self, turns: Sequence[Turn], layout: str, truncate: Literal["left", "right"] = "left"
    ) -> tuple[tuple[int, ...], int]:
        """The encoder's ids, and how many tokens of the turns were cut."""
        separator = SEPARATORS[layout]
        text = separator.join(turn.text for turn in turns)
        before = "\t" if separator == "\t" and turns else ""
        ids = self.segments.text(before + text).ids
        room = max(0, self.window - len(self.before) - len(self.after))
        cut = max(0, len(ids) - room)
        kept = ids[:room] if truncate == "right" else ids[cut:]
        return (*self.before, *kept, *self.after), cut


def _marks(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens that stand before and after a text; after it at least the end token.

    BlenderBot's tokenizer adds `</s>` or does not, depending on the version that saved it.
    """
    bare = tokenizer("a", add_special_tokens=False).input_ids
    full = tokenizer("a").input_ids
    shift = next(n for n in range(len(full)) if full[n : n + len(bare)] == bare)
    return tuple(full[:shift]), tuple(full[shift + len(bare) :]) or (tokenizer.eos_token_id,)
