"""What the code of PONE (Lan et al., TOIS 2020) computes under the names BLEU and ROUGE.

`bleu:mode=released` and `rouge:mode=released` end here. Both functions reproduce published numbers,
slips included; neither is a good metric.

PONE has one reference per response. Where there are several, `released_bleu` takes their words
together, as BLEU does with references, and `released_rouge` the reference that fits best.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise

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
    ngrams = _ngrams(words, order)
    most = dict.fromkeys(ngrams, 0)
    for reference in references:
        for ngram, count in _ngrams(reference, order).items():
            if ngram in most:
                most[ngram] = max(most[ngram], count)
    matches = sum(min(count, most[ngram]) for ngram, count in ngrams.items())
    return matches / max(1, ngrams.total())


def _ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
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
