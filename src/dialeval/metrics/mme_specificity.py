"""`mme-specificity`: does it say something, or what anybody would say? (Zhang et al., 2022)

    nll = - sum over i of log P(w_i | all other pieces)     n word-pieces, each guessed in turn
    nce = - nll / n                                         a mean log-probability
    ppl = exp(-nce)

by a masked language model that learned what people answer (`dialeval train mme-specificity`). nll
and ppl are higher the rarer the words are, and nll the more of them there are; nce is higher the
more expected they are. Signs are as published: MME-CRS weighs each by how it agrees with people.
A higher value is a better one for nll by USL-H (Phy et al., 2020), which this is taken from.

Each is put on a scale from 0 to 1 that is fitted on the run; the raw values stay in the parts:

    scale=quartile     from the 25th to the 75th percentile, and clipped there: half of all
                       responses get 0 or 1, as in the papers
    scale=percentile   from the 1st to the 99th percentile, and clipped there (the default)
    scale=minmax       from the smallest to the largest value

A dialogue as a whole is the mean over its system's turns.

masks=0 hides the pieces one by one, as USL-H does. masks=3, the default, hides every third in the
same pass: three passes whatever the length, a quarter of the time, and nearly the same order of
responses (200 of DailyDialog: Spearman .996 with masks=0 for nll, .986 for nce and ppl). The first
25 pieces are read, as in USL-H; tokens=0 reads all that the model can take.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.metrics.mme_judges import MME_CITATION, judged_turns, nothing_to_judge
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, MaskedLikelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, Score

Kind = Literal["nll", "nce", "ppl"]
Scale = Literal["quartile", "percentile", "minmax"]


@dataclass(frozen=True)
class MmeSpecificity(Metric):
    """How unexpected the words of the response are, to a masked language model."""

    name = "mme-specificity"
    version = 2
    levels = frozenset({"turn", "dialogue"})
    citation = MME_CITATION

    model: str = model_option("mme-specificity", "the masked language model that is asked")
    kind: Kind = option("nll", "the sum, its mean per piece (sign changed), or the perplexity")
    scale: Scale = option(
        "percentile",
        "from where to where 0 to 1 goes: 25th to 75th percentile, 1st to 99th, or least to most",
        moves_score=False,  # the signature names the fitted scale and its kind
    )
    masks: int = option(3, "every so many pieces are hidden together; 0: one by one", low=0)
    tokens: int = option(25, "word-pieces of a response that are read; 0: all", low=0)

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [self.question(turn) for turn in judged_turns(sample)]

    def question(self, turn: Sample) -> MaskedLikelihood:
        return MaskedLikelihood(self.model, turn.response or "", self.masks, self.tokens)

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return nothing_to_judge(sample)
        readable = [tokens for tokens in map(TokenLogProbs.read, answers) if len(tokens)]
        if not readable:
            return Score.missing("no word-pieces")
        turns = [measures(tokens) for tokens in readable]
        parts = {name: math.fsum(turn[name] for turn in turns) / len(turns) for name in turns[0]}
        cut = any(is_cut(tokens, self.tokens) for tokens in readable)
        return Score(parts[self.kind], parts, "response truncated" if cut else "")

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("nll", "negative log-likelihood of all pieces together"),
            Part("nce", "mean log-probability of a piece"),
            Part("ppl", "perplexity: exp of the mean with its sign changed"),
        )

    def scales(self) -> Mapping[str, CalibrationKind]:
        return {self.kind: self.scale}

    def combine(self, scaled: Mapping[str, float]) -> float:
        return scaled[self.kind]


def is_cut(tokens: TokenLogProbs, wanted: int) -> bool:
    """Whether the model could not read what it was asked to. The first `wanted` pieces are what the
    metric is defined on: a response that has more has lost nothing."""
    return bool(tokens.cut) and len(tokens) != wanted


def measures(tokens: TokenLogProbs) -> dict[str, float]:
    """The three of one response."""
    total = math.fsum(tokens.log_probs)
    mean = total / len(tokens)
    return {"nll": -total, "nce": mean, "ppl": math.exp(-mean)}
