"""WordNet 3.0 in one megabyte: words, their synsets in sense order, the synsets' lemmas, morphy.

Answers are those of `nltk.corpus.wordnet` over the WordNet 3.0 files, without a download. Glosses
and relations between synsets are left out.

`wordnet-3.0.npz` is written by `scripts/build_wordnet.py` and holds these arrays:

    spellings       all lemmas in their original case ("Earth", "earth"), a newline between two,
                    ordered by lower case, then by case
    repeats         numbers of the spellings whose lower case is that of the spelling before
    {n,v,a,r}_...   for each part of speech:
      sizes         lemmas in each synset, in the order of WordNet's data file
      members       for each lemma of each synset, the number of its spelling
      ranks         and which sense of that word the synset is, counted from 1; 0 if the synset has
                    the same word in another case before ("Earth", "earth")
      satellites    which adjective synsets are satellites
      exceptions    irregular forms: lines of "form base ..."

A word is named by the number of its first spelling. The senses of word w are
`senses[sense_starts[w] : sense_starts[w + 1]]`, which is where `ranks` says they belong.

`NltkView` is the lexicon in the shape of NLTK's reader, as far as METEOR looks at it:
`nltk.translate.meteor_score.meteor_score(..., wordnet=NltkView(load_wordnet()))` calls
`synsets(word)`, on each synset `lemmas()`, on each lemma `name()`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import numpy as np
from numpy.typing import NDArray

PartOfSpeech = Literal["n", "v", "a", "r"]
SynsetType = Literal["n", "v", "a", "s", "r"]

# The order in which NLTK asks when no part of speech is given.
PARTS_OF_SPEECH: tuple[PartOfSpeech, ...] = ("n", "v", "a", "r")

# Morphy's rules of detachment, morphy(7WN), in the order of NLTK: replace an ending by another.
DETACHMENTS: dict[PartOfSpeech, tuple[tuple[str, str], ...]] = {
    "n": (
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ),
    "v": (
        ("s", ""),
        ("ies", "y"),
        ("es", "e"),
        ("es", ""),
        ("ed", "e"),
        ("ed", ""),
        ("ing", "e"),
        ("ing", ""),
    ),
    "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "r": (),
}


@dataclass(frozen=True, slots=True)
class Synset:
    """Lemmas that share a meaning, in WordNet's order and case, underscores kept.

    `number` is the place in WordNet's data file of the part of speech, counted from 0. (Byte
    offsets would differ between Princeton's and Debian's files of the same version.)
    """

    pos: SynsetType
    number: int
    lemmas: tuple[str, ...]

    @property
    def name(self) -> str:
        """The head lemma: the one that WordNet lists first."""
        return self.lemmas[0]


@dataclass(frozen=True, slots=True)
class Counts:
    """The columns of WordNet's own statistics, wnstats(7WN)."""

    words: int
    synsets: int
    senses: int


@dataclass(frozen=True, slots=True)
class _Part:
    """The tables of one part of speech."""

    members: NDArray[np.int32]
    member_starts: NDArray[np.int32]
    senses: NDArray[np.int32]
    sense_starts: NDArray[np.int32]
    satellites: NDArray[np.bool_]
    exceptions: dict[str, list[str]]


class WordNet:
    """The lexicon. Get it with `load_wordnet()`."""

    def __init__(
        self,
        spellings: list[str],
        word_numbers: dict[str, int],
        parts: dict[PartOfSpeech, _Part],
    ) -> None:
        self._spellings = spellings
        self._word_numbers = word_numbers
        self._parts = parts

    def synsets(self, word: str, pos: PartOfSpeech | None = None) -> tuple[Synset, ...]:
        """Returns the synsets of a word in any case and inflection, most usual sense first.

        Without `pos`: nouns, verbs, adjectives, adverbs. If several base forms fit (the verb
        "axes": axe, ax), the senses of one follow those of the other, and a synset can come twice.
        """
        lower = word.lower()
        return tuple(
            self._synset(part, number)
            for part in _asked(pos)
            for form in self.lemma_forms(lower, part)
            for number in self._sense_numbers(form, part)
        )

    def lemma_forms(self, form: str, pos: PartOfSpeech) -> tuple[str, ...]:
        """Returns all words of WordNet that `form` can be an inflection of, itself first.

        Like `morphy`, and unlike `synsets`, this takes the case as it is: WordNet's words are
        in lower case.
        """
        (part,) = _asked(pos)
        bases = self._parts[part].exceptions.get(form)
        if bases is None:
            bases = [
                form.removesuffix(ending) + replacement
                for ending, replacement in DETACHMENTS[part]
                if form.endswith(ending)
            ]
        return tuple(
            dict.fromkeys(base for base in (form, *bases) if self._sense_numbers(base, part))
        )

    def morphy(self, form: str, pos: PartOfSpeech | None = None) -> str | None:
        """Returns the first base form of the first part of speech that has one."""
        for part in _asked(pos):
            for base in self.lemma_forms(form, part):
                return base
        return None

    def exceptions(self, pos: PartOfSpeech) -> Mapping[str, Sequence[str]]:
        """Irregular forms and the words that they are forms of: "went" -> ["go"]."""
        (part,) = _asked(pos)
        return self._parts[part].exceptions

    def words(self, pos: PartOfSpeech) -> Iterator[str]:
        """Returns all words of a part of speech in alphabetical order, in lower case."""
        (part,) = _asked(pos)
        counts = np.diff(self._parts[part].sense_starts)
        return (self._spellings[number].lower() for number in np.flatnonzero(counts))

    def all_synsets(self, pos: PartOfSpeech) -> Iterator[Synset]:
        """Returns all synsets of a part of speech in the order of WordNet's data file."""
        (part,) = _asked(pos)
        return (self._synset(part, number) for number in range(len(self._parts[part].satellites)))

    def counts(self, pos: PartOfSpeech) -> Counts:
        (part,) = _asked(pos)
        tables = self._parts[part]
        words = int(np.count_nonzero(np.diff(tables.sense_starts)))
        return Counts(words, len(tables.satellites), len(tables.senses))

    def _sense_numbers(self, word: str, pos: PartOfSpeech) -> list[int]:
        number = self._word_numbers.get(word)
        if number is None:
            return []
        tables = self._parts[pos]
        start, stop = tables.sense_starts[number], tables.sense_starts[number + 1]
        numbers: list[int] = tables.senses[start:stop].tolist()
        return numbers

    def _synset(self, pos: PartOfSpeech, number: int) -> Synset:
        tables = self._parts[pos]
        start, stop = tables.member_starts[number], tables.member_starts[number + 1]
        lemmas = tuple(self._spellings[member] for member in tables.members[start:stop].tolist())
        return Synset("s" if tables.satellites[number] else pos, number, lemmas)


def _asked(pos: PartOfSpeech | None) -> tuple[PartOfSpeech, ...]:
    """Returns the parts of speech to look into."""
    if pos is None:
        return PARTS_OF_SPEECH
    if pos not in PARTS_OF_SPEECH:
        raise ValueError(
            f"no part of speech {pos!r}. WordNet has 'n', 'v', 'a' and 'r'; "
            "satellite adjectives ('s') are found under 'a'"
        )
    return (pos,)


@cache
def load_wordnet() -> WordNet:
    """Returns the lexicon inside this package, read once."""
    with (
        files("dialeval.lexicon").joinpath("wordnet-3.0.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        arrays: dict[str, NDArray[np.generic]] = dict(archive)

    text = _text(arrays["spellings"])
    spellings = text.split("\n")
    # The number of a spelling's word: its own, or for a repeat that of the nearest non-repeat.
    words = np.arange(len(spellings), dtype=np.int32)
    words[arrays["repeats"].astype(np.int64)] = 0
    words = np.maximum.accumulate(words)
    return WordNet(
        spellings,
        dict(zip(text.lower().split("\n"), words.tolist(), strict=True)),
        {pos: _read_part(arrays, pos, words) for pos in PARTS_OF_SPEECH},
    )


def _read_part(
    arrays: dict[str, NDArray[np.generic]], pos: PartOfSpeech, words: NDArray[np.int32]
) -> _Part:
    sizes = arrays[f"{pos}_sizes"].astype(np.int32)
    members = arrays[f"{pos}_members"].astype(np.int32)
    ranks = arrays[f"{pos}_ranks"].astype(np.int32)

    is_sense = ranks > 0
    word = words[members[is_sense]]
    synset = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[is_sense]
    sense_starts = _starts(np.bincount(word, minlength=len(words)))
    senses = np.empty(len(word), dtype=np.int32)
    senses[sense_starts[word] + ranks[is_sense] - 1] = synset

    exceptions = (line.split() for line in _text(arrays[f"{pos}_exceptions"]).split("\n"))
    return _Part(
        members=members,
        member_starts=_starts(sizes),
        senses=senses,
        sense_starts=sense_starts,
        satellites=arrays[f"{pos}_satellites"].astype(np.bool_),
        exceptions={form: bases for form, *bases in exceptions},
    )


def _starts(lengths: NDArray[np.integer]) -> NDArray[np.int32]:
    """Returns where each of the consecutive runs of these lengths starts, and where the last one
    ends."""
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)


def _text(array: NDArray[np.generic]) -> str:
    return array.tobytes().decode("ascii")


@dataclass(frozen=True, slots=True)
class NltkLemma:
    """A word of a synset, with nltk's method."""

    text: str

    def name(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class NltkSynset:
    """A synset, with nltk's method."""

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
