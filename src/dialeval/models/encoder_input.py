"""What the encoder of an encoder-decoder reads: the turns of a dialogue, with its own marks around.

`tabs` (also `auto` and `native`) is FULL's form, "\\t" + "\\t".join(turns); `plain` joins with
spaces. The tokenizer adds its own marks, and a space in front if it was saved so. What does not fit
is cut from the turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dialeval.models.segments import Segmenter
from dialeval.sample import Turn

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
