"""What `ruber` and `bert-ruber` have in common: two halves, and the ways to make one score of them.

    unreferenced  does the response fit what was said before? A trained scorer says so, 0 to 1
    referenced    how near is it to what people said instead? A cosine; of several references, the
                  nearest counts

blend=min, max, arithmetic or geometric takes the smaller or larger of the two or their mean, after
each half was put on a scale from 0 to 1 by its smallest and largest value (Tao et al., AAAI 2018,
3.3). The scales are fitted on the run and saved with it. A half that is the same for all samples
is 0 on its scale, where the released code divides by zero.

blend=unreferenced (what PONE's tables report) and blend=referenced leave the other half alone, and
need no scale. In mode=released they are scaled as well, as the released code does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Need, Part
from dialeval.options import option
from dialeval.question import Judgement
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, PartValue, Score

Blend = Literal["unreferenced", "referenced", "min", "max", "arithmetic", "geometric"]
HALVES = ("unreferenced", "referenced")
NO_REFERENCES = "no references: blend=unreferenced does without"


@dataclass(frozen=True)
class BlendedMetric(Metric):
    """Base of the metrics with a referenced and an unreferenced half."""

    model: str = option("", "the trained scorer")
    blend: Blend = option("unreferenced", "one half, or what is made of both")
    mode: Literal["paper", "released"] = option("paper", "the papers, or PONE's code")

    @property
    def range(self) -> tuple[float, float]:
        """Scales of another run may put a value outside 0 to 1."""
        if self.scales():
            return (-math.inf, math.inf)
        return (0.0, 1.0) if self.blend == "unreferenced" else (-1.0, 1.0)

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({"context"} if self.blend == "unreferenced" else {"context", "references"})

    def obstacle(self, sample: Sample) -> str:
        why = super().obstacle(sample)
        return NO_REFERENCES if why == "no references" else why

    def blended(self, unreferenced: Judgement, referenced: Score | None) -> Score:
        """The score of a sample; `referenced` is None where it has no references."""
        halves = {"unreferenced": unreferenced.value}
        if referenced is not None and referenced.value is not None:
            halves["referenced"] = referenced.value
        parts: dict[str, PartValue] = dict(halves)
        if self.blend == "unreferenced":
            return Score(unreferenced.value, parts, unreferenced.note)
        if "referenced" not in halves:
            return Score.missing(referenced.note if referenced else NO_REFERENCES)
        return Score(self.combine(halves), parts, unreferenced.note)

    def scales(self) -> Mapping[str, CalibrationKind]:
        if self.blend not in HALVES:
            return dict.fromkeys(HALVES, "minmax")
        return {self.blend: "minmax"} if self.mode == "released" else {}

    def combine(self, scaled: Mapping[str, float]) -> float:
        if self.blend in HALVES:
            return scaled[self.blend]
        values = [scaled[half] for half in HALVES]
        match self.blend:
            case "min":
                return min(values)
            case "max":
                return max(values)
            case "arithmetic":
                return sum(values) / 2
        # Below 0 only before scaling, or on the scales of another run.
        return math.sqrt(max(0.0, values[0]) * max(0.0, values[1]))

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("unreferenced", "how well the response fits what was said before"),
            Part("referenced", "how near the response is to a reference, if there is one"),
        )
