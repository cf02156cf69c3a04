"""`judge`: how would people rate this answer, from 1 to 5, and why?

    rating = 1 + 4 sigmoid(a z + c),    z = w . t

t is what several readers say of the answer, and products of that (`models/quality_stack`); w was
fitted on people's ratings of many systems on several data sets, and a, c bring z to the scale that
people know. The parts are the ratings of single aspects, each from 1 to 5: a low one is a reason
for a low rating.

    relevance     it does not fit what was said
    fluency       its language is broken, or another one
    engagement    it says nothing
    consistency   it contradicts what was said
    novelty       it repeats itself, or gives the other's words back
    politeness    it is rude

Relevance, fluency and engagement are learned from ratings, too; the others from dialogues,
sentences and graded answers alone, and their scale is the judge's own. `low` and `high` are the
interval that held nine of ten mean ratings of data sets that the judge had not seen.

A dialogue as a whole is rated by its turns, and by how much both speakers have to say
(`OF_DIALOGUE`); its aspects are means. An answer of more than 45 words is judged in windows
(`metrics/windows`): two thirds their mean and one third the worst of them.

An answer to nothing (no turn before it) gets no rating.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.metrics.mme import judged_turns, nothing_to_judge, system_turns
from dialeval.metrics.windows import by_answer, of_windows, unread, windowed, windows
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import ASPECTS, Answer, Assess, Assessment, Question
from dialeval.sample import Sample, Turn
from dialeval.scores import PartValue, Score
from dialeval.text import content_words, lower_words

REASONS = {
    "relevance": "does not fit what was said",
    "consistency": "contradicts what was said",
    "novelty": "repeats",
    "fluency": "broken language",
    "politeness": "rude",
    "engagement": "says nothing",
}
"""Aspect -> what is wrong where it is low, in the order in which reasons are given."""

WITH_TURN = ("consistency", "novelty")
"""Aspects whose reason names the turn that it is about."""

LOW = 2.5
"""A rating of an aspect below it is a reason."""


@dataclass(frozen=True)
class Term:
    """A feature of a whole dialogue: its weight, and what it is centred and divided by."""

    weight: float
    mean: float
    deviation: float


FAR = 2.0
"""A feature counts as no further from its mean than this many deviations: a chat of two turns has
few words."""

LEVEL = 2.901
OF_DIALOGUE: Mapping[str, Term] = {
    "mean of the turns": Term(0.131, 2.901, 0.317),
    "best turn": Term(0.051, 3.592, 0.412),
    "lowest novelty of a turn": Term(0.018, 3.854, 1.090),
    "log different words of the system": Term(0.060, 3.669, 0.422),
    "share of different words of the system": Term(0.114, 0.584, 0.153),
    "share of the system's turns that ask": Term(0.050, 0.341, 0.264),
    "log different words of the user": Term(0.083, 3.268, 0.647),
}
"""rating of a dialogue = LEVEL + sum of weight (x - mean) / deviation, from 1 to 5.

Fitted on 600 chats of ConvAI2 that a language model rated: `scripts/fit_judge_of_dialogues.py`."""

Quality = Literal[
    "overall", "relevance", "fluency", "engagement", "consistency", "novelty", "politeness"
]


@dataclass(frozen=True)
class JudgeMetric(Metric):
    """The rating that people would give, from 1 to 5, with the reasons for a low one."""

    name = "judge"
    version = 7
    levels = frozenset({"turn", "dialogue"})
    needs = frozenset({"context"})
    range = (1.0, 5.0)
    citation = "dialeval's own; docs/judge.md says what it learned from"

    model: str = model_option("judge", "the trained judge")
    quality: Quality = option("overall", "what is rated; the others stay parts")

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [
            assessed(window, self.model)
            for turn in judged_turns(sample, needs_context=True)
            for window in windowed(turn)
        ]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return nothing_to_judge(sample)
        found = [Assessment.read(answer) for answer in answers]
        cut = [windows(t.response or "") for t in judged_turns(sample, needs_context=True)]
        by_turn = by_answer(cut, found)
        of_turns = {
            aspect: [of_windows([one.ratings[place] for one in own]) for own in by_turn]
            for place, aspect in enumerate(ASPECTS)
        }
        ratings = {aspect: math.fsum(own) / len(own) for aspect, own in of_turns.items()}
        if sample.response is None:
            ratings["overall"] = of_dialogue(sample, of_turns["overall"], of_turns["novelty"])
        value, margin = ratings[self.quality], found[0].margin
        parts: dict[str, PartValue] = {
            **ratings,
            "low": max(1.0, value - margin),
            "high": min(5.0, value + margin),
            "doubt": found[0].doubt,
            "turns": tuple(of_turns[self.quality]),
            "windows": tuple(one.ratings[ASPECTS.index(self.quality)] for one in found),
        }
        note = "; ".join(reasons(ratings, sample)[:1]) if value < LOW else ""
        return Score(value, parts, note or unread(cut))

    def parts(self) -> tuple[Part, ...]:
        return (
            Part(
                "overall",
                "the rating that people would give",
                in_table=self.quality != "overall",  # there it is the score itself
            ),
            *(Part(aspect, f"low: {why}") for aspect, why in REASONS.items()),
            Part(
                "low", "lower end of the interval that holds 90 % of mean ratings", in_table=False
            ),
            Part("high", "upper end of that interval", in_table=False),
            Part(
                "doubt",
                "standard error of the difference of two systems, however many answers",
                in_table=False,
            ),
            Part("turns", "the rating of each turn that was judged", many=True),
            Part("windows", "the rating of each window of a long answer", many=True),
        )

    def models(self) -> Mapping[str, str]:
        return {"model": self.model}


def of_dialogue(sample: Sample, overall: Sequence[float], novelty: Sequence[float]) -> float:
    """Returns the rating of a whole dialogue, given those of its system's turns."""
    features = dialogue_features(sample, overall, novelty)
    terms = (
        term.weight * max(-FAR, min(FAR, (features[name] - term.mean) / term.deviation))
        for name, term in OF_DIALOGUE.items()
        if name in features
    )
    return min(5.0, max(1.0, LEVEL + math.fsum(terms)))


def dialogue_features(
    sample: Sample, overall: Sequence[float], novelty: Sequence[float]
) -> dict[str, float]:
    """Returns the features of `OF_DIALOGUE`; without a user, that of the user is missing."""
    own = set(system_turns(sample))
    said = [lower_words(sample.context[place].text) for place in sorted(own)]
    words = [word for turn in said for word in turn]
    heard = {
        word
        for place, turn in enumerate(sample.context)
        if place not in own
        for word in lower_words(turn.text)
    }
    asking = sum("?" in sample.context[place].text for place in own)
    features = {
        "mean of the turns": math.fsum(overall) / len(overall),
        "best turn": max(overall),
        "lowest novelty of a turn": min(novelty),
        "log different words of the system": math.log1p(len(set(words))),
        "share of different words of the system": len(set(words)) / max(1, len(words)),
        "share of the system's turns that ask": asking / len(own),
    }
    if heard:
        features["log different words of the user"] = math.log1p(len(heard))
    return features


def reasons(ratings: Mapping[str, PartValue], sample: Sample) -> list[str]:
    """Returns what is wrong with an answer, by the ratings of its aspects, the gravest first.

    A contradiction or a repetition names the turn that has most words in common with the answer.
    """
    low = [
        (rating, aspect)
        for aspect in REASONS
        if isinstance(rating := ratings.get(aspect), float) and rating < LOW
    ]
    turn = _nearest_turn(sample)
    return [
        f"{REASONS[aspect]} (turn {turn})" if turn and aspect in WITH_TURN else REASONS[aspect]
        for _, aspect in sorted(low)
    ]


def _nearest_turn(sample: Sample) -> int | None:
    """The number of the turn, the first being 1, with most content words of the response; None
    where no turn has two of them."""
    said = content_words(sample.response or "")
    shared = [len(said & content_words(turn.text)) for turn in sample.context]
    most = max(shared, default=0)
    # Of turns that share equally many, the last one is what the answer is about.
    return len(shared) - shared[::-1].index(most) if most >= 2 else None


def assessed(sample: Sample, model: str) -> Assess:
    """Returns the question about the response of a sample. Turns of one speaker in a row become
    one; where nobody is named, speakers take turns."""
    turns = [turn for turn in sample.context if turn.text.strip()]
    named = bool(turns) and all(turn.speaker for turn in turns)
    if not named:
        said = [
            Turn(turn.text, "me" if (len(turns) - place) % 2 == 0 else "you")
            for place, turn in enumerate(turns)
        ]
        return Assess(model, tuple(said), sample.response or "")
    mine = _own_names({turn.speaker for turn in turns}, turns[-1].speaker)
    joined: list[Turn] = []
    for turn in turns:
        who = "me" if turn.speaker in mine else "you"
        if joined and joined[-1].speaker == who:
            joined[-1] = Turn(f"{joined[-1].text} {turn.text}", who)
        else:
            joined.append(Turn(turn.text, who))
    return Assess(model, tuple(joined), sample.response or "")


def _own_names(names: set[str], last: str) -> set[str]:
    """Who responds: the system, or everybody but the one who spoke last."""
    return {"system"} if names & {"user", "system"} else names - {last}
