"""`deep-am-fm`: adequacy and fluency, the baseline of DSTC10 track 5 (Zhang et al., IWSDS 2020)

    AM    = cos( v(response), v(previous turn) )                            v: pooled states
    FM    = 1/T * sum over t of  log P(r_t | r_<t, previous turn)           a language model
    score = mean of AM and FM, each on a scale by its 5th percentile, as in `coherence`

The scales are fitted on the run and saved with it. A dialogue as a whole is the mean over the turns
of its system that something precedes. The authors take the output of BERT's pooler, a layer over
the state of the first token, after BERT and GPT-2 were trained further on dialogues: `--preset
paper` takes BERT, GPT-2 and pooling=pooler. By default v is the first state itself. (Dividing by a
percentile wants cosines that are far from 0: of 400 exchanges of DailyDialog the 5th percentile is
.64 with the first state of minilm-l6 and .06 with pooling=mean.)

referenced=true compares with references instead: AM is the highest cosine with one, FM the highest
ratio of the mean log-probabilities of response and reference, the larger over the smaller (1: both
are as likely).

mode=released  the authors' code. FM is a difference of two texts that each end in an end token,
               which is thus scored in two places:
               [ log P(prev + " " + r + end) - log P(prev + end) ] / (tokens of the first - second)
               and for whole dialogues AM counts negatively: mean of -AM and FM.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Need, Part
from dialeval.metrics.mme import judged_turns, nothing_to_judge
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Embed, Likelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, Score

NEGATED = -1.0


@dataclass(frozen=True)
class DeepAmFm(Metric):
    """Nearness of the response to the turn before, and its likelihood after it."""

    name = "deep-am-fm"
    levels = frozenset({"turn", "dialogue"})
    citation = (
        "Zhang, D'Haro, Banchs, Friedrichs, Li: Deep AM-FM: Toolkit for Automatic Dialogue"
        " Evaluation. IWSDS 2020"
    )

    model: str = model_option("lm", "the language model of FM")
    encoder: str = model_option("encoder", "the encoder of AM")
    pooling: Literal["mean", "cls", "max", "pooler"] = option(
        "cls", "pooling of the encoder's states; pooler: the top layer of BERT"
    )
    referenced: bool = option(False, "compare with references instead of the turn before")
    mode: Literal["paper", "released"] = option("paper", "the formula, or the authors' code")

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({"references"} if self.referenced else {"context"})

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [question for turn in self._turns(sample) for question in self._questions(turn)]

    def _turns(self, sample: Sample) -> list[Sample]:
        return judged_turns(sample, needs_context=not self.referenced)

    def _questions(self, turn: Sample) -> list[Question]:
        """Vectors of the response and of what it is compared with, then the likelihoods."""
        response = turn.response or ""
        others = list(turn.references) if self.referenced else [turn.context[-1].text]
        vectors = [Embed(self.encoder, text, self.pooling) for text in (response, *others)]
        return [*vectors, *self._likelihoods(turn, response, others)]

    def _likelihoods(self, turn: Sample, response: str, others: list[str]) -> list[Likelihood]:
        if self.mode == "released":
            texts = (response, *others) if self.referenced else (f"{others[0]} {response}", *others)
            return [Likelihood(self.model, text, start=False, end=True) for text in texts]
        if self.referenced:
            return [Likelihood(self.model, text) for text in (response, *others)]
        return [Likelihood(self.model, response, turn.context[-1:])]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        turns = self._turns(sample)
        if not turns:
            return nothing_to_judge(sample)
        size = len(answers) // len(turns)
        own = [answers[start : start + size] for start in range(0, len(answers), size)]
        vectors = 1 + (len(sample.references) if self.referenced else 1)
        am = math.fsum(_adequacy(one[:vectors]) for one in own) / len(own)
        tokens = [[TokenLogProbs.read(answer) for answer in one[vectors:]] for one in own]
        fm = math.fsum(map(self._fluency, tokens)) / len(own)
        parts = {"am": am, "fm": fm}
        if self.mode == "released":
            parts["am_sign"] = NEGATED if sample.response is None else 1.0
        cut = any(one.cut for some in tokens for one in some)
        return Score(self.combine(parts), parts, "turns truncated" if cut else "")

    def _fluency(self, texts: Sequence[TokenLogProbs]) -> float:
        if self.referenced:
            first, *others = (one.mean if _known(one) else 0.0 for one in texts)
            return max(_ratio(first, other) for other in others)
        if self.mode == "paper":
            return texts[0].mean
        joint, previous = texts
        return (_total(joint) - _total(previous)) / max(1, len(joint) - len(previous))

    def parts(self) -> tuple[Part, ...]:
        found = (
            Part("am", "cosine with the turn before, or with the nearest reference"),
            Part("fm", "mean log-probability of a token, or its ratio to that of a reference"),
        )
        if self.mode == "paper":
            return found
        return (*found, Part("am_sign", "-1 for whole dialogues, whose AM is taken negatively"))

    def scales(self) -> Mapping[str, CalibrationKind]:
        both: dict[str, CalibrationKind] = {"am": "floor", "fm": "floor"}
        return both if self.mode == "paper" else {**both, "am_sign": "unit"}

    def combine(self, scaled: Mapping[str, float]) -> float:
        return (scaled.get("am_sign", 1.0) * scaled["am"] + scaled["fm"]) / 2


def _adequacy(vectors: Sequence[Answer]) -> float:
    """Returns the highest cosine of the first vector with one of the others; 0 for a vector of
    zeros."""
    import numpy as np

    first, *others = (np.asarray(vector, dtype=np.float64) for vector in vectors)
    norms = [float(np.linalg.norm(first) * np.linalg.norm(other)) for other in others]
    return max(
        float(np.clip(first @ other / norm, -1.0, 1.0)) if norm else 0.0
        for other, norm in zip(others, norms, strict=True)
    )


def _known(tokens: TokenLogProbs) -> list[float]:
    """Drops a first token that nothing predicts."""
    return [value for value in tokens.log_probs if not math.isnan(value)]


def _total(tokens: TokenLogProbs) -> float:
    return math.fsum(_known(tokens))


def _ratio(first: float, second: float) -> float:
    """Returns the larger log-probability over the smaller: 1 where they are equal, near 0 where one
    is far less likely."""
    low = min(first, second)
    return max(first, second) / low if low else 1.0
