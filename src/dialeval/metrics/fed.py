"""`fed`: 18 qualities from what a user might say next (Mehri and Eskenazi, SIGDIAL 2020)

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
from dialeval.metrics.follow_ups import FedQuality, fed_qualities
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Layout, Likelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import Score, digest_of

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
