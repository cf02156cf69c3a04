"""What a word is, where texts are cut, edited and compared.

Chinese and Japanese have no spaces between words: each of their characters counts as one.
"""

from __future__ import annotations

import re

UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Kana and Chinese characters, as the inside of a character class."""

_LETTERS = rf"[^\W{UNSPACED}]+"

WORD = re.compile(rf"(?=\w)[{UNSPACED}]|{_LETTERS}(?:['’-]{_LETTERS})*")

_UNSPACED = re.compile(f"[{UNSPACED}]")


def is_unspaced(word: str) -> bool:
    """Whether the word, one of `WORD`, stands beside others without a space."""
    return _UNSPACED.match(word) is not None
