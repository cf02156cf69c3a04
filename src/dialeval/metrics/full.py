"""Likelihood of the user's next turn: `full`, `follow-up-contrast` and `fed`.

`full` looks at complaints, `follow-up-contrast` at praise as well; `fed` tells 18 qualities from
what a user might say next (Mehri and Eskenazi, SIGDIAL 2020)

    quality(h, r) = sum over positive p of D(h + r, p) - sum over negative n of D(h + r, n)

D is the log-likelihood of a follow-up after the dialogue. Each quality has its own follow-ups: 8
qualities of a turn, 10 of a dialogue, 63 different follow-ups in all. Some qualities have negative
ones only. `overall` is the mean of all 18, as DialEvalMetrics computes it.

mode=paper     the formula above
mode=released  the authors' code: D is minus the mean loss over the *whole* text, history and
               response included, each side is a mean (0 if empty), and turns are joined by the
               end-of-text token. Long dialogues dilute the follow-up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dialeval.errors import UsageError
from dialeval.metric import Metric, Part, bound
from dialeval.metrics.follow_ups import FedQuality, FollowUps, fed_qualities, load_follow_ups
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Layout, Likelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import Score, digest_of

RELEASED_LOOKBACK = 50


@dataclass(frozen=True)
class Full(Metric):
    """Unlikelihood of complaints as the next turn (FULL).

    How unlikely is it that the user complains next? (De Bruyn et al., COLING 2022)

        FULL(h, r) = - sum over follow-ups f of  log P(f | h, r)                        (Eq. 1)

    h is the dialogue so far, r the response, and f one of five things that people say after a bad
    answer, such as "What are you trying to say?". The paper adds up log-likelihoods and reports
    positive correlations; with true log-likelihoods that needs the minus, so that higher is better.

    mode=paper     the equation: total log-likelihood of each of the five follow-ups
    mode=released  the authors' package 0.0.3: the mean *perplexity*, exp(mean negative
                   log-likelihood with the end token), of four follow-ups, because a missing comma
                   joins two of them; the dialogue is cut on the right, so a long one loses the
                   response itself

    If the dialogue as a whole is judged, there is no r, and h holds all of its turns.
    """

    name = "full"
    levels = frozenset({"turn", "dialogue"})
    range = (0.0, math.inf)
    citation = (
        "De Bruyn, Lotfi, Buhmann, Daelemans: Open-Domain Dialog Evaluation using Follow-Ups"
        " Likelihood. COLING 2022"
    )

    model: str = model_option("follow-ups", "the language model that is asked")
    mode: Literal["paper", "released"] = option("paper", "Eq. 1, or the authors' package")
    layout: Layout = option("auto", "how the dialogue is written down for the model")
    follow_ups: str = option("full", "a set of follow-ups by name, or a file")
    lookback: int = option(RELEASED_LOOKBACK, "number of turns that the model reads", low=1)
    texts: FollowUps = bound()

    def __post_init__(self) -> None:
        if self.mode == "released" and self.layout != "auto":
            raise UsageError(
                "metric 'full': mode=released writes dialogues with tabs; leave out layout"
            )
        released = self.mode == "released" and self.follow_ups == "full"
        name = "full-released" if released else self.follow_ups
        found = load_follow_ups(name)
        if not found.negative:
            raise UsageError(
                f"metric 'full' needs negative follow-ups; {self.follow_ups!r} has none"
            )
        self.bind(texts=found)

    def ask(self, sample: Sample) -> Sequence[Question]:
        released = self.mode == "released"
        # The package keeps 50 turns before the response, and then the response.
        kept = self.lookback + (sample.response is not None)
        return [
            Likelihood(
                self.model,
                text=text,
                turns=sample.turns[-kept:],
                speaker="user",
                layout="tabs" if released else self.layout,
                truncate="right" if released else "left",
                end=released,
            )
            for text in self.texts.negative
        ]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        found = [TokenLogProbs.read(answer) for answer in answers]
        if self.mode == "paper":
            values = [-math.fsum(tokens.log_probs) for tokens in found]
            value = math.fsum(values)
        else:
            values = [math.exp(-tokens.mean) for tokens in found]
            value = math.fsum(values) / len(values)
        parts = dict(zip(self.texts.negative, values, strict=True))
        return Score(value, parts, "turns truncated" if any(tokens.cut for tokens in found) else "")

    def parts(self) -> tuple[Part, ...]:
        what = "perplexity" if self.mode == "released" else "negative log-likelihood"
        return tuple(Part(text, f"{what} as the next turn") for text in self.texts.negative)

    def signature_fields(self) -> Mapping[str, str]:
        layout = "tabs" if self.mode == "released" else self.layout
        return {"layout": layout, "follow_ups": self.texts.identity}


@dataclass(frozen=True)
class FollowUpContrast(Metric):
    """Log-probability of praise minus that of complaints as the next turn.

    `follow-up-contrast`: is praise a likelier next turn than complaint? (dialeval's own)

        contrast(h, r) = mean over positive f of l(f) - mean over negative f of l(f)
        l(f)           = 1/|f| * log P(f | h, r)        mean log-probability of a token of f
                         ... - 1/|f| * log P(f)         with relative=true: the dialogue's share

    FULL looks at complaints alone, and a small language model finds every follow-up likelier after
    a short or an odd dialogue. The difference between praise and complaint cancels what they share.

    It does well on FED, which had a part in the choice of the follow-ups, and poorly on sets that
    had none: see docs/likelihood.md before trusting it.
    """

    name = "follow-up-contrast"
    levels = frozenset({"turn", "dialogue"})
    citation = "dialeval; follow-ups from Mehri and Eskenazi, SIGDIAL 2020"

    model: str = model_option("follow-ups", "the language model that is asked")
    layout: Layout = option("native", "how the dialogue is written down for the model")
    follow_ups: str = option("contrast", "a set of follow-ups by name, or a JSON file")
    relative: bool = option(
        False, "subtract the likelihood of each follow-up after an empty dialogue"
    )
    lookback: int = option(50, "number of turns that the model reads", low=1)
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


Quality = Literal[
    "overall", "interesting", "engaging", "specific", "relevant", "correct",
    "semantically appropriate", "understandable", "fluent", "coherent", "error recovery",
    "consistent", "diverse", "depth", "likeable", "understand", "flexible", "informative",
    "inquisitive",
]  # fmt: skip


@dataclass(frozen=True)
class Fed(Metric):
    """Likelihood of praise and complaints about 18 qualities as the next turn (FED)."""

    name = "fed"
    levels = frozenset({"turn", "dialogue"})
    citation = (
        "Mehri, Eskenazi: Unsupervised Evaluation of Interactive Dialog with DialoGPT. SIGDIAL 2020"
    )

    model: str = model_option("dialogue-lm", "the language model that is asked")
    mode: Literal["paper", "released"] = option("paper", "the paper's formula, or the code's")
    quality: Quality = option("overall", "the quality that gives the score")
    layout: Layout = option("auto", "how the dialogue is written down for the model")
    qualities: tuple[FedQuality, ...] = bound()

    def __post_init__(self) -> None:
        if self.mode == "released" and self.layout != "auto":
            raise UsageError(
                "metric 'fed': mode=released joins turns by the end-of-text token; leave out layout"
            )
        self.bind(qualities=fed_qualities())

    def ask(self, sample: Sample) -> Sequence[Question]:
        if self.mode == "paper":
            return [
                Likelihood(self.model, text, sample.turns, speaker="user", layout=self.layout)
                for text in self._texts()
            ]
        # The code writes single spaces around the end-of-text token.
        turns = tuple(replace(turn, text=f" {turn.text} ") for turn in sample.turns)
        return [
            Likelihood(self.model, f" {text}", turns, speaker="user", layout="eos", whole=True)
            for text in self._texts()
        ]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        found = [TokenLogProbs.read(answer) for answer in answers]
        totals = [t.mean if self.mode == "released" else math.fsum(t.log_probs) for t in found]
        likelihood = dict(zip(self._texts(), totals, strict=True))
        parts = {
            quality.name: self._side(quality.positive, likelihood)
            - self._side(quality.negative, likelihood)
            for quality in self.qualities
        }
        overall = math.fsum(parts.values()) / len(parts)
        value = overall if self.quality == "overall" else parts[self.quality]
        return Score(value, parts, "turns truncated" if any(tokens.cut for tokens in found) else "")

    def _side(self, texts: Sequence[str], likelihood: Mapping[str, float]) -> float:
        total = math.fsum(likelihood[text] for text in texts)
        return total / max(1, len(texts)) if self.mode == "released" else total

    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(q.name, f"quality of the {q.level}") for q in self.qualities)

    def signature_fields(self) -> Mapping[str, str]:
        layout = "eos" if self.mode == "released" else self.layout
        sides = [(q.name, q.positive, q.negative) for q in self.qualities]
        return {"layout": layout, "follow_ups": f"fed@{digest_of(sides)}"}

    def _texts(self) -> tuple[str, ...]:
        """Returns every follow-up once, in the order of the qualities."""
        texts = (text for q in self.qualities for text in (*q.positive, *q.negative))
        return tuple(dict.fromkeys(texts))
