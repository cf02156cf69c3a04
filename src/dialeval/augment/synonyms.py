"""Another word for a word: the released rule, and one that keeps closer to the meaning.

`released_synonym` is the rule recovered from HolisticEval's WS.csv: the synsets of the word in
WordNet's order; the first whose head lemma is another word; that lemma, in lower case.

`near_synonyms` reads WordNet from both sides, and goes through all senses of the word. Two words
are close where they share senses that are usual ones of both:

    closeness = share * 4 ** -(words of the lemma - 1)
                * sum over shared synsets of 1 / (i ** 3 * j * sqrt(k))

i is the rank of the synset among the senses of the word, j among those of the lemma, k the place of
the lemma in the synset, all from 1; share is how many of the lemma's senses are of this part of
speech, so that "mouth", a noun above all, is a poor verb. "talk" is close to "speak" (0.43),
"mouth" less so (0.16), "address" hardly (0.02). Lemmas that are not among the 10 000 most frequent
words of GloVe's vocabulary (imbibe), or that only narrow the word down (political party), are left
aside; so are nouns of several words, which are definitions (eating house, married woman), and what
is less close than `LEAST_CLOSE`. The closest comes first; of two as close, the one that WordNet
names first.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from importlib.resources import files

from dialeval.lexicon import PartOfSpeech, Synset, load_wordnet

LEAST_CLOSE = 0.16
"""What is further away is another meaning more often than not: understand for see, law for
police, software for package. Found by reading what it lets through in everyday dialogues."""
SHORTEST = 3
"""Letters: what is shorter is an abbreviation (m for meter, mo for moment)."""


def released_synonym(word: str, pos: PartOfSpeech) -> str | None:
    """What HolisticEval puts in the place of a word in lower case; None: the word stays."""
    for synset in load_wordnet().synsets(word, pos):
        if (head := synset.name.lower()) != word:
            return head
    return None


@lru_cache(maxsize=8192)
def near_synonyms(lemma: str, pos: PartOfSpeech) -> tuple[str, ...]:
    """Other lemmas that are close enough, the closest first, underscores kept."""
    closeness: dict[str, float] = {}
    for rank, synset in enumerate(load_wordnet().synsets(lemma, pos), start=1):
        others = [other for other in synset.lemmas if other.lower() != lemma]
        for place, other in enumerate(others, start=1):
            if _is_usable(other, lemma, pos):
                shared = _usualness(other, pos, synset) / (rank**3 * math.sqrt(place))
                closeness[other] = closeness.get(other, 0.0) + shared
    close = [other for other, value in closeness.items() if value >= LEAST_CLOSE]
    return tuple(sorted(close, key=lambda other: -closeness[other]))


def _usualness(other: str, pos: PartOfSpeech, synset: Synset) -> float:
    """How usual a word this is for the synset: share / (j * 4 ** (words - 1))."""
    wordnet = load_wordnet()
    senses = [sense.number for sense in wordnet.synsets(other, pos)]
    share = len(senses) / len(wordnet.synsets(other))
    rank = senses.index(synset.number) + 1
    return share / (rank * 4.0 ** (len(_words(other)) - 1))


def _is_usable(other: str, lemma: str, pos: PartOfSpeech) -> bool:
    words = _words(other)
    if pos == "n" and len(words) > 1:
        return False
    return (
        lemma not in words
        and len(other) >= SHORTEST
        and all(word in _common_words() for word in words)
    )


def _words(lemma: str) -> list[str]:
    return lemma.replace("-", "_").split("_")


@cache
def _common_words() -> frozenset[str]:
    """In lower case, so that names (Taiwan) and units (H2O) are none."""
    text = files("dialeval.augment").joinpath("common-words.txt").read_text(encoding="ascii")
    return frozenset(text.split())
