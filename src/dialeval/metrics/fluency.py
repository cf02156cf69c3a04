"""`fluency`: how likely is the response on its own? (Pang et al., ACL 2020, section 3.2)

    f_raw = 1/T * sum over t of  log P(r_t | r_<t)                                       (Eq. 3)

then scaled to its 5th percentile like `coherence` (Eq. 2).

mode=paper     a start-of-text token before the response, so that all T tokens are predicted
mode=released  the authors' code: no start token, so the first token is free and the mean is over
               T - 1 tokens. A response of one token has no likelihood there and no score here; an
               empty one gets -1000000, and takes part in the percentile
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.metrics.coherence import RELEASED_EMPTY, TOKEN_PARTS, token_parts
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Likelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import Score


@dataclass(frozen=True)
class Fluency(Metric):
    """Log-probability of the response on its own."""

    name = "fluency"
    calibration = "floor"
    citation = (
        "Pang, Nijkamp, Han, Zhou, Liu, Tu: Towards Holistic and Automatic Evaluation of"
        " Open-Domain Dialogue Generation. ACL 2020"
    )

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
            # What nothing predicts is NaN in the answer; the released mean leaves it out.
            tokens = TokenLogProbs(tokens.log_probs[1:], tokens.spans[1:], tokens.cut)
            if not len(tokens):
                return Score.missing("one token")
        value = math.fsum(tokens.log_probs) / len(tokens)
        return Score(value, token_parts(tokens), "response truncated" if tokens.cut else "")

    def parts(self) -> tuple[Part, ...]:
        return TOKEN_PARTS
