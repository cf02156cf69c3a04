"""`bleu`: which word n-grams does the response share with a reference? (Papineni et al., ACL 2002)

    BLEU-n = BP * exp( 1/n * sum over k = 1..n of ln p_k )
    p_k    = clipped matches of k-grams / k-grams of the response
    BP     = min(1, exp(1 - r / c)); c words in the response, r in the reference nearest in length

mode=paper is sacreBLEU (Post, WMT 2018) to the last bit, on its scale from 0 to 100. The score of a
response is `sentence_bleu`: order k counts only if the response has k words (effective order), and
precisions of 0 are smoothed. The score of a system is `corpus_bleu`: counts are summed first and
every order counts. A system's BLEU is therefore not the mean of its responses' BLEU.

mode=released is what PONE published, from 0 to 1: see `pone_overlap.released_bleu`. A system's
score is the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from dialeval.errors import UsageError
from dialeval.metric import Metric, Part, option
from dialeval.metrics.pone_overlap import released_bleu
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU


@dataclass(frozen=True)
class Bleu(Metric):
    """Clipped n-gram precision against the references, with a penalty for brevity."""

    name = "bleu"
    needs = frozenset({"references"})
    citation = (
        "Papineni, Roukos, Ward, Zhu: BLEU: a Method for Automatic Evaluation of Machine"
        " Translation. ACL 2002; Post: A Call for Clarity in Reporting BLEU Scores. WMT 2018"
    )

    n: int = option(4, "highest order of the n-grams", low=1, high=4)
    mode: Literal["paper", "released"] = option("paper", "sacreBLEU, or what PONE's code computes")
    smoothing: Literal["exp", "floor", "add-k", "none"] = option(
        "exp", "what a precision of 0 gets"
    )
    tokenize: Literal["13a", "intl", "char", "zh", "none"] = option("13a", "sacreBLEU's tokenizer")
    lowercase: bool = option(False, "ignore case")

    def __post_init__(self) -> None:
        if self.mode == "released":
            free = (self.smoothing, self.tokenize, self.lowercase) == ("exp", "13a", False)
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
        by_order = released_bleu(sample.response or "", sample.references)
        return self._score(by_order) if by_order else Score.missing("too short")

    def count(self, sample: Sample) -> list[int]:
        """Words of response and reference, then matches and then n-grams of each order."""
        counter = _counter(self.n, self.tokenize, self.lowercase)
        found = counter.sentence_score(sample.response or "", sample.references)
        return [found.sys_len, found.ref_len, *found.counts, *found.totals]

    def from_counts(self, counts: list[int], effective_order: bool) -> Score:
        words, reference_words, *by_order = counts
        compute_bleu = _counter(self.n, self.tokenize, self.lowercase).compute_bleu
        return self._score(
            {
                order: compute_bleu(
                    by_order[:order],
                    by_order[self.n : self.n + order],
                    words,
                    reference_words,
                    smooth_method=self.smoothing,
                    effective_order=effective_order,
                    max_ngram_order=order,
                ).score
                for order in range(1, self.n + 1)
            }
        )

    def _score(self, by_order: Mapping[int, float]) -> Score:
        return Score(by_order[self.n], {f"bleu-{n}": by_order[n] for n in range(1, self.n + 1)})

    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(f"bleu-{n}", f"BLEU up to {n}-grams") for n in range(1, self.n + 1))

    def pool(self) -> BleuPool | None:
        return BleuPool(self) if self.mode == "paper" else None

    def signature_fields(self) -> Mapping[str, str]:
        from importlib.metadata import version

        if self.mode == "paper":
            return {"sacrebleu": version("sacrebleu")}
        return {"smoothing": "method4-2016", "tokenize": "words-as-references"}


class BleuPool:
    """Corpus BLEU of one system."""

    def __init__(self, metric: Bleu) -> None:
        self._metric = metric
        self._counts = [0] * (2 + 2 * metric.n)

    def add(self, sample: Sample) -> None:
        counts = self._metric.count(sample)
        self._counts = [total + count for total, count in zip(self._counts, counts, strict=True)]

    def result(self) -> Score:
        return self._metric.from_counts(self._counts, effective_order=False)


@cache
def _counter(n: int, tokenize: str, lowercase: bool) -> BLEU:
    """sacreBLEU without smoothing, because `add-k` would change the counts that it returns.

    It gets one response at a time, too few for its warning about text that looks tokenized.
    """
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(
        lowercase=lowercase,
        tokenize=tokenize,
        smooth_method="none",
        max_ngram_order=n,
        effective_order=True,
    )
