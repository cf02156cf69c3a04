"""`dialogrpt`: how much feedback would this reply get on Reddit? (Gao et al., EMNLP 2020)

    s(c, r) = sigmoid( w . h )      h: the state of GPT-2 at the last token of c <|endoftext|> r

One model has one question. The authors published five, each 355 M parameters, on the hub as
microsoft/DialogRPT-NAME:

    updown             votes up minus votes down      human-vs-rand      a reply to this at all?
    depth, width       replies that it started        human-vs-machine   written by a person?

ensemble=true asks all five and multiplies two weighted means, as the released `ensemble.yml` says:

    final = ( .5 human-vs-rand + .5 human-vs-machine )
            * ( updown + .48 depth - .5 width ) / ( 1 + .48 - .5 )

Nothing embedded takes their place: `dialeval models get microsoft/DialogRPT-updown` fetches one.
All turns are read, and what does not fit the model is cut from the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialeval.metric import Metric, Part
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Judge, Judgement, Question
from dialeval.sample import Sample
from dialeval.scores import Score

HUB = "microsoft/DialogRPT-"
PRIOR = {"human-vs-rand": 0.5, "human-vs-machine": 0.5}
CONDITIONAL = {"updown": 1.0, "depth": 0.48, "width": -0.5}
"""The weights of the released `ensemble.yml`."""


@dataclass(frozen=True)
class DialogRpt(Metric):
    """Feedback that a reply would get on Reddit, by GPT-2 with a scalar head."""

    name = "dialogrpt"
    needs = frozenset({"context"})
    citation = (
        "Gao, Zhang, Galley, Brockett, Dolan: Dialogue Response Ranking Training with Large-Scale"
        " Human Feedback Data. EMNLP 2020"
    )

    model: str = model_option("dialogrpt", "a model of DialogRPT, by hub name or directory")
    ensemble: bool = option(False, "ask all five models of the hub in place of `model`")

    @property
    def range(self) -> tuple[float, float]:
        """The conditional half of the ensemble has a negative weight."""
        lowest, highest = -0.5 / 0.98, 1.48 / 0.98
        return (lowest, highest) if self.ensemble else (0.0, 1.0)

    def models(self) -> Mapping[str, str]:
        if not self.ensemble:
            return {"model": self.model}
        return {name: f"{HUB}{name}" for name in (*PRIOR, *CONDITIONAL)}

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if not response.strip():
            return ()
        turns = tuple(turn.text for turn in sample.context)
        return [Judge(model, turns, response) for model in self.models().values()]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return Score.missing("empty response")
        found = [Judgement.read(answer) for answer in answers]
        if not self.ensemble:
            return Score(found[0].value, note=found[0].note)
        values = [one.value for one in found]
        parts = dict(zip((*PRIOR, *CONDITIONAL), values, strict=True))
        value = _mean(PRIOR, parts) * _mean(CONDITIONAL, parts)
        return Score(value, parts, found[0].note)

    def parts(self) -> tuple[Part, ...]:
        names = (*PRIOR, *CONDITIONAL) if self.ensemble else ()
        return tuple(Part(name, f"the score of DialogRPT-{name}") for name in names)


def _mean(weights: Mapping[str, float], values: Mapping[str, float]) -> float:
    total = math.fsum(weight * values[name] for name, weight in weights.items())
    return total / math.fsum(weights.values())
