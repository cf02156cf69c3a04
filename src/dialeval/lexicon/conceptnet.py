"""ConceptNet in under a megabyte: which words are joined by an assertion, how far two are apart.

    >>> concepts = load_conceptnet()
    >>> concepts.hops("dog", "dog"), concepts.hops("dog", "bark"), concepts.hops("dog", "zzz")
    (0, 1, None)

The words and assertions are those of CN-100K (Li et al., 2016), a selection from ConceptNet 5;
`scripts/build_conceptnet.py` says how assertions about phrases become edges between words, and
makes a larger graph from the whole of ConceptNet for those who have it. Edges have no direction and
no kind.

`conceptnet.npz` holds these arrays:

    words       all words in alphabetical order, a newline between two
    degrees     neighbours of each word
    neighbours  the numbers of the neighbours, those of the first word first, each list from the
                nearest to the furthest by cosine of word vectors
    beyond      for each word the numbers of the nearest among its neighbours' neighbours, at most
                `NEAREST`, padded with the word itself
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

NEAREST = 10
"""Neighbours whose mean describes a word's surroundings, as in GRADE (N10)."""


class ConceptNet:
    """The graph. Get it with `load_conceptnet()`. Sets of neighbours are made when first needed."""

    def __init__(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        self.digest = _digest(arrays)
        self.words: list[str] = arrays["words"].tobytes().decode("utf-8").split("\n")
        self._numbers = {word: number for number, word in enumerate(self.words)}
        degrees = arrays["degrees"].astype(np.int64)
        self._starts = np.concatenate(([0], np.cumsum(degrees)))
        self._neighbours = arrays["neighbours"]
        self._beyond = arrays["beyond"]
        self._sets: dict[int, frozenset[int]] = {}

    def __contains__(self, word: str) -> bool:
        return word in self._numbers

    def neighbours(self, word: str) -> list[str]:
        """Returns the words that an assertion joins with this one, the nearest first."""
        if (number := self._numbers.get(word)) is None:
            return []
        return [self.words[other] for other in self._row(number)]

    def nearest(self, word: str) -> tuple[str, ...]:
        """Returns the first neighbours of a word."""
        if (number := self._numbers.get(word)) is None:
            return ()
        return tuple(self.words[other] for other in self._row(number, NEAREST))

    def nearest_beyond(self, word: str) -> tuple[str, ...]:
        """Returns the nearest of the neighbours' neighbours. They may be neighbours themselves."""
        if (number := self._numbers.get(word)) is None:
            return ()
        row: list[int] = self._beyond[number].tolist()
        return tuple(self.words[other] for other in row if other != number)

    def hops(self, one: str, other: str, limit: int | None = None) -> int | None:
        """Returns the fewest edges from one word to the other; None where there is no way, or none
        of at most `limit` edges. A word that is not here is 0 edges from itself."""
        if one == other:
            return 0
        start, goal = self._numbers.get(one), self._numbers.get(other)
        if start is None or goal is None:
            return None
        return self._hops(start, goal, limit)

    def hops_among(self, words: Sequence[str], limit: int) -> NDArray[np.uint8]:
        """`hops` between any two of some words that are here; `limit + 1` where there are more.

        All at once: who is reached from a word in k hops is a row of bits, and in k + 1 hops it is
        that row with those of its neighbours.
        """
        places = [self._numbers[word] for word in words]
        reached = np.zeros((len(self.words), len(words)), dtype=np.bool_)
        reached[places, np.arange(len(words))] = True
        bits = np.packbits(reached, axis=1)
        found = np.full((len(words), len(words)), limit + 1, dtype=np.uint8)
        np.fill_diagonal(found, 0)
        for steps in range(1, limit + 1):
            bits = self._spread(bits)
            here = np.unpackbits(bits[places], axis=1, count=len(words)).view(np.bool_)
            found[here & (found > steps)] = steps
        return found

    def _spread(self, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
        spread = bits.copy()
        for number in range(len(self.words)):
            row = self._neighbours[self._starts[number] : self._starts[number + 1]]
            spread[number] |= np.bitwise_or.reduce(bits[row], axis=0)
        return spread

    def _hops(self, start: int, goal: int, limit: int | None) -> int | None:
        """Searches from both words until the searches meet: each step widens the smaller
        frontier."""
        seen, near = {start}, self._set(start)
        seen_there, there = {goal}, frozenset({goal})
        # `near` lies `steps` edges from the start, `there` those that are left.
        steps = 1
        while near and there and (limit is None or steps <= limit):
            if not near.isdisjoint(there):
                return steps
            if len(near) <= len(there):
                seen |= near
                near = self._widen(near, seen)
            else:
                seen_there |= there
                there = self._widen(there, seen_there)
            steps += 1
        return None

    def _widen(self, frontier: frozenset[int], seen: set[int]) -> frozenset[int]:
        return frozenset().union(*map(self._set, frontier)).difference(seen)

    def _set(self, number: int) -> frozenset[int]:
        if number not in self._sets:
            self._sets[number] = frozenset(self._row(number))
        return self._sets[number]

    def _row(self, number: int, most: int | None = None) -> list[int]:
        start, stop = int(self._starts[number]), int(self._starts[number + 1])
        if most is not None:
            stop = min(stop, start + most)
        row: list[int] = self._neighbours[start:stop].tolist()
        return row


def _digest(arrays: Mapping[str, NDArray[np.generic]]) -> str:
    """Equal for equal graphs, however their file is packed."""
    sha = hashlib.sha256()
    for name in sorted(arrays):
        sha.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return sha.hexdigest()[:16]


@cache
def load_conceptnet(path: Path | None = None) -> ConceptNet:
    """Returns the graph inside this package, or one that `scripts/build_conceptnet.py` made; read
    once."""
    place = path or files("dialeval.lexicon").joinpath("conceptnet.npz")
    with place.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return ConceptNet(dict(archive))
