"""`pmi`: how much likelier does the context make the response? (dialeval's own)

    pmi = mean over t of log P(r_t | r_<t, q)  -  mean over t of log P(r_t | r_<t)

Pointwise mutual information per token. Each mean is over its own tokens: after a context the
response begins with a space, and its first words may be cut otherwise. A bland answer is likely
after anything, and `coherence` rewards it; here its likelihood on its own is taken off. The two
questions are those that `coherence` and `fluency` ask: beside them, this metric costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Layout, Likelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import Score


@dataclass(frozen=True)
class Pmi(Metric):
    """Log-probability that the context adds to the response."""

    name = "pmi"
    needs = frozenset({"context"})
    citation = "dialeval; compare Li et al., NAACL 2016, on mutual information as an objective"

    model: str = model_option("lm", "the language model that is asked")
    context: Literal["last", "all"] = option("all", "the query alone, or all turns before")
    layout: Layout = option("plain", "how the dialogue is written down for the model")

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if not response.strip():
            return ()
        turns = sample.context if self.context == "all" else sample.context[-1:]
        return [
            Likelihood(self.model, text=response, turns=turns, layout=self.layout),
            Likelihood(self.model, text=response),
        ]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return Score.missing("empty response")
        after, alone = (TokenLogProbs.read(answer) for answer in answers)
        given, base = (math.fsum(t.log_probs) / len(t) for t in (after, alone))
        parts = {"given-context": given, "alone": base}
        return Score(given - base, parts, "turns truncated" if after.cut else "")

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("given-context", "mean log-probability of a token after the context"),
            Part("alone", "mean log-probability of a token on its own"),
        )
