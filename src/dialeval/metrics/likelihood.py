"""Likelihood of a response under a language model: `coherence`, `fluency` and `pmi`.

In mode=paper, a response of more than 100 words has its coherence and fluency from its windows
(`metrics/windows`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.metrics.diversity import HOLISTIC_EVAL
from dialeval.metrics.windows import mean_log_prob
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Layout, Likelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import PartValue, Score

RELEASED_EMPTY = -1e6
"""The score that the authors' code gives an empty response."""

TOKEN_PARTS = (
    Part("log_probs", "log-probability of each token", many=True),
    Part("starts", "where each token starts in the response, in characters", many=True),
    Part("ends", "where each token ends", many=True),
)
"""A report colours the words of a response by them."""


@dataclass(frozen=True)
class Coherence(Metric):
    """Log-probability of the response after its context.

    `coherence`: how likely is the response after its context? (Pang et al., ACL 2020, section 3.1)

        c_raw = 1/T * sum over t of  log P(r_t | r_<t, q)                                    (Eq. 1)
        c     = -(max(c_5th, c_raw) - c_5th) / c_5th                                         (Eq. 2)

    q is the context, r the response of T tokens, c_5th the 5th percentile of c_raw over the corpus:
    a `Calibration`, fitted on the run and saved with it.

    mode=paper     the equations, with a start-of-text token before q
    mode=released  the authors' code: *not* divided by T, no start token. An empty response gets
                   -1000000, and takes part in the percentile. A query of one token has no
                   likelihood in that code, and gets no score here.
    """

    name = "coherence"
    version = 2
    needs = frozenset({"context"})
    calibration = "floor"
    citation = HOLISTIC_EVAL

    model: str = model_option("lm", "the language model that is asked")
    mode: Literal["paper", "released"] = option("paper", "Eq. 1, or what the code computes")
    context: Literal["last", "all"] = option("all", "the query alone, or all turns before")
    layout: Layout = option("plain", "how the dialogue is written down for the model")

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if not response.strip():
            return ()
        released = self.mode == "released"
        return [
            Likelihood(
                self.model,
                text=response,
                turns=sample.context if self.context == "all" else sample.context[-1:],
                layout=self.layout,
                start=not released,
                whole=released,
            )
        ]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            if self.mode == "released":
                return Score(RELEASED_EMPTY)
            return Score.missing("empty response")
        everything = TokenLogProbs.read(answers[0])
        query, tokens = everything.split()
        if self.mode == "released" and len(query) == 1:
            return Score.missing("query of one token")
        value = (
            math.fsum(tokens.log_probs)
            if self.mode == "released"
            else mean_log_prob(sample.response or "", tokens)
        )
        return Score(value, token_parts(tokens), "turns truncated" if tokens.cut else "")

    def parts(self) -> tuple[Part, ...]:
        return TOKEN_PARTS


def token_parts(tokens: TokenLogProbs) -> Mapping[str, PartValue]:
    return {
        "log_probs": tokens.log_probs,
        "starts": tuple(float(start) for start, _ in tokens.spans),
        "ends": tuple(float(end) for _, end in tokens.spans),
    }


@dataclass(frozen=True)
class Fluency(Metric):
    """Log-probability of the response on its own.

    `fluency`: how likely is the response on its own? (Pang et al., ACL 2020, section 3.2)

        f_raw = 1/T * sum over t of  log P(r_t | r_<t)                                       (Eq. 3)

    then scaled to its 5th percentile like `coherence` (Eq. 2).

    mode=paper     a start-of-text token before the response, so that all T tokens are predicted
    mode=released  the authors' code: no start token, so the first token is free and the mean is
                   over T - 1 tokens. A response of one token has no likelihood there and no score
                   here; an empty one gets -1000000, and takes part in the percentile
    """

    name = "fluency"
    version = 2
    calibration = "floor"
    citation = HOLISTIC_EVAL

    model: str = model_option("lm", "the language model that is asked")
    mode: Literal["paper", "released"] = option("paper", "all tokens, or all but the first")

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if not response.strip():
            return ()
        return [Likelihood(self.model, text=response, start=self.mode == "paper")]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            if self.mode == "released":
                return Score(RELEASED_EMPTY)
            return Score.missing("empty response")
        tokens = TokenLogProbs.read(answers[0])
        if self.mode == "released":
            # A token that nothing predicts is NaN in the answer; the released mean leaves it out.
            tokens = TokenLogProbs(tokens.log_probs[1:], tokens.spans[1:], tokens.cut)
            if not len(tokens):
                return Score.missing("one token")
            value = math.fsum(tokens.log_probs) / len(tokens)
        else:
            value = mean_log_prob(sample.response or "", tokens)
        return Score(value, token_parts(tokens), "response truncated" if tokens.cut else "")

    def parts(self) -> tuple[Part, ...]:
        return TOKEN_PARTS


@dataclass(frozen=True)
class Pmi(Metric):
    """Log-probability that the context adds to the response.

    `pmi`: how much likelier does the context make the response? (dialeval's own)

        pmi = mean over t of log P(r_t | r_<t, q)  -  mean over t of log P(r_t | r_<t)

    Pointwise mutual information per token. Each mean is over its own tokens: after a context the
    response begins with a space, and its first words may be cut otherwise. A bland answer is likely
    after anything, and `coherence` rewards it; here its likelihood on its own is taken off. The two
    questions are those that `coherence` and `fluency` ask: beside them, this metric costs nothing.
    """

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
