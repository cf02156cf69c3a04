"""The four judges of MME-CRS (Zhang et al., 2022, sections 3.1 to 3.4), one trained model each.

c are the turns so far, r is the response. `dialeval train NAME` trains a judge. A dialogue as a
whole scores the mean over its system's turns; `mme-relevance` and `mme-topic` leave out the turns
that nothing precedes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dialeval.metric import Metric
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Judge, Judgement, Question
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

    model: str = option("", "the trained judge")

    def question(self, turn: Sample) -> Judge:
        """What is asked about one response: with its turns only where the metric needs them."""
        context = tuple(said.text for said in turn.context) if self.needs_context else ()
        return Judge(self.model, context, turn.response or "")

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


@dataclass(frozen=True)
class MmeFluency(JudgedMetric):
    """Probability that the response is fluent, by a judge that learned from broken ones.

        s = P(fluent | r) = sigmoid( w . max over tokens of h_t )      h: states of an encoder

    (section 3.1) The encoder was trained to tell responses of people from broken ones: words
    shuffled, dropped, repeated. USL-H (Phy et al., 2020) calls it valid utterance prediction. It
    does not see the context.
    """

    name = "mme-fluency"

    model: str = model_option("mme-fluency", "the trained judge")


@dataclass(frozen=True)
class MmeRelevance(JudgedMetric):
    """Probability that the response answers these turns.

        s = P(next | c, r) = sigmoid( a cos(v_c, v_r) + b )             v: mean states of an encoder
        s = P(next | c, r) = sigmoid( w . max over tokens of h_t )      h: states of an encoder

    (section 3.2) The judge was trained to tell the response that was given from another one. The
    first line is the shipped judge, which reads turns and response apart; the second is the
    paper's, which reads them together. USL-H (Phy et al., 2020) calls it next utterance prediction.
    """

    name = "mme-relevance"
    needs = frozenset({"context"})

    model: str = model_option("mme-relevance", "the trained judge")


@dataclass(frozen=True)
class MmeTopic(JudgedMetric):
    """Fit of the response's keywords to those of the context, by a graph over ConceptNet.

        s = sigmoid( MLP( mean over the nodes of a graph attention network ) )

    (section 3.3) The nodes are keywords of the last turns and of the response, joined by how near
    they are in ConceptNet: the topic graph of GRADE (Huang et al., 2020) without its branch that
    reads the text. The judge learned to rank the response that was given before another one. A
    response without keywords is judged too, by what the context has.
    """

    name = "mme-topic"
    needs = frozenset({"context"})

    model: str = model_option("mme-topic", "the trained judge")


@dataclass(frozen=True)
class MmeEngagement(JudgedMetric):
    """How engaging the response is, by a judge that learned from partners' ratings.

        s = sigmoid( MLP( mean over tokens of h_t ) )      h: states of an encoder, of r alone

    (section 3.4) It learned from conversations whose partners said how much they liked them, a
    number from 0 to 1. The paper learns from ConvAI 2017; the card of the embedded judge names its
    data.
    """

    name = "mme-engagement"

    model: str = model_option("mme-engagement", "the trained judge")
