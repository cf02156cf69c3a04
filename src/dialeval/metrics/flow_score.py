"""`flow-score`: does the dialogue go on as its flow foretells? (Li et al., ACL Findings 2021)

    I_k = C_k - C_k-1            what utterance k changes: C_k represents the dialogue up to k
    I'_k = C'_k - C_k-1          what was foretold: C'_k = flow(C_1 ... C_k-1)
    x_k = cos(I_k, I'_k) min(|I_k|, |I'_k|)^2 / (|I_k| |I'_k|)
    FlowScore = 2 ^ ( - mean over k of ln((x_k + 1) / 2) )

k runs over what the speaker of the response said, beginning with the fourth utterance: the second
answer where the user starts, as the released code counts. The logarithm is natural and the base is
2, as in the released code. 1 is a dialogue that goes as foretold, and higher is worse, so that the
metric is minus the FlowScore, as in DialEvalMetrics.

In DialoFlow, C is a state of GPT-2 that was trained on Reddit. Here C_k is the sum of the frozen
sentence vectors of the first k utterances, so that I_k is the vector of utterance k, and an LSTM
foretells it. A dialogue of fewer than four utterances has no score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dialeval.metrics.mme import JudgedMetric, nothing_to_judge, system_turns
from dialeval.model_store.presets import model_option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score

FEWEST = 3
"""Turns before the first response that counts."""


@dataclass(frozen=True)
class FlowScore(JudgedMetric):
    """Minus the FlowScore: how well what was said could be foretold from the turns before it."""

    name = "flow-score"
    version = 1
    range = (-math.inf, -1.0)
    needs = frozenset({"context"})
    citation = (
        "Li, Zhang, Fei, Feng, Zhou: Conversations Are Not Flat: Modeling the Dynamic Information"
        " Flow across Dialogue Utterances. ACL 2021"
    )

    model: str = model_option("flow-score", "the trained flow")

    def responses(self, sample: Sample) -> list[Sample]:
        """Of a whole dialogue, what was said up to the system's last turn."""
        turns = sample.turns
        if sample.response is None and turns:
            turns = turns[: system_turns(sample)[-1] + 1]
        said = tuple(turn for turn in turns if turn.text.strip())
        if len(said) <= FEWEST or not turns[-1].text.strip():
            return []
        return [replace(sample, context=said[:-1], response=said[-1].text)]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        """The model answers with exp( mean over k of ln((x_k + 1) / 2) )."""
        if not answers:
            said = sum(1 for turn in sample.turns if turn.text.strip())
            blank = sample.response is not None and not sample.response.strip()
            if blank or not sample.context or said > FEWEST:
                return nothing_to_judge(sample)
            return Score.missing(f"fewer than {FEWEST} turns before the response")
        found = super().score(sample, answers)
        if found.value is None:
            return found
        return replace(found, value=-(2.0 ** -math.log(found.value)))
