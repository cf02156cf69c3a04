"""The keywords of an utterance, as GRADE finds them (Huang et al., EMNLP 2020).

    score(w) = weight of w's part of speech * tf * 1/|utterance| * log10(N / (df + 1))

The weight is 2 for a noun, 1 for a verb, .5 for an adjective; tf counts w in the utterance, df the
utterances with w among the N that a judge learned from. Keywords are the lemmas that score above
.15, in the order in which they are said, as often as they are said.

Which part of speech a word is decides a tagger:

    lexicon  that in which WordNet gives the word the most senses; words of the closed classes are
             none. Nothing has to be fetched, and a turn costs some 20 microseconds
    NAME     a spaCy pipeline such as `spacy-en-sm`, which looks at the sentence: a millisecond. On
             30 000 pairs of DailyDialog and after 2 epochs it puts the right response first in 67%
             of unseen cases, `lexicon` in 66%
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from dialeval.errors import UsageError
from dialeval.lexicon import PartOfSpeech, load_wordnet
from dialeval.model_store.weights import read_json
from dialeval.storage import write_json
from dialeval.text import FUNCTION_WORDS, treebank_words

TopicalPart = Literal["NN", "VB", "JJ"]

WEIGHTS: Mapping[TopicalPart, float] = {"NN": 2.0, "VB": 1.0, "JJ": 0.5}
THRESHOLD = 0.15
SHORTEST = 2
"""Letters of a lemma."""

WORDNET_PARTS: Mapping[PartOfSpeech, TopicalPart | None] = {
    "n": "NN",
    "v": "VB",
    "a": "JJ",
    "r": None,
}
FREQUENCIES = "idf.json"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A word that may be a keyword."""

    lemma: str
    part: TopicalPart


Tagged: TypeAlias = Sequence[Candidate | None]
"""The words of an utterance; None for those that cannot be keywords."""

Tagger: TypeAlias = Callable[[Sequence[str]], list[Tagged]]
"""Texts in, their words out."""


@dataclass(frozen=True)
class Frequencies:
    """In how many of `utterances` each lemma was found."""

    utterances: int
    lemmas: Mapping[str, int]

    @classmethod
    def count(cls, tagged: Iterable[Tagged]) -> Frequencies:
        utterances, lemmas = 0, Counter[str]()
        for words in tagged:
            utterances += 1
            lemmas.update({word.lemma for word in words if word})
        return cls(utterances, dict(sorted(lemmas.items())))

    @classmethod
    def read(cls, directory: Path) -> Frequencies:
        path = directory / FREQUENCIES
        record = read_json(path)
        utterances, lemmas = record.get("utterances"), record.get("lemmas")
        if not isinstance(utterances, int) or not isinstance(lemmas, dict):
            raise UsageError(f"{path}: expected the numbers `utterances` and `lemmas`.")
        return cls(utterances, lemmas)

    def write(self, directory: Path) -> None:
        write_json(
            directory / FREQUENCIES, {"utterances": self.utterances, "lemmas": dict(self.lemmas)}
        )

    def idf(self, lemma: str) -> float:
        """log10(N / (df + 1)); negative for a word of every utterance."""
        return math.log10(self.utterances / (self.lemmas.get(lemma, 0) + 1))


def keyword_score(part: TopicalPart, count: int, length: int, idf: float) -> float:
    return WEIGHTS[part] * count / length * idf


def keywords(tagged: Tagged, frequencies: Frequencies) -> tuple[str, ...]:
    counts = Counter(word.lemma for word in tagged if word)
    return tuple(
        word.lemma
        for word in tagged
        if word
        and keyword_score(word.part, counts[word.lemma], len(tagged), frequencies.idf(word.lemma))
        > THRESHOLD
    )


def make_tagger(name: str) -> Tagger:
    return tag_by_lexicon if name == "lexicon" else _tag_by_spacy(name)


def tag_by_lexicon(texts: Sequence[str]) -> list[Tagged]:
    return [[_usual_part(word) for word in treebank_words(text.lower())] for text in texts]


@cache
def _usual_part(word: str) -> Candidate | None:
    """Returns the part of speech with the most senses; a noun before a verb before an adjective."""
    if word in FUNCTION_WORDS:
        return None
    wordnet = load_wordnet()
    found: Candidate | None = None
    most = 0
    for pos, part in WORDNET_PARTS.items():
        for lemma in wordnet.lemma_forms(word, pos)[:1]:
            if (senses := len(wordnet.synsets(lemma, pos))) > most:
                most, found = senses, _candidate(lemma, part)
    return found


def _candidate(lemma: str, part: TopicalPart | None) -> Candidate | None:
    if part is None or len(lemma) < SHORTEST or lemma in FUNCTION_WORDS or not lemma[0].isalpha():
        return None
    return Candidate(lemma, part)


def _tag_by_spacy(name: str) -> Tagger:
    from dialeval.models.tagger import load_tagger

    tagger, wordnet = load_tagger(name), load_wordnet()
    parts: dict[TopicalPart, PartOfSpeech] = {"NN": "n", "VB": "v", "JJ": "a"}

    def candidate(text: str, tag: str) -> Candidate | None:
        for part, pos in parts.items():
            if tag.startswith(part):
                word = text.lower()
                return _candidate(wordnet.morphy(word, pos) or word, part)
        return None

    def tag(texts: Sequence[str]) -> list[Tagged]:
        return [
            [candidate(word.text, word.tag) for word in words] for words in tagger.tag_texts(texts)
        ]

    return tag
