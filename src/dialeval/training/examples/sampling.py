"""Wrong responses and further right ones for the pairs of a corpus. Four samplers of wrong ones:

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

    score(q, d) = sum over the words w of q of
                  idf(w) * f * (k1 + 1) / (f + k1 * (1 - b + b * |d| / mean |d|))

f is the count of w in d, idf(w) = ln(1 + (N - n + .5) / (n + .5)) for n of N texts with w; k1 = 1.2
and b = 0.75 as in Lucene.

PONE's positive data generator (section 3.3.2): more responses that may fit the same query.

    eda   the response with words replaced, inserted, swapped or deleted: fast, noisy
    ctg   what a generator writes that reads the query: slow, and what the paper calls Seq2Seq

A small generator is dull: its likeliest answers are the same few to all queries, and a scorer that
learns from them learns that dull answers fit. So `ctg` draws tokens among the 20 likeliest, unless
a method is named: `ctg:model=DIR,method=beam` are the beams of the paper, `method=diverse` beams
that avoid each other's words. The card says how many of the texts are different.

Both are the augmenters of `dialeval augment`, applied to responses. A response of one word may have
fewer than the k = 5 variants of the paper; what is the response itself is no variant.

    CACHE/positives/DIGEST/    the texts of some queries in each file

They take minutes to hours, so they are kept: DIGEST is that of the generator's weights, its
options, the queries and how many there are in a file. What was killed goes on after the last
finished file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from dialeval.augment.augmenter import Augmenter, augment_queries, make_augmenter
from dialeval.augment.generator import ConditionalTextGenerator
from dialeval.augment.queries import Query
from dialeval.errors import UsageError
from dialeval.models.pair_scorer import last_words
from dialeval.models.source import Models
from dialeval.options import split_spec
from dialeval.sample import Turn
from dialeval.storage import cache_directory, write_json
from dialeval.text import letters_and_digits
from dialeval.training.examples.pair_corpus import Pair

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
    """Returns words in lower case; of scripts without spaces, single characters."""
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
        # If every candidate was a duplicate, which needs a tiny corpus, one is drawn at random.
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


READS_THE_QUERY = ("ctg",)
"""Augmenters whose variants depend on what was said before."""

KEPT_AT_ONCE = 512
"""Queries per file: what a killed process can lose, some minutes of work."""


@dataclass(frozen=True)
class Positives:
    """Texts, and for each pair the numbers of its variants among them."""

    texts: tuple[str, ...]
    of_pair: tuple[tuple[int, ...], ...]


def make_positives(
    spec: str,
    pairs: Sequence[Pair],
    texts: Sequence[str],
    *,
    variants: int = 5,
    words: int = 100,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Positives:
    """Makes the variants of the responses of `pairs`; `spec` is `eda`, `ctg`, `ctg:model=DIR`,
    `none`."""
    name, options = split_spec(spec)
    if name == "none":
        return Positives((), ((),) * len(pairs))
    if name not in ("eda", "ctg"):
        raise UsageError(f"positives are made by eda, ctg or none, not by {name!r}")
    if "variants" in options:
        raise UsageError(f"say how many positives with --variants, not in {spec!r}")
    spec = sampled(spec)
    options = split_spec(spec)[1]
    augmenter = make_augmenter(f"{spec}{',' if options else ':'}variants={variants}", seed=0)
    keys = [pair if name in READS_THE_QUERY else Pair((), pair.response) for pair in pairs]
    distinct = list(dict.fromkeys(keys))
    queries = [
        Query(str(number), texts[key.response], tuple(Turn(texts[n]) for n in key.context))
        for number, key in enumerate(distinct)
    ]
    numbers: dict[str, int] = {}
    made: dict[Pair, tuple[int, ...]] = {}
    for done, variants_of_one in enumerate(_variants(queries, augmenter), start=1):
        cut = [last_words(text, words) for text in variants_of_one]
        made[distinct[done - 1]] = tuple(numbers.setdefault(text, len(numbers)) for text in cut)
        progress(done, len(queries))
    return Positives(tuple(numbers), tuple(made[key] for key in keys))


TOP_K = 20
"""A generator draws from this many of the likeliest tokens, unless its spec names a method."""


def sampled(spec: str) -> str:
    """Returns the spec of a generator with how it writes: sampling, where it does not say."""
    name, options = split_spec(spec)
    if name not in READS_THE_QUERY or "method" in options:
        return spec
    top_k = "" if "top_k" in options else f",top_k={TOP_K}"
    return f"{spec}{',' if options else ':'}method=sample{top_k}"


def generator_of(spec: str) -> str:
    """Returns the model that writes the positives; empty where no model does."""
    augmenter = None if split_spec(spec)[0] == "none" else make_augmenter(sampled(spec))
    return augmenter.model if isinstance(augmenter, ConditionalTextGenerator) else ""


def _variants(queries: Sequence[Query], augmenter: Augmenter) -> Iterator[list[str]]:
    """Yields the variants of each query, in their order; those of a generator are kept on disk."""
    if not isinstance(augmenter, ConditionalTextGenerator):
        yield from _augmented(queries, augmenter)
        return
    folder = _folder(queries, augmenter)
    for start in range(0, len(queries), KEPT_AT_ONCE):
        file = folder / f"{start:09d}.json"
        if file.exists():
            yield from json.loads(file.read_text(encoding="utf-8"))
            continue
        found = []
        for texts in _augmented(queries[start : start + KEPT_AT_ONCE], augmenter):
            found.append(texts)
            yield texts
        write_json(file, found)


def _augmented(queries: Sequence[Query], augmenter: Augmenter) -> Iterator[list[str]]:
    for query in augment_queries(queries, [augmenter]):
        yield [variant.query for variant in query.variants]


def _folder(queries: Sequence[Query], augmenter: ConditionalTextGenerator) -> Path:
    """Returns the folder of the variants, named by the model's fingerprint, because its name may
    come to stand for other weights."""
    by_weights = replace(augmenter, model=Models().fingerprint(augmenter.model))
    sha = hashlib.sha256(repr((by_weights, KEPT_AT_ONCE)).encode())
    for query in queries:
        texts = (*(turn.text for turn in query.context), query.query)
        sha.update("\x1f".join(texts).encode("utf-8", "surrogatepass") + b"\x1e")
    return cache_directory() / "positives" / sha.hexdigest()[:32]
