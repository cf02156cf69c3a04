"""`rouge`: how much do response and reference cover of each other? (Lin, 2004)

    F1 = 2 P R / (P + R)
    ROUGE-n: P, R = clipped matches of n-grams / n-grams of the response, of the reference
    ROUGE-L: P, R = longest common subsequence / words of the response, of the reference

mode=paper gives the F1 of Google's `rouge_score`, a port of ROUGE-1.5.5: text is lowercased, all
but a-z and 0-9 separates words, and words of more than three letters may be stemmed. With several
references each part takes its maximum over them, as `RougeScorer.score_multi` does.

That rule finds no word in Chinese and cuts German at each umlaut. So tokenize=auto, the default,
follows it for English and for what may be English, and takes the words of any script for a sample
whose references are in another language (`text.language_of`): letters and digits as Unicode
has them, and each character of a script without spaces by itself. tokenize=ascii or unicode takes
one of the two for all samples.

mode=released is what PONE published as "ROUGE": see `word_overlap.released_rouge`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from dialeval.errors import UsageError
from dialeval.metric import Metric, Part
from dialeval.metrics.word_overlap import clipped_matches, porter_stemmer, released_rouge
from dialeval.options import option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score
from dialeval.text import ALONE, LETTERS, RUNS_TOGETHER, language_of, runs_together

WORD = re.compile("[a-z0-9]+")
"""After lowercasing; whatever else there is separates words."""

ANY_WORD = re.compile(f"[{ALONE}]|{LETTERS}")


@dataclass(frozen=True)
class Rouge(Metric):
    """Overlap of n-grams, or of the longest common subsequence, with the best reference."""

    name = "rouge"
    version = 3
    needs = frozenset({"references"})
    range = (0.0, 1.0)
    citation = (
        "Lin: ROUGE: A Package for Automatic Evaluation of Summaries. Text Summarization Branches"
        " Out, ACL 2004"
    )

    variant: Literal[1, 2, "L"] = option("L", "the ROUGE that gives the score")
    stemming: bool = option(False, "compare Porter stems")
    tokenize: Literal["auto", "ascii", "unicode"] = option(
        "auto", "words: chosen by the language of the references, of a-z and 0-9, or of any script"
    )
    mode: Literal["paper", "released"] = option("paper", "rouge_score, or PONE's ROUGE-2")

    def __post_init__(self) -> None:
        if self.mode == "released" and (self.variant, self.stemming, self.tokenize) != (
            "L",
            False,
            "auto",
        ):
            raise UsageError(
                "metric 'rouge': mode=released is PONE's ROUGE-2 without stemming, whatever the"
                " variant. Leave variant, stemming and tokenize out, or use mode=paper."
            )

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        response = sample.response or ""
        if self.mode == "released":
            if runs_together(response, *sample.references):
                return Score.missing(f"{RUNS_TOGETHER}: mode=released needs them")
            value = released_rouge(response, sample.references)
            return Score.missing("no words") if value is None else Score(value, {"rouge-2": value})
        rule = WORD if self._ascii(sample) else ANY_WORD
        words = self._words(response, rule)
        found = [_overlaps(words, self._words(text, rule)) for text in sample.references]
        unigrams, bigrams, sequence = found[0] if len(found) == 1 else map(max, *found)
        parts = {"rouge-1": unigrams, "rouge-2": bigrams, "rouge-L": sequence}
        return Score(parts[f"rouge-{self.variant}"], parts)

    def _ascii(self, sample: Sample) -> bool:
        if self.tokenize != "auto":
            return self.tokenize == "ascii"
        if all(text.isascii() for text in (sample.response or "", *sample.references)):
            return True  # both rules find the same words
        return not language_of(" ".join(sample.references))

    def _words(self, text: str, rule: re.Pattern[str]) -> list[str]:
        """Returns the words of `rouge_score.tokenize`, which splits, joins and checks them one by
        one."""
        words = rule.findall(text.lower())
        if not self.stemming:
            return words
        stem = porter_stemmer().stem
        stems = [stem(word) if len(word) > 3 else word for word in words]
        return [stem for stem in stems if rule.fullmatch(stem)]

    @property
    def languages(self) -> frozenset[str]:
        return frozenset({"en"}) if self.stemming else frozenset()

    def parts(self) -> tuple[Part, ...]:
        if self.mode == "released":
            return (Part("rouge-2", "F1 of the sets of bigrams"),)
        return (
            Part("rouge-1", "F1 of unigrams"),
            Part("rouge-2", "F1 of bigrams"),
            Part("rouge-L", "F1 of the longest common subsequence"),
        )

    def signature_fields(self) -> Mapping[str, str]:
        from importlib.metadata import version

        if self.mode == "released":
            return {"variant": "2"}
        stemmer = {"nltk": version("nltk")} if self.stemming else {}
        return {"rouge-score": version("rouge-score"), **stemmer}


def _overlaps(response: list[str], reference: list[str]) -> tuple[float, float, float]:
    """Returns the three parts for one reference.

    A common bigram is two common words, and a common subsequence consists of common words: most
    pairs of dialogue turns have so few of those that the longer way can be spared.
    """
    found, wanted = len(response), len(reference)
    words = clipped_matches(response, reference)
    if words < 2:
        value = _f1(words, found, wanted)
        return value, 0.0, value
    bigrams = clipped_matches(pairwise(response), pairwise(reference))
    common = longest_common_subsequence(response, reference)
    return (
        _f1(words, found, wanted),
        _f1(bigrams, found - 1, wanted - 1),
        _f1(common, found, wanted),
    )


def _f1(matches: int, found: int, wanted: int) -> float:
    if not matches:
        return 0.0
    precision, recall = matches / found, matches / wanted
    return 2 * precision * recall / (precision + recall)


def longest_common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Its length, by the bit-parallel method of Hyyrö (AWOCA 2004).

    A row of the usual table becomes one integer whose zero bits are the places where the length
    grows. `rouge_score` fills the table itself, which for two texts of 20,000 words takes minutes
    and gigabytes.
    """
    places: dict[str, int] = {}
    bit = 1
    for word in first:
        places[word] = places.get(word, 0) | bit
        bit <<= 1
    row = everywhere = bit - 1
    for word in second:
        if matches := row & places.get(word, 0):
            row = ((row + matches) | (row - matches)) & everywhere
    return len(first) - row.bit_count()
