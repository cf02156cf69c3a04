"""`pone`: does it fit the context, to a scorer that learned from hard cases? (Lan et al., 2020)

    s_U = sigmoid( MLP [ q ; q^T M r ; r ] )      q, r: pooled states of an encoder

The network is that of `bert-ruber`; what it learned from is PONE's own: negative samples that are
near to the right response, positive samples beyond the one in the corpus, and a filter for labels
that are wrong (`dialeval train pone`). How the turns before the response become q is what it was
trained with. References are not looked at.

mode=released is what the authors' code does: scores are put on a scale from 0 to 1 by their
smallest and largest value over the run, which moves no correlation, and a blank response is read as
`[UNK]`. In mode=paper it gets no score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Judge, Judgement, Question
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, Score


@dataclass(frozen=True)
class Pone(Metric):
    """Fit to the context, by a scorer on sentence vectors that learned from hard cases."""

    name = "pone"
    version = 2
    needs = frozenset({"context"})
    citation = (
        "Lan, Mao, Wei, Gao, Huang: PONE: A Novel Automatic Evaluation Metric for Open-Domain"
        " Generative Dialogue Systems. TOIS 2020"
    )

    model: str = model_option("pone", "the trained scorer")
    mode: Literal["paper", "released"] = option("paper", "the paper, or the authors' code")

    @property
    def range(self) -> tuple[float, float]:
        """Scales of another run may put a value outside 0 to 1."""
        return (-math.inf, math.inf) if self.mode == "released" else (0.0, 1.0)

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if self.mode == "paper" and not response.strip():
            return ()
        return [Judge(self.model, tuple(turn.text for turn in sample.context), response)]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return Score.missing("empty response")
        fit = Judgement.read(answers[0])
        return Score(fit.value, {"unreferenced": fit.value}, fit.note)

    def parts(self) -> tuple[Part, ...]:
        return (Part("unreferenced", "how well the response fits, before any scaling"),)

    def scales(self) -> Mapping[str, CalibrationKind]:
        return {"unreferenced": "minmax"} if self.mode == "released" else {}

    def combine(self, scaled: Mapping[str, float]) -> float:
        return scaled["unreferenced"]
