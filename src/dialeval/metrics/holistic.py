"""`holistic`: the mean of coherence, fluency and consistency (Pang et al., ACL 2020; the mean is
that of DialEvalMetrics, Yeh et al., 2021)

    holistic = ( c + f + s ) / 3

c is `coherence` and f is `fluency`, each on its scale by the 5th percentile (Eq. 2), s is
`consistency`: 1 minus the probability of a contradiction. HolisticEval itself gives four numbers
and no mean; diversity, the fourth, needs a probed system and is not part of it. The questions are
those of the three metrics: scored together with them, nothing is computed twice.

mode=paper     the three as the paper has them. Where the speaker has said nothing before, nothing
               is contradicted: s = 1
mode=released  the three as the code has them (the last earlier turn alone is compared, in lower
               case), and s = 0 where nothing was said before: DialEvalMetrics writes 0 for what its
               NLI model was not asked. What it did ask compares earlier turns with the text "YOUR
               SCORE:" by a slip of the parser, which is not repeated here
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.metrics.consistency import Consistency
from dialeval.metrics.diversity import HOLISTIC_EVAL
from dialeval.metrics.likelihood import Coherence, Fluency
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Question
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, Score


@dataclass(frozen=True)
class Holistic(Metric):
    """The mean of coherence, fluency and consistency, as DialEvalMetrics reports HolisticEval."""

    name = "holistic"
    version = 2
    needs = frozenset({"context"})
    citation = HOLISTIC_EVAL

    model: str = model_option("lm", "the language model that is asked")
    nli: str = model_option("nli", "the inference model that is asked")
    mode: Literal["paper", "released"] = option("paper", "the equations, or the authors' code")

    @property
    def _three(self) -> tuple[Coherence, Fluency, Consistency]:
        return (
            Coherence(self.model, self.mode),
            Fluency(self.model, self.mode),
            Consistency(self.nli, "last", lowercase=True)
            if self.mode == "released"
            else Consistency(self.nli, "mean"),
        )

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [question for metric in self._three for question in metric.ask(sample)]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        parts: dict[str, float] = {}
        notes, start = [], 0
        for metric in self._three:
            end = start + len(metric.ask(sample))
            found = metric.score(sample, answers[start:end])
            start = end
            if found.value is not None:
                parts[metric.name] = found.value
                notes.append(found.note)
            elif metric.name == "consistency":
                parts[metric.name] = 1.0 if self.mode == "paper" else 0.0
                notes.append(found.note)
            else:
                return found
        note = next(filter(None, notes), "")
        return Score(math.fsum(parts.values()) / len(parts), parts, note)

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("coherence", "log-probability of the response after its context, before scaling"),
            Part("fluency", "log-probability of the response on its own, before scaling"),
            Part("consistency", "one minus the probability of a contradiction"),
        )

    def scales(self) -> Mapping[str, CalibrationKind]:
        return {"coherence": "floor", "fluency": "floor", "consistency": "unit"}

    def combine(self, scaled: Mapping[str, float]) -> float:
        return math.fsum(scaled.values()) / len(scaled)
