"""`meteor`: how well can the words of the response be aligned with a reference? (Lavie & Agarwal,
WMT 2007; Banerjee & Lavie, 2005)

    METEOR  = F * (1 - gamma * (chunks / matches) ^ beta)
    F       = P R / (alpha P + (1 - alpha) R)

Words are matched in three stages: the same word, the same Porter stem, a synonym in WordNet. P and
R are matches per word of the response and of the reference; `chunks` counts the runs of matches
that are adjacent in both. Of several references the best counts. A perfect copy of m words is one
chunk and scores 1 - gamma / m^beta, not 1.

This is NLTK's `meteor_score` with its default parameters, on the WordNet 3.0 that ships with
dialeval. NLTK looks for synonyms of the stems that are left, so `car` finds `auto`, but `purchase`,
cut to `purchas`, does not find `buy`. Nor is it the Java program METEOR 1.5, which adds
paraphrases, function words and tuned parameters.

NLTK wants words, not text. tokenize=punctuation makes words of letters and digits, with apostrophes
inside (`don't`), and lets every other character that is not a space stand alone, as does each
character of a script without spaces (Chinese, Japanese, Thai, ...). tokenize=none splits at
whitespace only, for text that is already tokenized. Case is ignored. Stems and synonyms are
English: in other languages the same words match, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from dialeval.metric import Metric
from dialeval.metrics.word_overlap import porter_stemmer
from dialeval.options import option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score
from dialeval.text import ALONE, LETTERS

if TYPE_CHECKING:
    from dialeval.lexicon import NltkView

TOKEN = re.compile(rf"[{ALONE}]|(?:{LETTERS}|_+)+(?:['’](?:{LETTERS}|_+)+)*|[^\w\s]")


@dataclass(frozen=True)
class Meteor(Metric):
    """Harmonic mean of word precision and recall after alignment, less a penalty for disorder."""

    name = "meteor"
    version = 2
    languages = frozenset({"en"})
    needs = frozenset({"references"})
    range = (0.0, 1.0)
    citation = (
        "Lavie, Agarwal: METEOR: An Automatic Metric for MT Evaluation with High Levels of"
        " Correlation with Human Judgments. WMT 2007"
    )

    alpha: float = option(0.9, "weight of recall relative to precision", low=0, high=1)
    beta: float = option(3.0, "exponent of the penalty for disorder", low=0)
    gamma: float = option(0.5, "the largest penalty", low=0, high=1)
    tokenize: Literal["punctuation", "none"] = option(
        "punctuation", "split off punctuation, or not"
    )

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        from nltk.translate.meteor_score import meteor_score

        value = meteor_score(
            [self.words(reference) for reference in sample.references],
            self.words(sample.response or ""),
            stemmer=porter_stemmer(),
            wordnet=_wordnet(),
            alpha=self.alpha,
            beta=self.beta,
            gamma=self.gamma,
        )
        return Score(float(value))

    def words(self, text: str) -> list[str]:
        return TOKEN.findall(text) if self.tokenize == "punctuation" else text.split()

    def signature_fields(self) -> Mapping[str, str]:
        from importlib.metadata import version

        return {"nltk": version("nltk"), "wordnet": "3.0"}


@cache
def _wordnet() -> NltkView:
    from dialeval.lexicon import NltkView, load_wordnet

    return NltkView(load_wordnet())
