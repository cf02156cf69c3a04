"""Words in the manner of the Penn Treebank, as in the text that GloVe was trained on.

Punctuation stands alone, `don't` is `do` `n't`, `it's` is `it` `'s`, while `u.s.`, `3.14` and
`well-known` are one word.
"""

from __future__ import annotations

import re

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
