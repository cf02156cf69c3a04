"""`consistency`: does it contradict itself? (Pang et al., ACL 2020, section 3.4)

    s = 1 - mean over i of  P(contradiction | u_i, r)

r is the response, u_i what the same speaker said before, and an inference model says how likely it
is that r contradicts u_i. With a probe the speaker is asked the same thing twice, in other words:
query, answer, paraphrased query, response.

pairs=mean  all earlier turns of the speaker: the paper
pairs=last  only the last of them: the released code, and the numbers of the paper's Table 8
pairs=max   the turn that the response contradicts most: one contradiction is enough

A group of answers without a response of its own (the diversity files of HolisticEval) is judged
with groups=true: each answer against the first. A probe puts the question again in the same
conversation instead, and needs no groups.

Where nobody is named, speakers take turns. The parts say, per earlier turn, how likely the
contradiction is, and which turn of the context it is (the first is 1), so that a reader finds both
sides of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Need, Part
from dialeval.metrics.diversity import HOLISTIC_EVAL
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import NLI_LABELS, Answer, Inference, Question
from dialeval.sample import Sample
from dialeval.scores import PartValue, Score


@dataclass(frozen=True)
class Consistency(Metric):
    """One minus the probability that the response contradicts what the speaker said before."""

    name = "consistency"
    levels = frozenset({"turn", "dialogue"})
    range = (0.0, 1.0)
    citation = HOLISTIC_EVAL

    model: str = model_option("nli", "the inference model that is asked")
    pairs: Literal["mean", "last", "max"] = option(
        "mean", "earlier turns to compare with: all (mean), the last, or the most contradicted"
    )
    lowercase: bool = option(False, "give the model all text in lower case (released code)")
    groups: bool = option(False, "also judge groups of answers, each answer against the first")

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset() if self.groups else frozenset({"context"})

    def obstacle(self, sample: Sample) -> str:
        is_group = self.groups and len(sample.variants) > 1
        if sample.response is None and not is_group:
            return (
                "a group of answers, judged only with groups=true"
                if sample.variants
                else "no response"
            )
        return super().obstacle(sample)

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [
            Inference(self.model, self._read(premise), self._read(hypothesis))
            for _, premise, hypothesis in compared(sample)
        ]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        places = [place for place, _, _ in compared(sample)]
        if not places:
            empty = sample.response is not None and not sample.response.strip()
            return Score.missing("empty response" if empty else "nothing said before")
        contradictions = [float(answer[0]) for answer in answers]
        worst = max(range(len(places)), key=lambda i: contradictions[i])
        parts: dict[str, PartValue] = {
            "contradictions": tuple(contradictions),
            "turns": tuple(float(place) for place in places),
            "worst": contradictions[worst],
            "worst-turn": float(places[worst]),
        }
        match self.pairs:
            case "mean":
                found = math.fsum(contradictions) / len(contradictions)
            case "last":
                found = contradictions[-1]
            case "max":
                found = contradictions[worst]
        cut = any(len(answer) > len(NLI_LABELS) for answer in answers)
        return Score(min(1.0, max(0.0, 1.0 - found)), parts, "truncated" if cut else "")

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("contradictions", "per earlier turn, the probability of contradiction", many=True),
            Part("turns", "which turns of the context (or variants) these are, from 1", many=True),
            Part("worst", "the highest of these probabilities"),
            Part("worst-turn", "the turn of the context (or variant) that it belongs to, from 1"),
        )

    def _read(self, text: str) -> str:
        return text.lower() if self.lowercase else text


def compared(sample: Sample) -> list[tuple[int, str, str]]:
    """(place from 1, premise, hypothesis) for everything that could be contradicted, in order."""
    if sample.response is None:
        first, *others = (variant.response for variant in sample.variants)
        pairs = [(place, first, other) for place, other in enumerate(others, 2)]
    else:
        pairs = [
            (place, sample.context[place - 1].text, sample.response) for place in own_turns(sample)
        ]
    return [(i, one, other) for i, one, other in pairs if one.strip() and other.strip()]


def own_turns(sample: Sample) -> list[int]:
    """Places, from 1, of the earlier turns of the speaker of the response.

    By name where every turn has one: those of the system or, where the speakers are called
    otherwise, of everybody but the one who spoke last. Else by parity: every second turn, backwards
    from the response.
    """
    turns = sample.context
    if turns and all(turn.speaker for turn in turns):
        names = {turn.speaker for turn in turns}
        others = {"system"} if names & {"user", "system"} else names - {turns[-1].speaker}
        return [place for place, turn in enumerate(turns, 1) if turn.speaker in others]
    return [place for place in range(1, len(turns) + 1) if (len(turns) + 1 - place) % 2 == 0]
