"""What a word is, where texts are cut, edited and compared.

`treebank_words` are words in the manner of the Penn Treebank, as in the text that GloVe was trained
on: punctuation stands alone, `don't` is `do` `n't`, `it's` is `it` `'s`, while `u.s.`, `3.14` and
`well-known` are one word.

Chinese and Japanese have no spaces between words: each of their characters counts as one.
"""

from __future__ import annotations

import re

UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Kana and Chinese characters, as the inside of a character class."""

_LETTERS = rf"[^\W{UNSPACED}]+"

WORD = re.compile(rf"(?=\w)[{UNSPACED}]|{_LETTERS}(?:['’-]{_LETTERS})*")

ALONE = UNSPACED + r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""These, and Thai, Lao, Burmese and Khmer: scripts whose characters are compared one by one."""

LETTERS = rf"(?:[^\W_{ALONE}]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff])+"
"""Letters and digits of all other scripts, with the marks that Python does not count as letters:
accents that stand by themselves, Hebrew and Arabic points, Indic vowels."""

_UNSPACED = re.compile(f"[{UNSPACED}]")


def is_unspaced(word: str) -> bool:
    """Whether the word, one of `WORD`, stands beside others without a space."""
    return _UNSPACED.match(word) is not None


TREEBANK = re.compile(
    r"""
      \w+? (?= n't\b )                         # do | n't
    | n't\b
    | ' (?: s | m | d | re | ve | ll )\b       # it | 's
    | (?: [^\W\d_] \. ){2,}                   # u.s.
    | \w+ (?: - \w+ | (?<=\d) [.,] \d+ )*     # well-known, 5,000
    | [^\w\s]
    """,
    re.VERBOSE | re.IGNORECASE,
)


def treebank_words(text: str) -> list[str]:
    """The words of a text in their order; a curly apostrophe is an apostrophe."""
    return TREEBANK.findall(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
