"""Parts of speech: Penn Treebank tags from spaCy's small English pipeline.

Two ways to cut a text into words: spaCy's own (`tag_texts`), and words that somebody cut already
(`tag_words`), as in the data that HolisticEval released, where contractions are one word.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from dialeval.errors import UsageError
from dialeval.model_store.locate import locate, ready

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
