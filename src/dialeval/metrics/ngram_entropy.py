"""n-gram entropy of a group of responses: how varied are the answers to paraphrases of one query?

    H_n = - sum over distinct n-grams g of p(g) ln p(g),   p(g) = count(g) / number of n-grams

The n-grams of all responses of the group are counted together (HolisticEval: Pang et al., ACL 2020,
section 3.3). The logarithm is natural, case is kept, and nothing is divided by ln of the
vocabulary.

mode=paper     words are what whitespace separates; a response shorter than n words has no n-grams
mode=released  the authors' code: words are what single blanks separate, and a response of n words
               or fewer is one item as a whole, so that "Sure ." is a "trigram"
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Literal

Mode = Literal["paper", "released"]


def ngram_entropy(responses: Iterable[str], n: int = 2, mode: Mode = "released") -> float | None:
    """Entropy in nats; None where there is no n-gram."""
    return entropy(count_ngrams(responses, n, mode))


def count_ngrams(responses: Iterable[str], n: int, mode: Mode) -> Counter[str]:
    """How often each n-gram occurs; blank responses do not count."""
    return Counter(
        ngram
        for response in responses
        if (stripped := response.strip())
        for ngram in (_released(stripped, n) if mode == "released" else _plain(stripped, n))
    )


def entropy(counts: Counter[str]) -> float | None:
    """In nats; None of nothing."""
    total = counts.total()
    if not total:
        return None
    # ln(1/p) and not -ln p, so that a single n-gram gives 0 and not -0
    return math.fsum(count / total * math.log(total / count) for count in counts.values())


def _plain(response: str, n: int) -> list[str]:
    words = response.split()
    return [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]


def _released(response: str, n: int) -> list[str]:
    words = response.split(" ")
    if len(words) <= n:
        return [response]
    return [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]
