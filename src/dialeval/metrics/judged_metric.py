"""What the sub-metrics of MME-CRS share: a response is judged by itself or after its turns, and a
dialogue as a whole is the mean over the turns of its system."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dialeval.metric import Metric
from dialeval.question import Answer, Judgement, Question
from dialeval.sample import Sample
from dialeval.scores import Score

MME_CITATION = (
    "Zhang, Hu, Yu, Wang, Han, Liu, Yuan: MME-CRS: Multi-Metric Evaluation Based on Correlation"
    " Re-Scaling for Evaluating Open-Domain Dialogue. 2022"
)


@dataclass(frozen=True)
class JudgedMetric(Metric):
    """One number between 0 and 1 per judged turn, from a model that was trained to give it."""

    levels = frozenset({"turn", "dialogue"})
    range = (0.0, 1.0)
    citation = MME_CITATION

    @abstractmethod
    def question(self, turn: Sample) -> Question:
        """What is asked about one response."""

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [self.question(turn) for turn in judged_turns(sample, self.needs_context)]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return nothing_to_judge(sample)
        found = Judgement.over([Judgement.read(answer) for answer in answers])
        return Score(found.value, note=found.note)

    @property
    def needs_context(self) -> bool:
        return "context" in self.needs


def judged_turns(sample: Sample, needs_context: bool = False) -> list[Sample]:
    """The responses in a sample: its own, or in a whole dialogue each turn of the system with the
    turns before it. Blank ones are left out, and with `needs_context` those that nothing precedes.
    """
    if sample.response is not None:
        found = [sample]
    else:
        found = [
            replace(sample, context=sample.context[:place], response=sample.context[place].text)
            for place in system_turns(sample)
        ]
    return [
        turn
        for turn in found
        if (turn.response or "").strip() and (turn.context or not needs_context)
    ]


def system_turns(sample: Sample) -> list[int]:
    """Places, from 0, of what the system said in a whole dialogue; all turns where nobody is named
    `system`."""
    named = [place for place, turn in enumerate(sample.context) if turn.speaker == "system"]
    return named or list(range(len(sample.context)))


def nothing_to_judge(sample: Sample) -> Score:
    """Why `judged_turns` found nothing."""
    if sample.response is not None:
        return Score.missing("no context" if sample.response.strip() else "empty response")
    return Score.missing("no turn to judge")
