"""Another word for a word: the released rule, and one that keeps closer to the meaning.

`released_synonym` is the rule recovered from HolisticEval's WS.csv: the synsets of the word in
WordNet's order; the first whose head lemma is another word; that lemma, in lower case.

`near_synonym` reads WordNet from both sides: it takes the usual sense of the word, its first, and
from that synset the lemma for which the sense is a usual one, too:

    distance = rank of the synset among the lemma's own senses, from 0
               + 2 for each further word of the lemma

"remainder" is near to "rest" (0), "balance" is not (4). Lemmas that are not among the 10 000 most
frequent words of GloVe's vocabulary (imbibe), or that only narrow the word down (political party),
are left aside, and so is what is further away than 2: then the word stays.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import files

from dialeval.lexicon import PartOfSpeech, load_wordnet

FURTHEST = 2
SHORTEST = 3
"""Letters: what is shorter is an abbreviation (m for meter, mo for moment)."""


def released_synonym(word: str, pos: PartOfSpeech) -> str | None:
    """What HolisticEval puts in the place of a word in lower case; None: the word stays."""
    for synset in load_wordnet().synsets(word, pos):
        if (head := synset.name.lower()) != word:
            return head
    return None


@lru_cache(maxsize=8192)
def near_synonym(lemma: str, pos: PartOfSpeech) -> str | None:
    """The nearest other lemma, underscores kept; None if none is near enough."""
    wordnet = load_wordnet()
    found: list[tuple[int, str]] = []
    for synset in wordnet.synsets(lemma, pos)[:1]:
        for other in synset.lemmas:
            words = other.replace("-", "_").split("_")
            if lemma in (other, *words) or len(other) < SHORTEST:
                continue
            if not all(word in _common_words() for word in words):
                continue
            senses = [sense.number for sense in wordnet.synsets(other, pos)]
            found.append((senses.index(synset.number) + 2 * (len(words) - 1), other))
    distance, nearest = min(found, key=lambda pair: pair[0], default=(FURTHEST + 1, ""))
    return nearest if distance <= FURTHEST else None


@cache
def _common_words() -> frozenset[str]:
    """In lower case, so that names (Taiwan) and units (H2O) are none."""
    text = files("dialeval.augment").joinpath("common-words.txt").read_text(encoding="ascii")
    return frozenset(text.split())
