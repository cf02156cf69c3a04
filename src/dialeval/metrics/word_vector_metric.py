"""What `embedding-average`, `vector-extrema` and `greedy-matching` have in common.

All three look up a vector for each word of the response and of a reference, and compare the two
heaps of vectors. They differ in `similarity` alone. Of several references the best counts.

mode=paper: words are cut in the manner of the Penn Treebank, as the text that GloVe was trained on:
punctuation stands alone, `don't` is `do` `n't`, `it's` is `it` `'s`, while `u.s.`, `3.14` and
`well-known` are one word. They are put in lower case. A word without a vector says nothing and is
left out, as is one whose vector is zero; the part `unknown` says how many were. Where no word is
left on either side there is no score (`no known words`), and none where a cosine is undefined
(`zero vector`).

mode=released is what PONE's code does (Lan et al., TOIS 2020): words are what stands between
whitespace, case counts, a word without a vector gets one random vector from U(0, 1) that all such
words share, and so does an empty text. The code tests for a zero vector with `.all()`, so a single
component that is exactly 0 replaces the cosine by 1 if both vectors have one, else by 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dialeval.errors import UsageError
from dialeval.metric import Metric, Part
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, WordVectors
from dialeval.sample import Sample
from dialeval.scores import Score
from dialeval.words import treebank_words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

SEED = 123
"""The default of PONE's `--seed`; the vector of unknown words is the first thing drawn from it."""


@dataclass(frozen=True)
class Words:
    """The different words of a text: one row per word, and how often it occurs."""

    vectors: Array
    counts: Array


@dataclass(frozen=True)
class WordVectorMetric(Metric):
    """Base of the metrics that compare word vectors: all but the `similarity` of two texts."""

    needs = frozenset({"references"})
    range = (-1.0, 1.0)

    model: str = model_option("word-vectors", "where the word vectors come from")
    mode: Literal["paper", "released"] = option("paper", "the definition, or PONE's code")
    tokenize: Literal["treebank", "none"] = option("treebank", "split off punctuation or not")
    lowercase: bool = option(True, "ignore case")
    seed: int = option(SEED, "mode=released: seed of the vector for unknown words", low=0)

    def __post_init__(self) -> None:
        if self.mode == "released" and (self.tokenize, self.lowercase) != ("treebank", True):
            raise UsageError(
                f"metric {self.name!r}: mode=released fixes tokenize and lowercase to what PONE's"
                " code does. Leave them out, or use mode=paper."
            )
        if self.mode == "paper" and self.seed != SEED:
            raise UsageError(
                f"metric {self.name!r}: mode=paper leaves unknown words out and draws no vector for"
                " them. Leave seed out, or use mode=released."
            )

    def similarity(self, response: Words, reference: Words) -> float:
        """Of two texts with at least one word each; NaN where it is not defined."""
        raise NotImplementedError

    def ask(self, sample: Sample) -> Sequence[WordVectors]:
        texts = (sample.response or "", *sample.references)
        return [WordVectors(self.model, tuple(self.words(text))) for text in texts]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        counts = [self.words(text) for text in (sample.response or "", *sample.references)]
        response, *references = map(self.look_up, counts, answers)
        known = [reference for reference in references if len(reference.counts)]
        if not known or not len(response.counts):
            return Score.missing("no known words")
        values = [self.similarity(response, reference) for reference in known]
        if all(map(math.isnan, values)):
            return Score.missing("zero vector")
        best = max(value for value in values if not math.isnan(value))
        return Score(best, {"unknown": _share_unknown(counts[0], answers[0])})

    def words(self, text: str) -> Counter[str]:
        """The words of a text and how often each occurs, in order of appearance."""
        if self.mode == "released" or self.tokenize == "none":
            words = text.split()
        else:
            words = treebank_words(text)
        lower = self.lowercase and self.mode == "paper"
        return Counter(word.lower() for word in words) if lower else Counter(words)

    def look_up(self, words: Counter[str], answer: Answer) -> Words:
        import numpy as np

        vectors: Array = np.asarray(answer, np.float64)
        counts = np.fromiter(words.values(), np.float64, len(words))
        if self.mode == "paper":
            # A row of NaN is not greater than 0 either.
            known = np.abs(vectors).sum(axis=1) > 0
            return Words(vectors[known], counts[known])
        unknown = np.random.RandomState(self.seed).rand(vectors.shape[1])
        if not words:
            return Words(unknown[None], np.ones(1))
        return Words(np.where(np.isnan(vectors), unknown, vectors), counts)

    def cosine(self, first: Array, second: Array) -> float:
        """NaN where either vector is zero, which in PONE's code is never."""
        import numpy as np

        if self.mode == "released" and not (first.all() and second.all()):
            return float(first.all() == second.all())
        norms = float(np.linalg.norm(first) * np.linalg.norm(second))
        return float(np.clip(first @ second / norms, -1.0, 1.0)) if norms else math.nan

    def parts(self) -> tuple[Part, ...]:
        return (Part("unknown", "share of the response's words that have no vector"),)

    def signature_fields(self) -> Mapping[str, str]:
        if self.mode == "released":
            return {"tokenize": "none", "lowercase": "false"}
        return {"seed": "unused"}


def _share_unknown(words: Counter[str], answer: Answer) -> float:
    import numpy as np

    if not words:
        return 0.0
    missing = np.isnan(np.asarray(answer, np.float64)).any(axis=1)
    return float(np.fromiter(words.values(), np.float64)[missing].sum()) / words.total()
