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
    """Returns whether the word, one of `WORD`, stands beside others without a space."""
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
    """Returns the words of a text in their order; a curly apostrophe is an apostrophe."""
    return TREEBANK.findall(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


_FUNCTION_WORDS = """
a an the this that these those some any no none each every either neither both all half such
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
himself she her hers herself it its itself they them their theirs themselves one ones oneself
who whom whose which what whatever whichever whoever someone somebody something anyone anybody
anything everyone everybody everything nobody nothing other others another
and or but nor so yet for if unless until till while whereas because since although though
whether than as lest once
about above across after against along amid among around at before behind below beneath beside
besides between beyond by despite down during except from in inside into like near of off on
onto out outside over past per through throughout to toward towards under underneath up upon
via with within without
be am is are was were been being have has had having do does did done doing
can could may might must shall should will would ought need dare cannot
not n't 's 'm 'd 're 've 'll ca wo ai gonna gotta wanna
here there where when why how then now thus hence ever never always just only also too very
quite rather almost even still already again away back else maybe perhaps really however
yes yeah yep nope ok okay oh ah uh um hmm hey hi hello bye please well wow ha haha
much many more most few fewer less least several enough own same
mr mrs ms dr st etc
"""

FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that no topic is made of: English words of the closed classes, and their contractions.

WordNet holds only nouns, verbs, adjectives and adverbs, and so it takes `in` for indium, `he` for
helium and `it` for a business. Code that asks it for a part of speech leaves these out first.
"""
