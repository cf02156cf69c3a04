"""Clipped matches: how many n-grams of a response are found in a reference, each as often as there?

What BLEU, chrF and ROUGE begin with. An n-gram that two texts share is two (n-1)-grams that they
share, one behind the other. Most turns of a dialogue have little in common, so the longer n-grams
need to be looked for in a few places, or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise


def clipped_matches(
    found: Iterable[Hashable], reference: Iterable[Hashable], *others: Iterable[Hashable]
) -> int:
    """How many of `found` are in a reference, each as often as in the one that has most of it."""
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
    """Of the n-grams of words with n = 1 to `orders`."""
    found = [clipped_matches(words, *references)]
    for order in range(2, orders + 1):
        if found[-1] < 2:
            break
        wanted = [_ngrams(reference, order) for reference in references]
        found.append(clipped_matches(_ngrams(words, order), *wanted))
    return found + [0] * (orders - len(found))


def character_matches(text: str, reference: str, orders: int) -> list[int]:
    """Of the n-grams of characters with n = 1 to `orders`."""
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
