"""`chrf`: which character n-grams does the response share with a reference? (Popović, WMT 2015)

    chrF = 100 * (1 + beta^2) * P * R / (beta^2 * P + R)

P and R are precision and recall of character n-grams without spaces, averaged over the orders 1 to
`char_order`; recall weighs beta times as much as precision. With word_order=2 word unigrams and
bigrams join the average: chrF++ (Popović, WMT 2017). Of several references the one with the best F
counts.

The numbers are those of sacreBLEU to the last bit, on its scale from 0 to 100: `sentence_chrf` for
a response, `corpus_chrf` (counts are summed first) for a system. They are counted here, which is
faster, and once for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import punctuation
from typing import Literal

from dialeval.metric import Metric
from dialeval.metrics.word_overlap import SummedCounts, character_matches, word_matches
from dialeval.options import option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score


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
    beta: int = option(2, "weight of recall relative to precision", low=1, high=10)
    lowercase: bool = option(False, "ignore case")

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        response = sample.response or ""
        counts = [self.count(response, reference) for reference in sample.references]
        # the first of the best, as sacreBLEU: others may have other counts
        return max(map(self.from_counts, counts), key=lambda score: score.value or 0.0)

    def count(self, response: str, reference: str) -> list[int]:
        """n-grams of the response, of the reference and of both, order by order."""
        if self.lowercase:
            response, reference = response.lower(), reference.lower()
        ours, theirs = "".join(response.split()), "".join(reference.split())
        counts = _totals(len(ours), len(theirs), character_matches(ours, theirs, self.char_order))
        if self.word_order:
            words, wanted = split_words(response), split_words(reference)
            matches = word_matches(words, [wanted], self.word_order)
            counts += _totals(len(words), len(wanted), matches)
        return counts

    def from_counts(self, counts: Sequence[int]) -> Score:
        """Computes the score by the steps of sacreBLEU. Orders that one of the texts is too short
        for do not count."""
        precision = recall = 0.0
        orders = 0
        for found, wanted, matches in zip(*[iter(counts)] * 3, strict=True):
            if found and wanted:
                precision += matches / found
                recall += matches / wanted
                orders += 1
        if not precision + recall:
            return Score(0.0, counts=counts)
        precision, recall, weight = precision / orders, recall / orders, self.beta**2
        value = (1 + weight) * precision * recall
        value /= weight * precision + recall
        return Score(100 * value, counts=counts)

    def pool(self) -> SummedCounts:
        return SummedCounts(3 * (self.char_order + self.word_order), self.from_counts)

    def signature_fields(self) -> Mapping[str, str]:
        from importlib.metadata import version

        return {"sacrebleu": version("sacrebleu")}


def _totals(found: int, wanted: int, matches: Sequence[int]) -> list[int]:
    """Returns the counts of texts with these numbers of units. Where the reference has no n-grams,
    those of the response do not count either."""
    counts = []
    for order, matched in enumerate(matches, start=1):
        of_reference = max(0, wanted - order + 1)
        counts += [max(0, found - order + 1) if of_reference else 0, of_reference, matched]
    return counts


def split_words(text: str) -> list[str]:
    """At whitespace; one mark is cut off the end of a word, or else off its beginning."""
    words = []
    for word in text.split():
        if len(word) > 1 and word[-1] in punctuation:
            words += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in punctuation:
            words += [word[0], word[1:]]
        else:
            words.append(word)
    return words
