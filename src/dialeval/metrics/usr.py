"""`usr`: a masked language model and two retrieval scorers, by a regression (Mehri and Eskenazi,
ACL 2020, sections 4.1 to 4.3)

    mlm      mean over i of log P(w_i | all other pieces)     of the last turn and the response
    context  P(r was given to these turns)                    DR-c
    fact     P(r was said by one who knew these facts)        DR-f

    usr = 3.597 + (.660 + .404) z(mlm) + (.513 + .961) z(context) + .356 z(fact)

z is the distance from the mean in standard deviations. The coefficients are those of the released
regression, whose five features are mlm, mlm, context, context and fact; it was fitted on the
Overall ratings of USR's own data.

mode=paper     z by mean and standard deviation over the run, kept with it as a scale
mode=released  z by the numbers in the released file. They hold for the authors' RoBERTa, whose
               log-probabilities are others than those of the embedded model

Where a sample has no facts, the fact scorer reads the context in their place, as in the released
code. The last 100 words of the last turn and the response are read by the masked language model
(100 tokens in the released code, which hides them one by one: masks=0).
`dialeval train usr-context` and `usr-fact` train the two scorers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Judge, Judgement, MaskedLikelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, Score

INTERCEPT = 3.597475447630256
COEFFICIENTS = {
    "mlm": 0.66011001 + 0.40353486,
    "context": 0.51327857 + 0.96053361,
    "fact": 0.35642554,
}
RELEASED: Mapping[str, tuple[float, float]] = {
    "mlm": (-1.012293440649907, 0.39053753419230813),
    "context": (0.8604811806918587, 0.30259338627812254),
    "fact": (0.8472124995904354, 0.27987823011851076),
}
"""Mean and standard deviation of each part in the released regression file."""

WORDS = 100


@dataclass(frozen=True)
class Usr(Metric):
    """Fluency, fit to the context and use of facts in one number, by the regression of USR."""

    name = "usr"
    needs = frozenset({"context"})
    citation = (
        "Mehri, Eskenazi: USR: An Unsupervised and Reference Free Evaluation Metric for Dialog"
        " Generation. ACL 2020"
    )

    model: str = model_option("mme-specificity", "the masked language model")
    context: str = model_option("usr-context", "the scorer of responses after their context")
    fact: str = model_option("usr-fact", "the scorer of responses after a fact")
    mode: Literal["paper", "released"] = option(
        "paper", "standardise by the run, or by the numbers of the released file"
    )
    masks: int = option(3, "hide every N-th piece together; 0: one by one", low=0)

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if not response.strip():
            return ()
        turns = tuple(turn.text for turn in sample.context)
        told = " ".join(sample.facts or turns)
        words = f"{turns[-1]} {response}".split()[-WORDS:]
        return [
            MaskedLikelihood(self.model, " ".join(words), self.masks),
            Judge(self.context, turns, response),
            Judge(self.fact, (told,), response),
        ]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return Score.missing("empty response")
        tokens = TokenLogProbs.read(answers[0])
        if not len(tokens):
            return Score.missing("no word-pieces")
        after, known = (Judgement.read(answer) for answer in answers[1:])
        parts = {"mlm": tokens.mean, "context": after.value, "fact": known.value}
        scaled = {
            name: (value - RELEASED[name][0]) / RELEASED[name][1] for name, value in parts.items()
        }
        return Score(self.combine(scaled), parts, after.note)

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("mlm", "mean log-probability of a hidden piece"),
            Part("context", "probability that the response was given to these turns"),
            Part("fact", "probability that the response belongs to the facts"),
        )

    def scales(self) -> Mapping[str, CalibrationKind]:
        return dict.fromkeys(COEFFICIENTS, "standard") if self.mode == "paper" else {}

    def combine(self, scaled: Mapping[str, float]) -> float:
        return math.fsum([INTERCEPT, *(COEFFICIENTS[name] * scaled[name] for name in COEFFICIENTS)])
