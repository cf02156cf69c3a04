"""BM25 (Robertson et al., 1995): how well the words of a text match those of others.

    score(q, d) = sum over the words w of q of  idf(w) * f * (k1 + 1) / (f + k1 * (1 - b + b * |d| / mean |d|))

f is the count of w in d, idf(w) = ln(1 + (N - n + .5) / (n + .5)) for n of N texts with w; k1 = 1.2
and b = 0.75 as in Lucene.
"""  # noqa: E501

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

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
        """One score per indexed text; a word counts as often as `text` holds it."""
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
