"""Parts of speech: Penn Treebank tags from spaCy's small English pipeline.

Two ways to cut a text into words: spaCy's own (`tag_texts`), and words that somebody cut already
(`tag_words`), as in the data that HolisticEval released, where contractions are one word.

The keywords of an utterance, as GRADE finds them (Huang et al., EMNLP 2020).

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

import importlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dialeval.errors import UsageError
from dialeval.lexicon import PartOfSpeech, load_wordnet
from dialeval.model_store.locate import locate, ready
from dialeval.model_store.weights import read_json
from dialeval.storage import write_json
from dialeval.text import FUNCTION_WORDS, treebank_words

UNUSED = ["parser", "ner", "senter", "lemmatizer"]
"""Parts of a pipeline that tags do without."""

AUXILIARIES = {
    "be", "am", "is", "are", "was", "were", "been", "being", "have", "has", "had", "having", "do",
    "does", "did", "done", "doing",
}  # fmt: skip

FURTHEST_PARTICLE = 4
"""Words from a verb to its particle: "pick the old man up"."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word in its sentence.

    start      its place in the text
    tag        Penn Treebank tag, such as VBD
    auxiliary  a modal, or a form of be, have, do, whether it serves another verb or not
    particle   a verb with a particle of its own, as in "give up" or "pick him up"
    """

    text: str
    start: int
    tag: str
    auxiliary: bool = False
    particle: bool = False

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Tagger:
    """A spaCy pipeline. Get it with `load_tagger`."""

    def __init__(self, pipeline: Any, document: Any) -> None:
        self._pipeline = pipeline
        self._document = document

    def tag_texts(self, texts: Iterable[str]) -> list[list[Word]]:
        """Returns the words of each text, cut and tagged by spaCy."""
        return [_words(document) for document in self._pipeline.pipe(texts)]

    def tag_words(self, sentences: Iterable[Sequence[str]]) -> list[list[str]]:
        """Returns the tags of words that are cut already."""
        documents = (self._document(self._pipeline.vocab, words=list(words)) for words in sentences)
        return [[token.tag_ for token in done] for done in self._pipeline.pipe(documents)]


@cache
def load_tagger(name: str) -> Tagger:
    """Loads the pipeline of this catalogue name or directory, loaded once."""
    try:
        spacy = importlib.import_module("spacy")
        document = importlib.import_module("spacy.tokens").Doc
    except ModuleNotFoundError as error:
        raise UsageError(
            "parts of speech need spaCy, which is not installed: pip install 'dialeval[augment]'"
        ) from error
    directory = ready(locate(name))
    try:
        pipeline = spacy.load(directory, exclude=UNUSED)
    except (OSError, ValueError) as error:
        raise UsageError(f"{directory}: not a spaCy pipeline: {error}") from error
    return Tagger(pipeline, document)


def _words(document: Any) -> list[Word]:
    tokens = [token for token in document if not token.is_space]
    with_particle = _verbs_with_particle([token.tag_ for token in tokens])
    return [
        Word(
            token.text,
            token.idx,
            token.tag_,
            auxiliary=token.tag_ == "MD" or token.lower_ in AUXILIARIES,
            particle=place in with_particle,
        )
        for place, token in enumerate(tokens)
    ]


def _verbs_with_particle(tags: Sequence[str]) -> set[int]:
    """Returns the places of verbs that a particle (RP) belongs to: the last verb before it."""
    found, verb = set(), -FURTHEST_PARTICLE - 1
    for place, tag in enumerate(tags):
        if tag.startswith("VB"):
            verb = place
        elif tag == "RP" and place - verb <= FURTHEST_PARTICLE:
            found.add(verb)
    return found


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

TagText: TypeAlias = Callable[[Sequence[str]], list[Tagged]]
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


def make_tagger(name: str) -> TagText:
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


def _tag_by_spacy(name: str) -> TagText:

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
