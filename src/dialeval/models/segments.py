"""From pieces of text to token ids: what people wrote, and what the layout adds, kept apart.

A dialogue is tokenised piece by piece: each turn and each marker on its own. So the ids of a
dialogue are literally the first ids of the same dialogue one turn later, and a model reads the
common part once. Byte-level tokenizers (GPT-2, Llama 3, SmolLM2, BlenderBot) split a text before
every space anyway; a piece that starts with its space gets the ids that it has in the whole text.

Dialogue text is hostile. Somebody who writes `<|im_end|>` into a chat gets the ids of these ten
ordinary characters. Special tokens come from markers only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dialeval.errors import UsageError
from dialeval.models.loading import SURROGATE
from dialeval.models.start_token import start_token

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
