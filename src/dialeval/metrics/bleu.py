"""`bleu`: which word n-grams does the response share with a reference? (Papineni et al., ACL 2002)

    BLEU-n = BP * exp( 1/n * sum over k = 1..n of ln p_k )
    p_k    = clipped matches of k-grams / k-grams of the response
    BP     = min(1, exp(1 - r / c)); c words in the response, r in the reference nearest in length

mode=paper is sacreBLEU (Post, WMT 2018) to the last bit, on its scale from 0 to 100. The score of a
response is `sentence_bleu`: order k counts only if the response has k words (effective order), and
precisions of 0 are smoothed. The score of a system is `corpus_bleu`: counts are summed first and
every order counts. A system's BLEU is therefore not the mean of its responses' BLEU. Of sacreBLEU
only the tokenizers are called: counting here is faster, and serves the response and the system.

tokenize=auto, the default, takes sacreBLEU's `zh` for a sample in Chinese, its `char` for one in
another script without spaces (Japanese, Thai, Khmer, ...), and for all others `13a`, its default.
A sample is in the language of its references (`text.language_of`).

mode=released is what PONE published, from 0 to 1: see `word_overlap.released_bleu`. A system's
score is the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

from dialeval.errors import UsageError
from dialeval.metric import Metric, Part
from dialeval.metrics.word_overlap import SummedCounts, released_bleu, word_matches
from dialeval.options import option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score
from dialeval.text import RUNS_TOGETHER, UNSPACED_LANGUAGES, language_of, runs_together

LOG_0 = -9999999999
FLOOR, ADD_K = 0.1, 1
"""The value that sacreBLEU takes for ln 0, and the values that two ways of smoothing add."""


@dataclass(frozen=True)
class Bleu(Metric):
    """Clipped n-gram precision against the references, with a penalty for brevity."""

    name = "bleu"
    version = 3
    needs = frozenset({"references"})
    citation = (
        "Papineni, Roukos, Ward, Zhu: BLEU: a Method for Automatic Evaluation of Machine"
        " Translation. ACL 2002; Post: A Call for Clarity in Reporting BLEU Scores. WMT 2018"
    )

    n: int = option(4, "highest order of the n-grams", low=1, high=4)
    mode: Literal["paper", "released"] = option("paper", "sacreBLEU, or PONE's code")
    smoothing: Literal["exp", "floor", "add-k", "none"] = option(
        "exp", "smoothing of a precision of 0"
    )
    tokenize: Literal["auto", "13a", "intl", "char", "zh", "none"] = option(
        "auto", "sacreBLEU's tokenizer; auto: 13a, or one that fits a script without spaces"
    )
    lowercase: bool = option(False, "ignore case")

    def __post_init__(self) -> None:
        if self.mode == "released":
            free = (self.smoothing, self.tokenize, self.lowercase) == ("exp", "auto", False)
            if not free:
                raise UsageError(
                    "metric 'bleu': mode=released fixes smoothing, tokenize and lowercase to what"
                    " PONE's code does. Leave them out, or use mode=paper."
                )

    @property
    def range(self) -> tuple[float, float]:
        return (0.0, 100.0) if self.mode == "paper" else (0.0, 1.0)

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if self.mode == "paper":
            return self.from_counts(self.count(sample), effective_order=True)
        if runs_together(sample.response or "", *sample.references):
            return Score.missing(f"{RUNS_TOGETHER}: mode=released needs them")
        by_order = released_bleu(sample.response or "", sample.references)
        if not by_order:
            return Score.missing("too short")
        return self._score([by_order[order] for order in range(1, self.n + 1)])

    def count(self, sample: Sample) -> list[int]:
        """Returns words of response and reference, then matches and then n-grams of each order."""
        tokenizer = _tokenizer(self._tokenizer_for(sample))
        words = self._words(sample.response or "", tokenizer)
        references = [self._words(text, tokenizer) for text in sample.references]
        length, orders = len(words), range(1, self.n + 1)
        nearest = min((abs(len(one) - length), len(one)) for one in references)[1]
        matches = word_matches(words, references, self.n)
        return [length, nearest, *matches, *(max(0, length - order + 1) for order in orders)]

    def _tokenizer_for(self, sample: Sample) -> str:
        if self.tokenize != "auto":
            return self.tokenize
        if all(text.isascii() for text in sample.references):
            return "13a"
        language = language_of(" ".join(sample.references))
        return "zh" if language == "zh" else "char" if language in UNSPACED_LANGUAGES else "13a"

    def _words(self, text: str, tokenizer: Callable[[str], str]) -> list[str]:
        return tokenizer((text.lower() if self.lowercase else text).rstrip()).split()

    def from_counts(self, counts: Sequence[int], effective_order: bool) -> Score:
        """BLEU-1 to BLEU-n by the steps of sacreBLEU's `compute_bleu`, once for all of them."""
        length, reference_length, *by_order = counts
        matches, totals = by_order[: self.n], by_order[self.n :]
        if not matches[0]:  # no word in common, and nothing longer
            return self._score([0.0] * self.n, counts)
        logarithms = [math.log(p) if p else LOG_0 for p in self._precisions(matches, totals)]
        penalty = math.exp(1 - reference_length / length) if length < reference_length else 1.0
        values = []
        for order in range(1, self.n + 1):
            some = logarithms[:order]
            if not effective_order:
                some += [LOG_0] * (order - len(some))
            values.append(penalty * math.exp(sum(some) / len(some)))
        return self._score(values, counts)

    def _precisions(self, matches: Sequence[int], totals: Sequence[int]) -> Iterator[float]:
        """Yields smoothed precisions in percent, up to the first order without n-grams (Chen and
        Cherry 2014)."""
        halvings = 1.0
        for order, (found, total) in enumerate(zip(matches, totals, strict=True), start=1):
            if self.smoothing == "add-k" and order > 1:
                found, total = found + ADD_K, total + ADD_K
            if not total:
                return
            if found:
                yield 100.0 * found / total
            elif self.smoothing == "exp":
                halvings *= 2
                yield 100.0 / (halvings * total)
            else:
                yield 100.0 * FLOOR / total if self.smoothing == "floor" else 0.0

    def _score(self, by_order: Sequence[float], counts: Sequence[int] = ()) -> Score:
        parts = {f"bleu-{n}": value for n, value in enumerate(by_order, start=1)}
        return Score(by_order[-1], parts, counts=counts)

    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(f"bleu-{n}", f"BLEU up to {n}-grams") for n in range(1, self.n + 1))

    def pool(self) -> SummedCounts | None:
        if self.mode == "released":
            return None
        return SummedCounts(2 + 2 * self.n, partial(self.from_counts, effective_order=False))

    def signature_fields(self) -> Mapping[str, str]:
        from importlib.metadata import version

        if self.mode == "paper":
            return {"sacrebleu": version("sacrebleu")}
        return {"smoothing": "method4-2016", "tokenize": "words-as-references"}


@cache
def _tokenizer(name: str) -> Callable[[str], str]:
    from sacrebleu.metrics.bleu import BLEU

    tokenizer: Callable[[str], str] = BLEU(tokenize=name).tokenizer
    return tokenizer
