"""`usl-h`: understandable, sensible, likable, in this order (Phy, Zhao, Aizawa, COLING 2020)

    U = P(valid utterance | r)      that of `mme-fluency`
    S = P(next utterance | c, r)    that of `mme-relevance`
    L = nll of r                    that of `mme-specificity`, on a scale by its quartiles

    rule=HS   .33 U + .33 S + .34 S L           what the authors report, and the default
    rule=H    .33 U + .33 U S + .34 U S L       the hierarchy of the paper's text
    rule=A    .33 U + .33 S + .34 L             a plain mean

The questions are those of the three metrics: scored together with them, nothing is computed twice.
The authors trained three copies of BERT; here each judge is an adapter on one small encoder. They
took the quartiles from the training responses; here they are those of the run, kept with it. A
dialogue as a whole is the rule over the means of U, S and nll over its system's turns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.metrics.mme import (
    MmeFluency,
    MmeRelevance,
    MmeSpecificity,
    is_cut,
    judged_turns,
    measures,
    nothing_to_judge,
)
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Judgement, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, Score

U, S, L = 0.33, 0.33, 0.34
"""The weights of the released code."""


@dataclass(frozen=True)
class UslH(Metric):
    """Fluency, relevance and specificity in one number, by the rule of USL-H."""

    name = "usl-h"
    levels = frozenset({"turn", "dialogue"})
    needs = frozenset({"context"})
    citation = (
        "Phy, Zhao, Aizawa: Deconstruct to Reconstruct a Configurable Evaluation Metric for"
        " Open-Domain Dialogue Systems. COLING 2020"
    )

    model: str = model_option("mme-specificity", "the masked language model")
    fluency: str = model_option("mme-fluency", "the judge of valid utterances")
    relevance: str = model_option("mme-relevance", "the judge of next utterances")
    rule: Literal["HS", "H", "A"] = option("HS", "how the three become one number")
    masks: int = option(3, "hide every N-th piece together; 0: one by one", low=0)
    tokens: int = option(25, "word-pieces of a response whose likelihood is asked; 0: all", low=0)

    def ask(self, sample: Sample) -> Sequence[Question]:
        asking = (
            MmeFluency(self.fluency),
            MmeRelevance(self.relevance),
            MmeSpecificity(self.model, masks=self.masks, tokens=self.tokens),
        )
        turns = judged_turns(sample, needs_context=True)
        return [metric.question(turn) for turn in turns for metric in asking]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return nothing_to_judge(sample)
        likelihoods = [TokenLogProbs.read(answer) for answer in answers[2::3]]
        readable = [number for number, tokens in enumerate(likelihoods) if len(tokens)]
        if not readable:
            return Score.missing("no word-pieces")

        def mean(values: Sequence[float]) -> float:
            return math.fsum(values[number] for number in readable) / len(readable)

        parts = {
            "understandable": mean([float(answer[0]) for answer in answers[0::3]]),
            "sensible": mean([float(answer[0]) for answer in answers[1::3]]),
            "nll": mean(
                [measures(tokens)["nll"] if len(tokens) else 0.0 for tokens in likelihoods]
            ),
        }
        cut = any(is_cut(tokens, self.tokens) for tokens in likelihoods)
        judged = [Judgement.read(answer) for place, answer in enumerate(answers) if place % 3 < 2]
        read = Judgement.over(judged)
        note = read.note or ("response truncated" if cut else "")
        return Score(self.combine(parts), parts, note)

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("understandable", "probability that the response is fluent"),
            Part("sensible", "probability that the response answers these turns"),
            Part("nll", "negative log-likelihood of its pieces, before it is scaled"),
        )

    def scales(self) -> Mapping[str, CalibrationKind]:
        return {"understandable": "unit", "sensible": "unit", "nll": "quartile"}

    def combine(self, scaled: Mapping[str, float]) -> float:
        u, s, l = scaled["understandable"], scaled["sensible"], scaled["nll"]  # noqa: E741
        match self.rule:
            case "HS":
                return U * u + S * s + L * s * l
            case "H":
                return U * u + S * u * s + L * u * s * l
            case "A":
                return U * u + S * s + L * l
