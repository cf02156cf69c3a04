"""Parts that `embedding-average`, `vector-extrema` and `greedy-matching` share.

All three look up a vector for each word of the response and of a reference, and compare the two
heaps of vectors. They differ in `similarity` alone. Of several references the best counts.

mode=paper: words are cut in the manner of the Penn Treebank, as the text that GloVe was trained on:
punctuation stands alone, `don't` is `do` `n't`, `it's` is `it` `'s`, while `u.s.`, `3.14` and
`well-known` are one word. They are put in lower case. A word without a vector says nothing and is
left out, as is one whose vector is zero; the part `unknown` says how many were. Where no word is
left on either side there is no score (`no known words`), and none where a cosine is undefined
(`zero vector`).

Chinese words have no spaces between them: tokenize=jieba finds them (extra `chinese`), for word
vectors of Chinese. With the other rules a text whose words run together gets no score.

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
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from dialeval.errors import UsageError
from dialeval.metric import Metric, Part
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, WordVectors
from dialeval.sample import Sample
from dialeval.scores import Score
from dialeval.text import RUNS_TOGETHER, runs_together, treebank_words

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

    version = 2
    needs = frozenset({"references"})
    range = (-1.0, 1.0)

    model: str = model_option("word-vectors", "the word vectors")
    mode: Literal["paper", "released"] = option("paper", "the definition, or PONE's code")
    tokenize: Literal["treebank", "none", "jieba"] = option(
        "treebank", "tokenizer of words; none: split at spaces only; jieba: for Chinese"
    )
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

    def obstacle(self, sample: Sample) -> str:
        return super().obstacle(sample) or words_obstacle(
            self.tokenize, sample.response or "", *sample.references
        )

    def similarity(self, response: Words, reference: Words) -> float:
        """Returns the similarity of two texts with at least one word each; NaN where it is not
        defined."""
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
        """Returns the words of a text and how often each occurs, in order of appearance."""
        if self.mode == "released" or self.tokenize == "none":
            words = text.split()
        elif self.tokenize == "jieba":
            words = chinese_words(text)
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
        return {"seed": "unused", **tokenizer_release(self.tokenize)}


def chinese_words(text: str) -> list[str]:
    """Returns the words of a Chinese text, by jieba; words between spaces stay apart."""
    return [word for word in _chinese_cutter().lcut(text) if word.strip()]


def tokenizer_release(tokenize: str) -> dict[str, str]:
    """Returns the version of jieba, whose dictionary decides where words end, for a signature."""
    return {"jieba": str(_jieba().__version__)} if tokenize == "jieba" else {}


@cache
def _chinese_cutter() -> Any:
    """Left alone, jieba reads its dictionary from `jieba.cache` in the folder for temporary files,
    whoever wrote it, and shares what `jieba.load_userdict` adds with the whole process."""
    cutter = _jieba().Tokenizer()
    cutter.FREQ, cutter.total = cutter.gen_pfdict(cutter.get_dict_file())
    cutter.initialized = True
    return cutter


def _jieba() -> Any:
    try:
        import jieba
    except ImportError:
        raise UsageError(
            "Chinese words are found by jieba: pip install 'dialeval[chinese]', or put spaces"
            " between the words"
        ) from None
    return jieba


def words_obstacle(tokenize: str, *texts: str) -> str:
    """Says why no word of a text would be found: they run together. Empty if some would."""
    if tokenize == "jieba" or not runs_together(*texts):
        return ""
    return f"{RUNS_TOGETHER}: tokenize=jieba, or put spaces between them"


def _share_unknown(words: Counter[str], answer: Answer) -> float:
    import numpy as np

    if not words:
        return 0.0
    missing = np.isnan(np.asarray(answer, np.float64)).any(axis=1)
    return float(np.fromiter(words.values(), np.float64)[missing].sum()) / words.total()


@dataclass(frozen=True)
class EmbeddingAverage(WordVectorMetric):
    """Cosine of the mean word vectors of response and reference.

    `embedding-average`: do the words of response and reference mean the same on average? (Foltz,
    Kintsch & Landauer, 1998; Liu et al., EMNLP 2016, section 3.2)

        EA = cos( mean of the word vectors of the response, mean of those of the reference )

    A sum in the place of the mean gives the same cosine. Order does not matter, and
    frequent function words dominate: with GloVe 50d, an answer from Topical-Chat and an unrelated
    reference reach .95 on average.

    """

    name = "embedding-average"
    citation = (
        "Liu, Lowe, Serban, Noseworthy, Charlin, Pineau: How NOT To Evaluate Your Dialogue System."
        " EMNLP 2016"
    )

    def similarity(self, response: Words, reference: Words) -> float:
        return self.cosine(
            response.counts @ response.vectors / response.counts.sum(),
            reference.counts @ reference.vectors / reference.counts.sum(),
        )


@dataclass(frozen=True)
class VectorExtrema(WordVectorMetric):
    """Cosine of the most extreme components of the word vectors of response and reference.

    `vector-extrema`: do the strongest words of response and reference mean the same? (Forgues et
    al., 2014; Liu et al., EMNLP 2016, section 3.2)

        VX  = cos( e(response), e(reference) )
        e_d = the component d of that word whose component d is farthest from 0

    The idea: words that say something lie far out, common words near the origin, so the extremes
    skip the small talk. Where +x and -x tie, +x is taken.

    mode=released takes the largest component instead of the farthest from 0, as PONE's code does.
    """

    name = "vector-extrema"
    citation = (
        "Forgues, Pineau, Larchevêque, Tremblay: Bootstrapping Dialog Systems with Word"
        " Embeddings. NIPS 2014 workshop on Modern ML and NLP"
    )

    def similarity(self, response: Words, reference: Words) -> float:
        return self.cosine(self.extrema(response.vectors), self.extrema(reference.vectors))

    def extrema(self, vectors: Array) -> Array:
        import numpy as np

        highest: Array = vectors.max(axis=0)
        lowest: Array = vectors.min(axis=0)
        if self.mode == "released":
            return highest
        return np.where(highest >= -lowest, highest, lowest)


WORDS_AT_ONCE = 1024
"""Rows of the table of cosines that are held in memory: no response is too long."""


@dataclass(frozen=True)
class GreedyMatching(WordVectorMetric):
    """Mean cosine of each word with its most similar word on the other side, both ways.

    `greedy-matching`: has each word a counterpart on the other side? (Rus & Lintean, 2012; Liu
    et al., EMNLP 2016, section 3.2)

        GM     = ( G(r, s) + G(s, r) ) / 2
        G(r,s) = mean over words w of r of  max over words v of s of  cos(w, v)

    A word that occurs twice counts twice, and several words may choose the same counterpart.

    mode=released repeats PONE's test for zeros for each pair of words.
    Its second direction, from the response to the reference, has another: a pair with a component
    of 0 counts 1 only if the two vectors are equal. See there also for words and unknown words.
    """

    name = "greedy-matching"
    citation = (
        "Rus, Lintean: A Comparison of Greedy and Optimal Assessment of Natural Language Student"
        " Input Using Word-to-Word Similarity Metrics. BEA 2012"
    )

    def similarity(self, response: Words, reference: Words) -> float:
        import numpy as np

        best_of_response = np.full(len(response.counts), -1.0)
        best_of_reference = []
        for start in range(0, len(reference.counts), WORDS_AT_ONCE):
            rows = reference.vectors[start : start + WORDS_AT_ONCE]
            forth, back = self.tables(rows, response.vectors)
            best_of_reference.append(forth.max(axis=1))
            best_of_response = np.maximum(best_of_response, back.max(axis=0))
        return (
            float(
                np.average(np.concatenate(best_of_reference), weights=reference.counts)
                + np.average(best_of_response, weights=response.counts)
            )
            / 2
        )

    def tables(self, reference: Array, response: Array) -> tuple[Array, Array]:
        """Cosines of all pairs of words, as seen from the reference and from the response."""
        import numpy as np

        norms = np.linalg.norm(reference, axis=1)[:, None] * np.linalg.norm(response, axis=1)
        # Only mode=released lets zero vectors through, and then overwrites their cosines.
        cosines = np.clip(reference @ response.T / np.where(norms > 0, norms, 1.0), -1.0, 1.0)
        if self.mode == "paper":
            return cosines, cosines
        zeros_in_reference = (reference == 0).any(axis=1)[:, None]
        zeros_in_response = (response == 0).any(axis=1)[None, :]
        zeros = zeros_in_reference | zeros_in_response
        equal = np.array([(response == row).all(axis=1) for row in reference])
        return (
            np.where(zeros, zeros_in_reference & zeros_in_response, cosines),
            np.where(zeros, equal, cosines),
        )
