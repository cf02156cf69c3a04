"""`follow-up-contrast`: is praise a likelier next turn than complaint? (dialeval's own)

    contrast(h, r) = mean over positive f of l(f) - mean over negative f of l(f)
    l(f)           = 1/|f| * log P(f | h, r)              mean log-probability of a token of f
                     ... - 1/|f| * log P(f)               with relative=true: what the dialogue adds

FULL looks at complaints alone, and a small language model finds every follow-up likelier after a
short or an odd dialogue. The difference between praise and complaint cancels what they share.

It does well on FED, which had a part in the choice of the follow-ups, and poorly on sets that had
none: see docs/likelihood.md before trusting it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dialeval.errors import UsageError
from dialeval.metric import Metric, Part, bound
from dialeval.metrics.follow_ups import FollowUps, load_follow_ups
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Layout, Likelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import Score


@dataclass(frozen=True)
class FollowUpContrast(Metric):
    """Log-probability of praise minus that of complaints as the next turn."""

    name = "follow-up-contrast"
    levels = frozenset({"turn", "dialogue"})
    citation = "dialeval; follow-ups from Mehri and Eskenazi, SIGDIAL 2020"

    model: str = model_option("follow-ups", "the language model that is asked")
    layout: Layout = option("native", "how the dialogue is written down for the model")
    follow_ups: str = option("contrast", "a set of follow-ups by name, or a JSON file")
    relative: bool = option(False, "subtract what each follow-up gets after an empty dialogue")
    lookback: int = option(50, "how many turns are looked at", low=1)
    texts: FollowUps = bound()

    def __post_init__(self) -> None:
        found = load_follow_ups(self.follow_ups)
        if not (found.positive and found.negative):
            raise UsageError(
                "metric 'follow-up-contrast' needs positive and negative follow-ups;"
                f" {self.follow_ups!r} has only one kind"
            )
        self.bind(texts=found)

    def ask(self, sample: Sample) -> Sequence[Question]:
        dialogues = (
            [sample.turns[-self.lookback :], ()]
            if self.relative
            else [sample.turns[-self.lookback :]]
        )
        return [
            Likelihood(self.model, text=text, turns=turns, speaker="user", layout=self.layout)
            for turns in dialogues
            for text in self.texts.all
        ]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        found = [TokenLogProbs.read(answer) for answer in answers]
        values = [tokens.mean for tokens in found]
        if self.relative:
            size = len(self.texts.all)
            values = [
                after - alone for after, alone in zip(values[:size], values[size:], strict=True)
            ]
        split = len(self.texts.positive)
        praise = math.fsum(values[:split]) / split
        complaint = math.fsum(values[split:]) / (len(values) - split)
        parts = {"positive": praise, "negative": complaint}
        note = "turns truncated" if any(tokens.cut for tokens in found) else ""
        return Score(praise - complaint, parts, note)

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("positive", "mean log-probability of praise"),
            Part("negative", "mean log-probability of complaints"),
        )

    def signature_fields(self) -> Mapping[str, str]:
        return {"follow_ups": self.texts.identity}
