"""Parts that BLEU, chrF, ROUGE and METEOR share: matches of n-grams, sums, stems, PONE's variants.

Clipped matches: how many n-grams of a response are found in a reference, each as often as there? An
n-gram that two texts share is two (n-1)-grams that they share, one behind the other. Most turns of
a dialogue have little in common, so the longer n-grams are looked for in few places, or not at all.

`released_bleu` and `released_rouge` are what the code of PONE (Lan et al., TOIS 2020) computes
under the names BLEU and ROUGE (`mode=released`). Both reproduce published numbers, slips included;
neither is a good metric. PONE has one reference per response. Where there are several,
`released_bleu` takes their words together, as BLEU does with references, and `released_rouge` the
reference that fits best.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Any

from dialeval.scores import Score


def clipped_matches(
    found: Iterable[Hashable], reference: Iterable[Hashable], *others: Iterable[Hashable]
) -> int:
    """Returns how many of `found` are in a reference, each as often as in the one that has most of
    it."""
    left: dict[Hashable, int] = {}
    for one in reference:
        left[one] = left.get(one, 0) + 1
    for other in others:
        for one, times in Counter(other).items():
            left[one] = max(times, left.get(one, 0))
    matches = 0
    for one in found:
        if count := left.get(one):
            left[one] = count - 1
            matches += 1
    return matches


def word_matches(
    words: Sequence[str], references: Sequence[Sequence[str]], orders: int
) -> list[int]:
    """Counts the matching n-grams of words with n = 1 to `orders`."""
    found = [clipped_matches(words, *references)]
    for order in range(2, orders + 1):
        if found[-1] < 2:
            break
        wanted = [_ngrams(reference, order) for reference in references]
        found.append(clipped_matches(_ngrams(words, order), *wanted))
    return found + [0] * (orders - len(found))


def character_matches(text: str, reference: str, orders: int) -> list[int]:
    """Counts the matching n-grams of characters with n = 1 to `orders`."""
    found = [clipped_matches(text, reference)]
    here: Sequence[int] = range(len(text) - 1)
    there: Sequence[int] = range(len(reference) - 1)
    for order in range(2, orders + 1):
        if found[-1] < 2:
            break
        ours = [text[start : start + order] for start in here]
        theirs = [reference[start : start + order] for start in there]
        common = set(ours).intersection(theirs)
        here = [start for start, ngram in zip(here, ours, strict=True) if ngram in common]
        there = [start for start, ngram in zip(there, theirs, strict=True) if ngram in common]
        if len(common) in (len(here), len(there)):  # one of the texts has each of them once
            found.append(len(common))
        else:
            found.append(clipped_matches(filter(common.__contains__, ours), theirs))
        here, there = _one_behind_the_other(here), _one_behind_the_other(there)
    return found + [0] * (orders - len(found))


def _one_behind_the_other(starts: Sequence[int]) -> list[int]:
    return [start for start, following in pairwise(starts) if following == start + 1]


def _ngrams(words: Sequence[str], order: int) -> Iterable[tuple[str, ...]]:
    return zip(*[words[start:] for start in range(order)], strict=False)


class SummedCounts:
    """Adds up `size` counts of each score; `to_score` makes the score of a system of the sums."""

    def __init__(self, size: int, to_score: Callable[[Sequence[int]], Score]) -> None:
        self._to_score = to_score
        self._sums = [0] * size

    def add(self, score: Score) -> None:
        self._sums = _added(self._sums, score.counts)

    def merge(self, other: SummedCounts) -> None:
        self._sums = _added(self._sums, other._sums)

    def result(self) -> Score:
        return self._to_score(self._sums)


def _added(sums: Sequence[int], counts: Sequence[int]) -> list[int]:
    return [total + count for total, count in zip(sums, counts, strict=True)]


class CachedStemmer:
    """Whatever stemmer it is given, asked once per word."""

    def __init__(self, stemmer: Any, remembered_words: int = 1 << 16) -> None:
        self.stem = lru_cache(maxsize=remembered_words)(stemmer.stem)


@cache
def porter_stemmer() -> CachedStemmer:
    from nltk.stem.porter import PorterStemmer

    return CachedStemmer(PorterStemmer())


WEIGHTS = {1: (1.0,), 2: (0.5, 0.5), 3: (0.33, 0.33, 0.33), 4: (0.25, 0.25, 0.25, 0.25)}
"""Per highest order, the weights of the orders. Those of BLEU-3 sum to .99."""

K = 5
"""NLTK's constant in smoothing method 4."""


def released_bleu(response: str, references: Sequence[str]) -> dict[int, float] | None:
    """BLEU-1 to BLEU-4, or None where the released code fails.

    The *words* of the reference are passed where NLTK expects references. So every word is a
    reference and its characters are the tokens, to be found among the words of the response; the
    brevity penalty takes the word whose length is nearest to the number of words of the response.

    Where no k-gram matches, NLTK up to 2018 smoothed with p_k = 1 / (k - 1 + 5 / ln c) for c words.
    It returned 0 before that if no single word matched. What fails is a response of one word that
    does match: ln 1 = 0.
    """
    words = response.split()
    # PONE's code puts three dots in the place of an empty reference.
    as_references = list(chain.from_iterable(text.split() for text in references)) or ["..."]
    precisions = [_precision(as_references, words, order) for order in WEIGHTS]
    if precisions[0] == 0:
        return dict.fromkeys(WEIGHTS, 0.0)
    if len(words) == 1:
        return None
    smoothed = [
        precision or 1 / (order_below + K / math.log(len(words)))
        for order_below, precision in enumerate(precisions)
    ]
    nearest = min((abs(len(word) - len(words)), len(word)) for word in as_references)[1]
    penalty = 1.0 if len(words) > nearest else math.exp(1 - nearest / len(words))
    return {
        order: penalty
        * math.exp(math.fsum(w * math.log(p) for w, p in zip(weights, smoothed, strict=False)))
        for order, weights in WEIGHTS.items()
    }


def _precision(references: Sequence[Sequence[str]], words: Sequence[str], order: int) -> float:
    """Modified n-gram precision: a match counts as often as in the reference that has it most."""
    ngrams = _counted_ngrams(words, order)
    most = dict.fromkeys(ngrams, 0)
    for reference in references:
        for ngram, count in _counted_ngrams(reference, order).items():
            if ngram in most:
                most[ngram] = max(most[ngram], count)
    matches = sum(min(count, most[ngram]) for ngram, count in ngrams.items())
    return matches / max(1, ngrams.total())


def _counted_ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def released_rouge(response: str, references: Sequence[str]) -> float | None:
    """ROUGE-2 F of the `rouge` package, or None where the released code fails.

    F = 2 P R / (P + R + 1e-8) over the *sets* of bigrams: a bigram counts once however often it
    occurs. Full stops separate sentences and vanish; bigrams run across them. An empty response is
    scored as the three words "u n k". What fails is a text of nothing but full stops.
    """
    scores = []
    for reference in references:
        found = _bigrams(" ".join(response.split()) or "u n k")
        wanted = _bigrams(" ".join(reference.split()) or "... ...")
        if found is None or wanted is None:
            continue
        shared = len(found & wanted)
        precision = shared / len(found) if found else 0.0
        recall = shared / len(wanted) if wanted else 0.0
        scores.append(2 * precision * recall / (precision + recall + 1e-8))
    return max(scores, default=None)


def _bigrams(text: str) -> set[tuple[str, str]] | None:
    sentences = [" ".join(part.split()) for part in text.split(".") if part]
    # A blank sentence is one empty word, as " ".split(" ") has it in the package.
    words = list(chain.from_iterable(sentence.split(" ") for sentence in sentences))
    return set(pairwise(words)) if sentences else None
