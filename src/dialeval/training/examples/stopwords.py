"""The stop words that MME-CRS drops at random from a response that stays a good one.

The paper names no list; this is NLTK's English one, 179 words. EDA's authors took over its first
127; contractions, and the pieces that a tokeniser leaves of them, were added later.
"""

from __future__ import annotations

from dialeval.augment.eda import STOP_WORDS

STOPWORDS: frozenset[str] = frozenset(STOP_WORDS) | {
    "you're", "you've", "you'll", "you'd", "she's", "it's", "that'll", "don't", "should've", "d",
    "ll", "m", "o", "re", "ve", "y", "ain", "aren", "aren't", "couldn", "couldn't", "didn",
    "didn't", "doesn", "doesn't", "hadn", "hadn't", "hasn", "hasn't", "haven", "haven't", "isn",
    "isn't", "ma", "mightn", "mightn't", "mustn", "mustn't", "needn", "needn't", "shan", "shan't",
    "shouldn", "shouldn't", "wasn", "wasn't", "weren", "weren't", "won", "won't", "wouldn",
    "wouldn't",
}  # fmt: skip
