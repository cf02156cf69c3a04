"""The lexicon in the shape of NLTK's reader, as far as METEOR looks at it.

`nltk.translate.meteor_score.meteor_score(..., wordnet=NltkView(load_wordnet()))` calls
`synsets(word)`, on each synset `lemmas()`, on each lemma `name()`, and nothing else.
"""

from dataclasses import dataclass
from functools import lru_cache

from dialeval.lexicon.wordnet import WordNet


@dataclass(frozen=True, slots=True)
class NltkLemma:
    text: str

    def name(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class NltkSynset:
    members: tuple[NltkLemma, ...]

    def lemmas(self) -> tuple[NltkLemma, ...]:
        return self.members


class NltkView:
    """Remembers the words asked for last, since METEOR asks for every word of every sentence."""

    def __init__(self, lexicon: WordNet, remembered_words: int = 8192) -> None:
        self._lexicon = lexicon
        self._remember = lru_cache(maxsize=remembered_words)(self._look_up)

    def synsets(self, word: str) -> tuple[NltkSynset, ...]:
        return self._remember(word.lower())

    def _look_up(self, word: str) -> tuple[NltkSynset, ...]:
        return tuple(
            NltkSynset(tuple(NltkLemma(lemma) for lemma in synset.lemmas))
            for synset in self._lexicon.synsets(word)
        )
