"""Easy data augmentation (EDA): synonym replacement, random insertion, swap and deletion.

Wei and Zou, EDA: Easy Data Augmentation Techniques for Boosting Performance on Text Classification
Tasks, EMNLP 2019. For a text of l words, n = max(1, int(alpha * l)):

- replacement: n random words that are no stop words become a random synonym, wherever they stand
- insertion: n times a synonym of a random word is put at a random place
- swap: n times two random words change places
- deletion: each word goes with probability alpha; one stays

Alphas are 0.1, and a text gets 9 variants: int(9 / 4) + 1 of each operation, of which 9 are drawn.
Synonyms are all lemmas of all synsets of the word, in any part of speech.

The authors' code first strips the text of all but lower-case letters (mode=released). A chatbot is
to be asked what people would write, so mode=paper keeps punctuation, digits and capital letters.
Of Chinese and Japanese, the words are the characters: they have no synonyms in WordNet, and are
swapped and deleted.

The draws depend on the seed and the text only, not on its place in a file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from dialeval.augment.queries import Query, QueryVariant
from dialeval.lexicon import load_wordnet
from dialeval.options import option
from dialeval.text import WORD, is_unspaced

STOP_WORDS = {
    "i", "me", "my", "myself", "we", "our", "ours", "ourselves", "you", "your", "yours", "yourself",
    "yourselves", "he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its",
    "itself", "they", "them", "their", "theirs", "themselves", "what", "which", "who", "whom",
    "this", "that", "these", "those", "am", "is", "are", "was", "were", "be", "been", "being",
    "have", "has", "had", "having", "do", "does", "did", "doing", "a", "an", "the", "and", "but",
    "if", "or", "because", "as", "until", "while", "of", "at", "by", "for", "with", "about",
    "against", "between", "into", "through", "during", "before", "after", "above", "below", "to",
    "from", "up", "down", "in", "out", "on", "off", "over", "under", "again", "further", "then",
    "once", "here", "there", "when", "where", "why", "how", "all", "any", "both", "each", "few",
    "more", "most", "other", "some", "such", "no", "nor", "not", "only", "own", "same", "so",
    "than", "too", "very", "s", "t", "can", "will", "just", "don", "should", "now",
}  # fmt: skip
"""The stop words of the authors' code."""


@dataclass(frozen=True, slots=True)
class WordList:
    """Words, and what stands before each of them and after the last: one more gap than words."""

    words: tuple[str, ...]
    gaps: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> WordList:
        return cls(tuple(WORD.findall(text)), tuple(WORD.split(text)))

    def __str__(self) -> str:
        pieces = []
        spaced = False
        for gap, word in zip(self.gaps, self.words, strict=False):
            was_spaced, spaced = spaced, not is_unspaced(word)
            # Words that an edit moved together: what stood between them needed no space.
            pieces += [gap or (" " if was_spaced and spaced else ""), word]
        return re.sub(r"\s+", " ", "".join(pieces) + self.gaps[-1]).strip()


@dataclass(frozen=True)
class EasyDataAugmentation:
    """Replaces, inserts, swaps and deletes random words."""

    name: ClassVar[str] = "eda"
    keeps_repeats: ClassVar[bool] = False
    reads_all: ClassVar[bool] = False

    mode: Literal["paper", "released"] = option(
        "paper", "released: keep only the letters of the text, in lower case"
    )
    replace: float = option(0.1, "share of the words to replace; 0: none", low=0, high=1)
    insert: float = option(0.1, "share of the words to insert", low=0, high=1)
    swap: float = option(0.1, "share of the words to swap", low=0, high=1)
    delete: float = option(0.1, "probability of deleting a word", low=0, high=1)
    variants: int = option(9, "variants of each query", low=1, high=1000)
    seed: int = option(0, "seed of the random edits", low=0)

    def augment(self, queries: Sequence[Query]) -> list[list[QueryVariant]]:
        return [self._variants(query.query) for query in queries]

    def _variants(self, query: str) -> list[QueryVariant]:
        text = WordList.of(letters_only(query) if self.mode == "released" else query)
        if not text.words:
            return []
        digest = hashlib.sha256(query.encode("utf-8", "surrogatepass")).digest()
        generator = np.random.default_rng([self.seed, int.from_bytes(digest)])
        operations: list[tuple[str, float, Operation]] = [
            ("eda replace", self.replace, replace_words),
            ("eda insert", self.insert, insert_words),
            ("eda swap", self.swap, swap_words),
            ("eda delete", self.delete, delete_words),
        ]
        made = [
            QueryVariant(str(operation(text, alpha, generator)), how)
            for how, alpha, operation in operations
            if alpha > 0
            for _ in range(self.variants // 4 + 1)
        ]
        drawn = generator.permutation(len(made))[: self.variants]
        return [made[place] for place in sorted(drawn.tolist())]


def letters_only(text: str) -> str:
    """Does what the authors' `get_only_chars` does: "It's 5 o'clock!" -> "its oclock"."""
    joined = re.sub("['’]", "", text.lower())
    return " ".join(re.sub("[^a-z]", " ", joined).split())


Operation = Callable[[WordList, float, np.random.Generator], WordList]


def replace_words(text: WordList, alpha: float, generator: np.random.Generator) -> WordList:
    words = list(text.words)
    candidates = sorted({word for word in words if word.lower() not in STOP_WORDS})
    left = _times(alpha, words)
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words):
        places.setdefault(word, []).append(place)
    for number in generator.permutation(len(candidates)).tolist():
        if not left:
            break
        old = candidates[number]
        if choices := synonyms(old.lower()):
            new = choices[generator.integers(len(choices))]
            moved = places.pop(old, [])
            for place in moved:
                words[place] = new
            places.setdefault(new, []).extend(moved)
            left -= 1
    return WordList(tuple(words), text.gaps)


def insert_words(text: WordList, alpha: float, generator: np.random.Generator) -> WordList:
    words, gaps = list(text.words), list(text.gaps)
    # Flags are bytes because they are counted at every insertion: a long text stays quick.
    has_synonyms = bytearray(bool(synonyms(word.lower())) for word in words)
    known = [word for word, has in zip(words, has_synonyms, strict=True) if has]
    for _ in range(_times(alpha, words) if known else 0):
        choices = synonyms(known[generator.integers(len(known))].lower())
        place = int(generator.integers(len(words)))
        new = choices[generator.integers(len(choices))]
        if has := bool(synonyms(new)):
            known.insert(has_synonyms.count(1, 0, place), new)
        has_synonyms.insert(place, has)
        words.insert(place, new)
        gaps.insert(place + 1, " ")
    return WordList(tuple(words), tuple(gaps))


def swap_words(text: WordList, alpha: float, generator: np.random.Generator) -> WordList:
    words = list(text.words)
    if len(words) > 1:
        for _ in range(_times(alpha, words)):
            first, second = generator.choice(len(words), size=2, replace=False)
            words[first], words[second] = words[second], words[first]
    return WordList(tuple(words), text.gaps)


def delete_words(text: WordList, alpha: float, generator: np.random.Generator) -> WordList:
    kept = [place for place in range(len(text.words)) if generator.random() > alpha]
    if not kept:
        kept = [int(generator.integers(len(text.words)))]
    # The gap before a word goes with it, except that before the first: it may open a quotation.
    gaps = [text.gaps[0], *(text.gaps[place] for place in kept[1:]), text.gaps[-1]]
    return WordList(tuple(text.words[place] for place in kept), tuple(gaps))


def _times(alpha: float, words: Sequence[str]) -> int:
    return max(1, int(alpha * len(words)))


@lru_cache(maxsize=65536)
def synonyms(word: str) -> tuple[str, ...]:
    """Returns all other lemmas of all its synsets, letters and spaces only, in alphabetical
    order."""
    lemmas = {lemma for synset in load_wordnet().synsets(word) for lemma in synset.lemmas}
    spelled = {re.sub(r"[^a-z ]", "", re.sub("[_-]", " ", lemma.lower())) for lemma in lemmas}
    return tuple(sorted(spelled - {word, ""}))
