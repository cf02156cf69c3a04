"""Porter's stemmer with a memory, for the metrics that compare word stems.

NLTK takes some 20 microseconds for a word, and dialogue uses few words often.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any


class CachedStemmer:
    """Whatever stemmer it is given, asked once per word."""

    def __init__(self, stemmer: Any, remembered_words: int = 1 << 16) -> None:
        self.stem = lru_cache(maxsize=remembered_words)(stemmer.stem)


@cache
def porter_stemmer() -> CachedStemmer:
    from nltk.stem.porter import PorterStemmer

    return CachedStemmer(PorterStemmer())
