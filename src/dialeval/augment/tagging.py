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
from dialeval.models.locate import locate


@dataclass(frozen=True, slots=True)
class Word:
    """A word in its sentence.

    start      its place in the text
    tag        Penn Treebank tag, such as VBD
    auxiliary  a modal, or a form of be, have, do that serves another verb; the copula too
    particle   a verb with a particle of its own, as in "give up"
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
        """The words of each text, cut and parsed by spaCy."""
        return [_words(document) for document in self._pipeline.pipe(texts)]

    def tag_words(self, sentences: Iterable[Sequence[str]]) -> list[list[str]]:
        """The tags of words that are cut already."""
        documents = (self._document(self._pipeline.vocab, words=list(words)) for words in sentences)
        with self._pipeline.select_pipes(disable=["parser"]):
            return [[token.tag_ for token in done] for done in self._pipeline.pipe(documents)]


@cache
def load_tagger(name: str) -> Tagger:
    """The pipeline of this catalogue name or directory, loaded once."""
    try:
        spacy = importlib.import_module("spacy")
        document = importlib.import_module("spacy.tokens").Doc
    except ModuleNotFoundError as error:
        raise UsageError(
            "parts of speech need spaCy, which is not installed: pip install 'dialeval[augment]'"
        ) from error
    directory = locate(name).directory
    try:
        pipeline = spacy.load(directory, exclude=["ner", "senter", "lemmatizer"])
    except (OSError, ValueError) as error:
        raise UsageError(f"{directory}: not a spaCy pipeline: {error}") from error
    return Tagger(pipeline, document)


def _words(document: Any) -> list[Word]:
    with_particle = {token.head.i for token in document if token.dep_ == "prt"}
    return [
        Word(
            token.text,
            token.idx,
            token.tag_,
            auxiliary=token.pos_ == "AUX",
            particle=token.i in with_particle,
        )
        for token in document
        if not token.is_space
    ]
