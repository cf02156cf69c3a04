"""`chrf`: which character n-grams does the response share with a reference? (Popović, WMT 2015)

    chrF = 100 * (1 + beta^2) * P * R / (beta^2 * P + R)

P and R are precision and recall of character n-grams without spaces, averaged over the orders 1 to
`char_order`; recall weighs beta times as much as precision. With word_order=2 word unigrams and
bigrams join the average: chrF++ (Popović, WMT 2017). Of several references the one with the best F
counts.

The numbers are those of sacreBLEU to the last bit, on its scale from 0 to 100: `sentence_chrf` for
a response, `corpus_chrf` (counts are summed first) for a system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from dialeval.metric import Metric, option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score

if TYPE_CHECKING:
    from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True)
class Chrf(Metric):
    """F-score of character n-grams against the best reference."""

    name = "chrf"
    needs = frozenset({"references"})
    range = (0.0, 100.0)
    citation = (
        "Popović: chrF: character n-gram F-score for automatic MT evaluation. WMT 2015;"
        " Popović: chrF++: words helping character n-grams. WMT 2017"
    )

    char_order: int = option(6, "highest order of the character n-grams", low=1, high=10)
    word_order: Literal[0, 2] = option(0, "0: chrF, 2: chrF++ with word bigrams")
    beta: int = option(2, "how much more recall weighs than precision", low=1, high=10)
    lowercase: bool = option(False, "ignore case")

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return Score(self.scorer.sentence_score(sample.response or "", sample.references).score)

    @property
    def scorer(self) -> CHRF:
        return _scorer(self.char_order, self.word_order, self.beta, self.lowercase)

    def pool(self) -> ChrfPool:
        return ChrfPool(self)

    def signature_fields(self) -> Mapping[str, str]:
        from importlib.metadata import version

        return {"sacrebleu": version("sacrebleu")}


class ChrfPool:
    """Corpus chrF of one system.

    sacreBLEU gives the counts of a sentence away only through methods with an underscore, the same
    that its own bootstrap uses. A test pins them to `corpus_chrf`.
    """

    def __init__(self, metric: Chrf) -> None:
        self._metric = metric
        self._counts: list[int] = []

    def add(self, sample: Sample) -> None:
        references = [[reference] for reference in sample.references]
        [counts] = self._metric.scorer._extract_corpus_statistics(
            [sample.response or ""], references
        )
        totals = self._counts or [0] * len(counts)
        self._counts = [total + count for total, count in zip(totals, counts, strict=True)]

    def result(self) -> Score:
        return Score(self._metric.scorer._compute_score_from_stats(self._counts).score)


@cache
def _scorer(char_order: int, word_order: int, beta: int, lowercase: bool) -> CHRF:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase)
