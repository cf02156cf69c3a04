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
    judged_turns,
    measures,
    nothing_to_judge,
    windows_of,
)
from dialeval.metrics.windows import by_answer, judged, of_windows
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Judgement, Question
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, Score

U, S, L = 0.33, 0.33, 0.34
"""The weights of the released code."""


@dataclass(frozen=True)
class UslH(Metric):
    """Fluency, relevance and specificity in one number, by the rule of USL-H."""

    name = "usl-h"
    version = 2
    levels = frozenset({"turn", "dialogue"})
    needs = frozenset({"context"})
    citation = (
        "Phy, Zhao, Aizawa: Deconstruct to Reconstruct a Configurable Evaluation Metric for"
        " Open-Domain Dialogue Systems. COLING 2020"
    )

    model: str = model_option("mme-specificity", "the masked language model")
    fluency: str = model_option("mme-fluency", "the judge of valid utterances")
    relevance: str = model_option("mme-relevance", "the judge of next utterances")
    rule: Literal["HS", "H", "A"] = option("HS", "rule that combines the three scores")
    masks: int = option(3, "hide every N-th piece together; 0: one by one", low=0)
    tokens: int = option(25, "number of word-pieces of a response to ask for; 0: all", low=0)

    def ask(self, sample: Sample) -> Sequence[Question]:
        turns = judged_turns(sample, needs_context=True)
        fluent, relevant, likely = self._asking()
        return [
            *(question for turn in turns for question in fluent.questions(turn)),
            *(question for turn in turns for question in relevant.questions(turn)),
            *(question for turn in turns for question in likely.questions(turn)),
        ]

    def _asking(self) -> tuple[MmeFluency, MmeRelevance, MmeSpecificity]:
        specificity = MmeSpecificity(self.model, masks=self.masks, tokens=self.tokens)
        return MmeFluency(self.fluency), MmeRelevance(self.relevance), specificity

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return nothing_to_judge(sample)
        specificity = self._asking()[-1]
        turns = judged_turns(sample, needs_context=True)
        cut = windows_of(turns)
        count = sum(len(one.read) for one in cut)
        likelihoods = specificity.read(turns, answers[2 * count :])
        readable = [number for number, tokens in enumerate(likelihoods) if len(tokens)]
        if not readable:
            return Score.missing("no word-pieces")
        judgements = by_answer([*cut, *cut], map(Judgement.read, answers[: 2 * count]))
        probabilities = [of_windows([one.value for one in own]) for own in judgements]
        nll = [measures(tokens)["nll"] if len(tokens) else 0.0 for tokens in likelihoods]
        columns = {
            "understandable": probabilities[: len(turns)],
            "sensible": probabilities[len(turns) :],
            "nll": nll,
        }
        parts = {
            name: math.fsum(values[number] for number in readable) / len(readable)
            for name, values in columns.items()
        }
        note = judged([*cut, *cut], answers[: 2 * count]).note
        note = note or specificity.remark(turns, likelihoods)
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
