"""Judges that learned from a corpus, without ratings of overall quality: `grade`, `deb`,
`maude`, `dyna-eval`, `predictive-engage`, `flow-score`.

FULL (De Bruyn et al., 2022, Table 2) and DialEvalMetrics (Yeh et al., 2021) compare with them. The
authors tuned BERT or read it whole; `dialeval train NAME` trains small heads on the frozen sentence
vectors of any encoder (`models/sentence_head.py`, `models/topic_graph.py`), so that their numbers
are not the published ones. Name your own judge: -m maude:model=DIR. c are the turns so far, r is
the response. A dialogue as a whole scores the mean over its system's turns that something precedes;
`dyna-eval` reads it whole.

`flow-score`: does the dialogue go on as its flow foretells? (Li et al., ACL Findings 2021)

    I_k = C_k - C_k-1            what utterance k changes: C_k represents the dialogue up to k
    I'_k = C'_k - C_k-1          what was foretold: C'_k = flow(C_1 ... C_k-1)
    x_k = cos(I_k, I'_k) min(|I_k|, |I'_k|)^2 / (|I_k| |I'_k|)
    FlowScore = 2 ^ ( - mean over k of ln((x_k + 1) / 2) )

k runs over what the speaker of the response said, beginning with the fourth utterance: the second
answer where the user starts, as the released code counts. The logarithm is natural and the base is
2, as in the released code. 1 is a dialogue that goes as foretold, and higher is worse, so that the
metric is minus the FlowScore, as in DialEvalMetrics.

In DialoFlow, C is a state of GPT-2 that was trained on Reddit. Here C_k is the sum of the frozen
sentence vectors of the first k utterances, so that I_k is the vector of utterance k, and an LSTM
foretells it. A dialogue of fewer than four utterances has no score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dialeval.metrics.mme import JudgedMetric, nothing_to_judge, system_turns
from dialeval.model_store.presets import model_option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score


@dataclass(frozen=True)
class Grade(JudgedMetric):
    """Fit of the response, by its text and by a graph of the topics of both sides.

        s = sigmoid( MLP [ v_text ; v_topic ] )
        v_text  = ELU( W [ c ; r ; |c - r| ; c * r ] )      c, r: sentence vectors of the last turns
        v_topic = ELU( U mean over the nodes of a graph attention network )

    (section 3) The graph is that of `mme-topic`: keywords of context and response, joined by their
    distance in ConceptNet. v_text is the pooled state of BERT in the paper. The judge learned to
    rank the response that was given before a similar one, by a margin of .1.
    """

    name = "grade"
    needs = frozenset({"context"})
    citation = (
        "Huang, Ye, Qin, Lin, Liang: GRADE: Automatic Graph-Enhanced Coherence Metric for"
        " Evaluating Open-Domain Dialogue Systems. EMNLP 2020"
    )

    model: str = model_option("grade", "the trained judge")


@dataclass(frozen=True)
class Deb(JudgedMetric):
    """Probability that the response answers these turns, by a judge that saw wrong look-alikes.

        s = P(next | c, r) = sigmoid( MLP [ c ; r ; |c - r| ; c * r ] )     c, r: sentence vectors

    DEB (section 5) is BERT with next sentence prediction, tuned on DailyDialog++: right answers
    against random ones and against adversarial ones, which people wrote so that they share words
    with the context and answer something else.
    """

    name = "deb"
    needs = frozenset({"context"})
    citation = (
        "Sai, Mohankumar, Arora, Khapra: Improving Dialog Evaluation with a Multi-reference"
        " Adversarial Dataset and Large Scale Pretraining. TACL 2020"
    )

    model: str = model_option("deb", "the trained judge")


@dataclass(frozen=True)
class Maude(JudgedMetric):
    """Probability that the response is what people would say next, and not a broken or random one.

        p_i = P u_i      the turns' vectors, projected      c = W max over i of biLSTM(p_1 ... p_n)
        s = sigmoid( MLP [ c ; r' ; |c - r'| ; c * r' ] )      r' = P r          (Eq. 3 to 5)

    The judge learned by noise contrastive estimation: the response that was given, against the same
    one with its words dropped, shuffled or repeated, and against random utterances. The paper has
    back-translations and responses of models as well, which need a translator and chatbots.
    """

    name = "maude"
    needs = frozenset({"context"})
    citation = (
        "Sinha, Parthasarathi, Wang, Lowe, Hamilton, Pineau: Learning an Unreferenced Metric for"
        " Online Dialogue Evaluation. ACL 2020"
    )

    model: str = model_option("maude", "the trained judge")


@dataclass(frozen=True)
class DynaEval(JudgedMetric):
    """Probability that the dialogue goes as one of people, and was not put out of joint.

        a_ij = softmax over j of h_i . W_e h_j        h = biLSTM(u_1 ... u_n)       |i - j| <= 4
        g1_i = relu( sum over j of a_ij / c_i,r(ij) W_r(ij) h_j  +  a_ii W_0 h_i )
        g2_i = relu( mean over j of W_1 g1_j  +  W_2 g1_i )
        s = sigmoid( w . mean over i of [ h_i ; g2_i ] )

    u are the sentence vectors of all turns and the response, r(ij) one of eight relations: the
    speakers of both turns, and which is later. The judge learned whole dialogues against the same
    ones with an utterance of another, and with what one speaker said in another order. A dialogue
    is read whole, a response with all turns before it. Speakers are taken to alternate. The paper
    trains the sentence encoder, too, and its judge ranks by a margin.
    """

    name = "dyna-eval"
    needs = frozenset({"context"})
    citation = (
        "Zhang, Chen, D'Haro, Zhang, Friedrichs, Lee, Li: DynaEval: Unifying Turn and Dialogue"
        " Level Evaluation. ACL 2021"
    )

    model: str = model_option("dyna-eval", "the trained judge")

    def responses(self, sample: Sample) -> list[Sample]:
        said = tuple(turn for turn in sample.turns if turn.text.strip())
        if len(said) < 2 or not sample.turns[-1].text.strip():
            return []
        return [replace(sample, context=said[:-1], response=said[-1].text)]


@dataclass(frozen=True)
class PredictiveEngage(JudgedMetric):
    """Probability that the response is engaging, by a judge that learned from rated conversations.

        s = P(engaging | q, r) = softmax( MLP( (q + r) / 2 ) )      q: vector of the last turn

    (section 5) The hidden layers have 64, 32 and 8 units with tanh. The judge learned from
    utterances of conversations that partners rated, 3 of 5 or higher being engaging. The paper adds
    the score to that of RUBER; here it stands alone, as in DialEvalMetrics.
    """

    name = "predictive-engage"
    needs = frozenset({"context"})
    citation = (
        "Ghazarian, Weischedel, Galstyan, Peng: Predictive Engagement: An Efficient Metric for"
        " Automatic Evaluation of Open-Domain Dialogue Systems. AAAI 2020"
    )

    model: str = model_option("predictive-engage", "the trained judge")


FEWEST = 3
"""Turns before the first response that counts."""


@dataclass(frozen=True)
class FlowScore(JudgedMetric):
    """Minus the FlowScore: how well what was said could be foretold from the turns before it."""

    name = "flow-score"
    version = 1
    range = (-math.inf, -1.0)
    needs = frozenset({"context"})
    citation = (
        "Li, Zhang, Fei, Feng, Zhou: Conversations Are Not Flat: Modeling the Dynamic Information"
        " Flow across Dialogue Utterances. ACL 2021"
    )

    model: str = model_option("flow-score", "the trained flow")

    def responses(self, sample: Sample) -> list[Sample]:
        """Of a whole dialogue, what was said up to the system's last turn."""
        turns = sample.turns
        if sample.response is None and turns:
            turns = turns[: system_turns(sample)[-1] + 1]
        said = tuple(turn for turn in turns if turn.text.strip())
        if len(said) <= FEWEST or not turns[-1].text.strip():
            return []
        return [replace(sample, context=said[:-1], response=said[-1].text)]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        """The model answers with exp( mean over k of ln((x_k + 1) / 2) )."""
        if not answers:
            said = sum(1 for turn in sample.turns if turn.text.strip())
            blank = sample.response is not None and not sample.response.strip()
            if blank or not sample.context or said > FEWEST:
                return nothing_to_judge(sample)
            return Score.missing(f"fewer than {FEWEST} turns before the response")
        found = super().score(sample, answers)
        if found.value is None:
            return found
        return replace(found, value=-(2.0 ** -math.log(found.value)))
