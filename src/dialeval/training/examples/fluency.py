"""Fluent and broken responses, made from fluent ones: what the fluency sub-metric learns from.

MME-CRS, section 3.1 (FM), after USL-H's valid utterance prediction. A response stays fluent (1) or
is broken (0), one as often as the other:

    1   half of the time untouched, otherwise each stop word goes with probability .5
    0   one of three, equally often (USL-H: .3, .3, .4):
        shuffle   the words in another order
        drop      u ~ U(0, .5), each word goes with probability u; at least one goes and one stays
        repeat    after each word, with probability .1, the last m <= 3 words (.7, .2, .1) are said
                  t times more (1, 2, 3: .8, .15, .05); at least once in the text

What the paper leaves open (x % to drop, spans to repeat) is USL-H's. Below 3 words nothing can be
broken: such a response is always fluent. A broken one never equals the original, letter case aside.

A word is a run of letters and digits, joined inside by apostrophes and hyphens (`don't`,
`well-off`); a run of one punctuation mark (`...`, `!`) is a word of its own. A word keeps whether a
space stood before it, wherever it goes: a comma stays attached to whatever comes before it. A space
is put in only where words would become another one, so `join` gives a text of the same words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dialeval.augment.eda import STOP_WORDS

FEWEST_WORDS = 3
SHUFFLE_DROP_REPEAT = (1 / 3, 1 / 3, 1 / 3)
SHUFFLE_DROP_REPEAT_USL_H = (0.3, 0.3, 0.4)

STOPWORDS: frozenset[str] = frozenset(STOP_WORDS) | {
    "you're", "you've", "you'll", "you'd", "she's", "it's", "that'll", "don't", "should've", "d",
    "ll", "m", "o", "re", "ve", "y", "ain", "aren", "aren't", "couldn", "couldn't", "didn",
    "didn't", "doesn", "doesn't", "hadn", "hadn't", "hasn", "hasn't", "haven", "haven't", "isn",
    "isn't", "ma", "mightn", "mightn't", "mustn", "mustn't", "needn", "needn't", "shan", "shan't",
    "shouldn", "shouldn't", "wasn", "wasn't", "weren", "weren't", "won", "won't", "wouldn",
    "wouldn't",
}  # fmt: skip
"""MME-CRS names no list of the stop words that it drops: this is NLTK's English one, 179 words.
EDA's authors took over its first 127; contractions, and the pieces that a tokeniser leaves of them,
were added later."""

_WORD = re.compile(r"\w+(?:['’-]\w+)*|([^\w\s])\1*")


@dataclass(frozen=True, slots=True)
class Word:
    """A word or a punctuation mark, and whether it stood right after the one before."""

    text: str
    attached: bool = False


Words = tuple[Word, ...]


def fluency_example(
    text: str,
    generator: np.random.Generator,
    stopwords: frozenset[str],
    *,
    mix: tuple[float, float, float] = SHUFFLE_DROP_REPEAT,
) -> tuple[str, int]:
    """Returns the text, or a changed one, and its label: 1 fluent, 0 broken.

    `mix` says how often a broken text is shuffled, loses words, and repeats some.
    """
    words = words_of(text)
    if generator.random() < 0.5 or len(words) < FEWEST_WORDS:
        return (text if generator.random() < 0.5 else drop_stopwords(text, generator, stopwords)), 1
    shares = np.array(mix)
    if len(set(_spoken(words))) == 1:
        shares = np.array((0, 1, 1))  # the same word again and again has one order only
    rules: tuple[Rule, ...] = (shuffle_words, drop_words, repeat_words)
    return join(rules[generator.choice(3, p=shares / shares.sum())](words, generator)), 0


def drop_stopwords(
    text: str, generator: np.random.Generator, stopwords: frozenset[str], p: float = 0.5
) -> str:
    """Each stop word goes with probability p; a text that would lose its last word stays."""
    words = words_of(text)
    going = generator.random(len(words)) < p
    kept = tuple(
        word
        for word, goes in zip(words, going.tolist(), strict=True)
        if not (goes and word.text.lower().replace("’", "'") in stopwords)
    )
    if len(kept) == len(words) or not any(word.text[0].isalnum() for word in kept):
        return text
    return join(kept)


Rule = Callable[[Words, np.random.Generator], Words]


def shuffle_words(words: Words, generator: np.random.Generator) -> Words:
    """Another order of the words, at least two of which must differ."""
    while True:
        shuffled = tuple(words[place] for place in generator.permutation(len(words)).tolist())
        if _spoken(shuffled) != _spoken(words):
            return shuffled


def drop_words(words: Words, generator: np.random.Generator) -> Words:
    """Fewer words in the same order, of two or more."""
    while True:
        stays = generator.random(len(words)) >= generator.uniform(0, 0.5)
        if stays.any() and not stays.all():
            return tuple(word for word, kept in zip(words, stays.tolist(), strict=True) if kept)


def repeat_words(words: Words, generator: np.random.Generator) -> Words:
    """Stutters: spans of up to three words that are said again."""
    said: list[Word] = []
    while len(said) <= len(words):
        said = []
        for place, word in enumerate(words, 1):
            said.append(word)
            if generator.random() < 0.1:
                span = generator.choice((1, 2, 3), p=(0.7, 0.2, 0.1))
                times = generator.choice((1, 2, 3), p=(0.8, 0.15, 0.05))
                said.extend(words[max(0, place - span) : place] * int(times))
    return tuple(said)


def words_of(text: str) -> Words:
    return tuple(
        Word(found[0], attached=found.start() > 0 and not text[found.start() - 1].isspace())
        for found in _WORD.finditer(text)
    )


def join(words: Sequence[Word]) -> str:
    """Joins words to a text, of which `words_of` makes the same words."""
    pieces: list[str] = []
    attached: list[str] = []  # the words before that no space parts from this one
    for word in words:
        close = [*attached[-2:], word.text]  # no more than three can become one: `well - off`
        if attached and word.attached and _texts("".join(close)) == close:
            attached.append(word.text)
        else:
            attached = [word.text]
            pieces.append(" ")
        pieces.append(word.text)
    return "".join(pieces[1:])


def _texts(text: str) -> list[str]:
    return [found[0] for found in _WORD.finditer(text)]


def _spoken(words: Words) -> list[str]:
    return [word.text.lower() for word in words]
