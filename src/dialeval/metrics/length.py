"""`length`: how long is the response?

    length = number of whitespace-separated words (or of characters)

The baseline that every study owes its readers. On the 200 rated responses of HolisticEval (Pang et
al., ACL 2020), *minus* the number of words alone reaches Pearson .448 and Spearman .494 with
coherence, and .628 and .648 with fluency: about what RUBER with BERT, a learned metric, was
published with for coherence (.47 and .51). A metric that does not beat it has learned little else.

Longer is neither better nor worse, so the direction is `neither`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric
from dialeval.options import option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score


@dataclass(frozen=True)
class Length(Metric):
    """Number of words of the response."""

    name = "length"
    direction = "neither"
    range = (0.0, math.inf)
    citation = (
        "Pang, Nijkamp, Han, Zhou, Liu, Tu: Towards Holistic and Automatic Evaluation of"
        " Open-Domain Dialogue Generation. ACL 2020 (the ratings that length alone agrees with)"
    )

    unit: Literal["words", "characters"] = option("words", "what to count")

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        response = sample.response or ""
        return Score(float(len(response.split() if self.unit == "words" else response)))
