"""The metrics of MME-CRS (Zhang et al., 2022, section 3), one trained model each: four judges, and
`mme-specificity`, which asks a masked language model.

c are the turns so far, r is the response. `dialeval train NAME` trains a judge. A dialogue as a
whole scores the mean over its system's turns; `mme-relevance` and `mme-topic` leave out the turns
that nothing precedes. Judges read an answer of more than 100 words in windows (`metrics/windows`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.metrics.windows import LONG, Windows, by_answer, judged, unread, windowed, windows
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Judge, MaskedLikelihood, Question, TokenLogProbs
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, Score

MME_CITATION = (
    "Zhang, Hu, Yu, Wang, Han, Liu, Yuan: MME-CRS: Multi-Metric Evaluation Based on Correlation"
    " Re-Scaling for Evaluating Open-Domain Dialogue. 2022"
)

JUDGED_WORDS = 35
"""Words in a window of a long answer: the judges read 50 word-pieces."""

MASKED_WORDS = 200
"""The same for `mme-specificity:tokens=0`, whose models read 512 word-pieces."""


@dataclass(frozen=True)
class JudgedMetric(Metric):
    """One number between 0 and 1 per judged turn, from a model that was trained to give it."""

    version = 2
    levels = frozenset({"turn", "dialogue"})
    range = (0.0, 1.0)
    citation = MME_CITATION

    model: str = option("", "the trained judge")

    def question(self, turn: Sample) -> Judge:
        """Returns what is asked about one response: with its turns only where the metric needs
        them."""
        context = tuple(said.text for said in turn.context) if self.needs_context else ()
        return Judge(self.model, context, turn.response or "")

    def questions(self, turn: Sample) -> list[Judge]:
        """Returns what is asked about one response, one question a window."""
        return [self.question(window) for window in windowed(turn, JUDGED_WORDS, LONG)]

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [question for turn in self.responses(sample) for question in self.questions(turn)]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return nothing_to_judge(sample)
        return judged(windows_of(self.responses(sample)), answers)

    def responses(self, sample: Sample) -> list[Sample]:
        """Returns the responses that are judged, with the turns before them."""
        return judged_turns(sample, self.needs_context)

    @property
    def needs_context(self) -> bool:
        return "context" in self.needs


def windows_of(turns: Sequence[Sample]) -> list[Windows]:
    """Returns the windows in which judges read these responses."""
    return [windows(turn.response or "", JUDGED_WORDS, LONG) for turn in turns]


def judged_turns(sample: Sample, needs_context: bool = False) -> list[Sample]:
    """Returns the responses in a sample: its own, or in a whole dialogue each turn of the system
    with the turns before it. Blank ones are left out, and with `needs_context` those that nothing
    precedes.
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
    """Returns why `judged_turns` found nothing."""
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
    """How engaging the response is, by a judge that learned from rated answers.

        s = sigmoid( MLP( mean over tokens of h_t ) )      h: states of an encoder, of r alone

    (section 3.4) The shipped judge learned which of two equally long answers of one source was
    rated more engaging, mostly by a language model; its card names the data. The paper learns from
    conversations of ConvAI 2017, whose partners said how much they liked them (`train
    mme-engagement --target label`).
    """

    name = "mme-engagement"
    version = 3

    model: str = model_option("mme-engagement", "the trained judge")


Kind = Literal["nll", "nce", "ppl"]
Scale = Literal["quartile", "percentile", "minmax"]


@dataclass(frozen=True)
class MmeSpecificity(Metric):
    """How unexpected the words of the response are, to a masked language model.

    `mme-specificity`: does it say something, or what anybody would say? (Zhang et al., 2022)

        nll = - sum over i of log P(w_i | all other pieces)     n word-pieces, each guessed in turn
        nce = - nll / n                                         a mean log-probability
        ppl = exp(-nce)

    by a masked language model that learned what people answer (`dialeval train mme-specificity`).
    nll and ppl are higher the rarer the words are, and nll the more of them there are; nce is
    higher the more expected they are. Signs are as published: MME-CRS weighs each by how it agrees
    with people. A higher value is a better one for nll by USL-H (Phy et al., 2020), which this is
    taken from.

    Each is put on a scale from 0 to 1 that is fitted on the run; the raw values stay in the parts:

        scale=quartile     from the 25th to the 75th percentile, and clipped there: half of all
                           responses get 0 or 1, as in the papers
        scale=percentile   from the 1st to the 99th percentile, and clipped there (the default)
        scale=minmax       from the smallest to the largest value

    A dialogue as a whole is the mean over its system's turns.

    masks=0 hides the pieces one by one, as USL-H does. masks=3, the default, hides every third in
    the same pass: three passes whatever the length, a quarter of the time, and nearly the same
    order of responses (200 of DailyDialog: Spearman .996 with masks=0 for nll, .986 for nce and
    ppl). `--preset paper` takes masks=0 and scale=quartile. The first 25 pieces are read, as in
    USL-H. tokens=0 reads all; of a response of more than 200 words, which no model reads at once,
    the pieces of its windows are put together.
    """

    name = "mme-specificity"
    version = 3
    levels = frozenset({"turn", "dialogue"})
    citation = MME_CITATION

    model: str = model_option("mme-specificity", "the masked language model that is asked")
    kind: Kind = option("nll", "the sum, its mean per piece (sign changed), or the perplexity")
    scale: Scale = option(
        "percentile",
        "range that becomes 0 to 1: 25th to 75th percentile, 1st to 99th, or lowest to highest",
        moves_score=False,  # the signature names the fitted scale and its kind
    )
    masks: int = option(3, "hide every N-th piece together; 0: one by one", low=0)
    tokens: int = option(25, "number of word-pieces of a response to read; 0: all", low=0)

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [question for turn in judged_turns(sample) for question in self.questions(turn)]

    def questions(self, turn: Sample) -> list[MaskedLikelihood]:
        """Returns what is asked about one response, one question a window."""
        return [
            MaskedLikelihood(self.model, window, self.masks, self.tokens)
            for window in self.windows_of(turn).read
        ]

    def windows_of(self, turn: Sample) -> Windows:
        """Returns the response as a whole, but for one that no model reads at once."""
        said = turn.response or ""
        return Windows((said,)) if self.tokens else windows(said, MASKED_WORDS, MASKED_WORDS)

    def read(self, turns: Sequence[Sample], answers: Sequence[Answer]) -> list[TokenLogProbs]:
        """Returns the pieces of each response, those of its windows behind each other."""
        cut = [self.windows_of(turn) for turn in turns]
        return [joined(own) for own in by_answer(cut, map(TokenLogProbs.read, answers))]

    def remark(self, turns: Sequence[Sample], read: Sequence[TokenLogProbs]) -> str:
        """Returns the note for what was not read of responses."""
        if any(is_cut(tokens, self.tokens) for tokens in read):
            return "response truncated"
        return unread([self.windows_of(turn) for turn in turns])

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return nothing_to_judge(sample)
        judged = judged_turns(sample)
        readable = [tokens for tokens in self.read(judged, answers) if len(tokens)]
        if not readable:
            return Score.missing("no word-pieces")
        turns = [measures(tokens) for tokens in readable]
        parts = {name: math.fsum(turn[name] for turn in turns) / len(turns) for name in turns[0]}
        return Score(parts[self.kind], parts, self.remark(judged, readable))

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


def joined(windows: Sequence[TokenLogProbs]) -> TokenLogProbs:
    """Returns the pieces of several windows as those of one text; where they stand in it is not
    known."""
    if len(windows) == 1:
        return windows[0]
    log_probs = tuple(value for tokens in windows for value in tokens.log_probs)
    return TokenLogProbs(log_probs, (), sum(tokens.cut for tokens in windows))


def is_cut(tokens: TokenLogProbs, wanted: int) -> bool:
    """Returns whether the model could not read what it was asked to. The first `wanted` pieces are
    what the metric is defined on: a response that has more has lost nothing."""
    return bool(tokens.cut) and len(tokens) != wanted


def measures(tokens: TokenLogProbs) -> dict[str, float]:
    """Returns the three measures of one response."""
    total = math.fsum(tokens.log_probs)
    mean = total / len(tokens)
    return {"nll": -total, "nce": mean, "ppl": math.exp(-mean)}
