"""Four samplers of wrong responses.

    random    any response of the corpus (RUBER, BERT-RUBER)
    weighted  PONE, section 3.3.1: of h responses drawn uniformly, with replacement, one at random,
              p(n) = softmax(cos(r, n) / t) with the true response r. At t = 0.05 it is mostly the
              most similar one; at h = 1 it is `random`. (The paper says "select the closest", its
              code draws.)
    middle    MME-CRS: of ten responses, that of rank 5 by similarity, counted from 0
    bm25      released code of PONE: one of the 100 best matches by BM25 among 5 000 responses

What reads like the true response, letter by letter, is never its negative.

Similarities are computed for blocks of responses with the candidates that the block shares, so that
neither all pairs of responses nor h vectors per response are ever held. For each single response
its candidates are a uniform draw; only neighbours in a block, which is in random order, have the
same ones.

BM25 (Robertson et al., 1995): how well the words of a text match those of others.

    score(q, d) = sum over the words w of q of  idf(w) * f * (k1 + 1) / (f + k1 * (1 - b + b * |d| /
    mean |d|))

f is the count of w in d, idf(w) = ln(1 + (N - n + .5) / (n + .5)) for n of N texts with w; k1 = 1.2
and b = 0.75 as in Lucene.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from dialeval.errors import UsageError
from dialeval.sample import letters_and_digits

K1, B = 1.2, 0.75

_WORD = re.compile(r"\w+")


class BM25:
    """An index of texts. Chinese text has no spaces: `words` gives its characters."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(words(text)) for text in texts]
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        norms = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-12))
        postings: dict[str, tuple[list[int], list[int]]] = {}
        for number, count in enumerate(counts):
            for word, times in count.items():
                places, frequencies = postings.setdefault(word, ([], []))
                places.append(number)
                frequencies.append(times)
        self._size = len(texts)
        self._postings: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = {}
        for word, (places, frequencies) in postings.items():
            where, f = np.array(places), np.array(frequencies, dtype=np.float64)
            idf = np.log1p((self._size - len(where) + 0.5) / (len(where) + 0.5))
            self._postings[word] = where, idf * f * (K1 + 1) / (f + norms[where])

    def scores(self, text: str) -> npt.NDArray[np.float64]:
        """Returns one score per indexed text; a word counts as often as `text` holds it."""
        found = np.zeros(self._size)
        for word, times in Counter(words(text)).items():
            if word in self._postings:
                where, weights = self._postings[word]
                found[where] += times * weights
        return found


def words(text: str) -> list[str]:
    """Words in lower case; of scripts without spaces, single characters."""
    return [
        piece
        for word in _WORD.findall(text.casefold())
        for piece in (word if any(char >= "\u3040" for char in word) else (word,))
    ]


SamplerName = Literal["weighted", "random", "middle", "bm25"]
SAMPLERS: tuple[SamplerName, ...] = get_args(SamplerName)

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

BLOCK = 64
"""Responses that share candidates."""

MIDDLE_OF, MIDDLE_RANK = 10, 5
BM25_DOCUMENTS, BM25_BEST = 5000, 100


@dataclass(frozen=True)
class SamplerOptions:
    """`candidates` is h and `temperature` t, of the weighted sampler."""

    name: SamplerName = "weighted"
    candidates: int = 200
    temperature: float = 0.05


def selection_probabilities(
    cosines: npt.NDArray[np.floating], temperature: float
) -> npt.NDArray[np.float64]:
    """softmax(cosine / t) over the last axis (equation 3); a candidate at -inf has none."""
    scaled = np.asarray(cosines, dtype=np.float64) / temperature
    weights = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    shares: npt.NDArray[np.float64] = weights / weights.sum(axis=-1, keepdims=True)
    return shares


class NegativeSampler:
    """Draws one negative for each response of a corpus.

    texts    the responses of the training pairs, one per pair
    vectors  gives the vectors of some of them: numbers -> rows
    """

    def __init__(
        self,
        options: SamplerOptions,
        texts: Sequence[str],
        vectors: Callable[[Numbers], npt.NDArray[np.floating]],
    ) -> None:
        self._options = options
        self._texts = texts
        self._vectors = vectors
        known: dict[str, int] = {}
        self._same = np.array(
            [known.setdefault(letters_and_digits(t) or t, len(known)) for t in texts], np.int64
        )
        if len(known) < 2:
            raise UsageError(
                f"wrong responses cannot be drawn: {len(texts):,} pairs with {len(known)} different"
                " responses, and it takes 2. Take more dialogues."
            )

    def sample(self, generator: np.random.Generator, name: SamplerName | None = None) -> Numbers:
        """Returns, for each pair, the number of the pair whose response is its negative."""
        name = name or self._options.name
        size = len(self._texts)
        if name == "random":
            return self._random(np.arange(size), generator)
        if name == "bm25":
            return self._by_words(generator)
        found = np.empty(size, dtype=np.int64)
        order = generator.permutation(size)
        for start in range(0, size, BLOCK):
            block = order[start : start + BLOCK]
            found[block] = self._by_similarity(block, name, generator)
        return found

    def _random(self, rows: Numbers, generator: np.random.Generator) -> Numbers:
        """Uniform over what reads differently: what does not is drawn again."""
        found = generator.integers(len(self._texts), size=len(rows))
        while (again := np.flatnonzero(self._same[found] == self._same[rows])).size:
            found[again] = generator.integers(len(self._texts), size=again.size)
        return found

    def _by_similarity(
        self, block: Numbers, name: SamplerName, generator: np.random.Generator
    ) -> Numbers:
        count = MIDDLE_OF if name == "middle" else self._options.candidates
        candidates = generator.integers(len(self._texts), size=count)
        cosines = self._unit_vectors[block] @ self._unit_vectors[candidates].T
        forbidden = self._same[block][:, None] == self._same[candidates][None, :]
        chosen = (
            _middle(cosines, forbidden)
            if name == "middle"
            else _drawn(cosines, forbidden, self._options.temperature, generator)
        )
        # Where every candidate was a duplicate, which needs a tiny corpus, chance decides.
        found = candidates[chosen]
        alone = np.flatnonzero(forbidden.all(axis=1))
        found[alone] = self._random(block[alone], generator)
        return found

    def _by_words(self, generator: np.random.Generator) -> Numbers:
        size = len(self._texts)
        documents = generator.permutation(size)[: min(BM25_DOCUMENTS, size)]
        index = BM25([self._texts[i] for i in documents.tolist()])
        found = self._random(np.arange(size), generator)
        for row, text in enumerate(self._texts):
            scores = index.scores(text)
            scores[self._same[documents] == self._same[row]] = 0.0
            best = np.argpartition(-scores, min(BM25_BEST, len(scores) - 1))[:BM25_BEST]
            best = best[scores[best] > 0.0]
            if best.size:  # without a word in common there is no best: the random one stays
                found[row] = documents[best[generator.integers(best.size)]]
        return found

    @cached_property
    def _unit_vectors(self) -> Floats:
        rows = self._vectors(np.arange(len(self._texts))).astype(np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Floats = rows / np.maximum(norms, 1e-12)
        return unit


def _drawn(
    cosines: Floats,
    forbidden: npt.NDArray[np.bool_],
    temperature: float,
    generator: np.random.Generator,
) -> Numbers:
    """Draws at random by softmax(cosine / t). A row without any candidate gets an arbitrary one."""
    allowed = np.where(forbidden & ~forbidden.all(axis=1, keepdims=True), -np.inf, cosines)
    edges = selection_probabilities(allowed, temperature).cumsum(axis=1)
    lots = generator.random((len(cosines), 1)) * edges[:, -1:]
    places: Numbers = np.minimum((edges <= lots).sum(axis=1), cosines.shape[1] - 1)
    return places


def _middle(cosines: Floats, forbidden: npt.NDArray[np.bool_]) -> Numbers:
    """Returns the middle one of those that are allowed, from the most to the least similar."""
    order = np.argsort(np.where(forbidden, np.inf, -cosines), axis=1, kind="stable")
    allowed = cosines.shape[1] - forbidden.sum(axis=1)
    rank = np.minimum(MIDDLE_RANK * allowed // MIDDLE_OF, np.maximum(allowed - 1, 0))
    places: Numbers = order[np.arange(len(order)), rank]
    return places
