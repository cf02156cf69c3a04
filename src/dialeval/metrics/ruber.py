"""`ruber`, `bert-ruber` and `pone`: does a response fit? The first two have halves, and ways to
make one score of them:

    unreferenced  does the response fit what was said before? A trained scorer says so, 0 to 1
    referenced    how near is it to what people said instead? A cosine; of several references, the
                  nearest counts

blend=min, max, arithmetic or geometric takes the smaller or larger of the two or their mean, after
each half was put on a scale from 0 to 1 by its smallest and largest value (Tao et al., AAAI 2018,
3.3). The scales are fitted on the run and saved with it. A half that is the same for all samples
is 0 on its scale, where the released code divides by zero.

blend=unreferenced (what PONE's tables report) and blend=referenced leave the other half alone, and
need no scale. In mode=released they are scaled as well, as the released code does.

In mode=paper the scorer reads a response of more than 100 words in windows (`metrics/windows`), and
the vector of such a text is the mean of those of its windows; mode=released cuts it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dialeval.errors import UsageError
from dialeval.metric import Metric, Need, Part
from dialeval.metrics.windows import LONG, Windows, by_answer, judged, windows
from dialeval.metrics.word_vectors import (
    Words,
    WordVectorMetric,
    chinese_words,
    tokenizer_release,
    words_obstacle,
)
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Embed, Judge, Question
from dialeval.sample import Sample
from dialeval.scores import CalibrationKind, PartValue, Score

if TYPE_CHECKING:
    from dialeval.metrics.word_vectors import Array

Blend = Literal["unreferenced", "referenced", "min", "max", "arithmetic", "geometric"]
HALVES = ("unreferenced", "referenced")
NO_REFERENCES = "no references: blend=unreferenced does without"


@dataclass(frozen=True)
class BlendedMetric(Metric):
    """Base of the metrics with a referenced and an unreferenced half."""

    version = 2

    model: str = option("", "the trained scorer")
    blend: Blend = option("unreferenced", "one half, or a blend of both")
    mode: Literal["paper", "released"] = option("paper", "the papers, or PONE's code")

    @property
    def range(self) -> tuple[float, float]:
        """Scales of another run may put a value outside 0 to 1."""
        if self.scales():
            return (-math.inf, math.inf)
        return (0.0, 1.0) if self.blend == "unreferenced" else (-1.0, 1.0)

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({"context"} if self.blend == "unreferenced" else {"context", "references"})

    def obstacle(self, sample: Sample) -> str:
        why = super().obstacle(sample)
        return NO_REFERENCES if why == "no references" else why

    def blended(self, cut: Windows, fit: Sequence[Answer], referenced: Score | None) -> Score:
        """Returns the score of a sample from what the scorer says of each window of its response;
        `referenced` is None where it has no references."""
        unreferenced = judged([cut], fit)
        assert unreferenced.value is not None
        halves = {"unreferenced": unreferenced.value}
        if referenced is not None and referenced.value is not None:
            halves["referenced"] = referenced.value
        parts: dict[str, PartValue] = dict(halves)
        if self.blend == "unreferenced":
            return Score(unreferenced.value, parts, unreferenced.note)
        if "referenced" not in halves:
            return Score.missing(referenced.note if referenced else NO_REFERENCES)
        return Score(self.combine(halves), parts, unreferenced.note)

    def scales(self) -> Mapping[str, CalibrationKind]:
        if self.blend not in HALVES:
            return dict.fromkeys(HALVES, "minmax")
        return {self.blend: "minmax"} if self.mode == "released" else {}

    def combine(self, scaled: Mapping[str, float]) -> float:
        if self.blend in HALVES:
            return scaled[self.blend]
        values = [scaled[half] for half in HALVES]
        match self.blend:
            case "min":
                return min(values)
            case "max":
                return max(values)
            case "arithmetic":
                return sum(values) / 2
        # Below 0 only before scaling, or on the scales of another run.
        return math.sqrt(max(0.0, values[0]) * max(0.0, values[1]))

    def parts(self) -> tuple[Part, ...]:
        return (
            Part("unreferenced", "how well the response fits what was said before"),
            Part("referenced", "how near the response is to a reference, if there is one"),
        )


Pooling = Literal["max-min", "average", "all"]


@dataclass(frozen=True)
class ReferencedHalf(WordVectorMetric):
    """Cosine of the pooled word vectors of response and reference."""

    name = "ruber-referenced"
    citation = "Tao, Mou, Zhao, Yan: RUBER. AAAI 2018"

    pooling: Pooling = option("max-min", "pooling of the word vectors")

    def similarity(self, response: Words, reference: Words) -> float:
        return self.cosine(self.pooled(response), self.pooled(reference))

    def pooled(self, words: Words) -> Array:
        import numpy as np

        average: Array = words.counts @ words.vectors / words.counts.sum()
        if self.pooling == "average":
            return average
        ends = (words.vectors.max(axis=0), words.vectors.min(axis=0))
        return np.concatenate(ends if self.pooling == "max-min" else (average, *ends))

    def cosine(self, first: Array, second: Array) -> float:
        import numpy as np

        norms = float(np.linalg.norm(first) * np.linalg.norm(second))
        if not norms:
            return 0.0 if self.mode == "released" else math.nan
        return float(np.clip(first @ second / norms, -1.0, 1.0))


@dataclass(frozen=True)
class Ruber(BlendedMetric):
    """Fit to the query by a scorer on word vectors, blended with nearness to the references.

    `ruber`: does it fit the query, and is it near to what people said? (Tao et al., AAAI 2018)

        s_U = sigmoid( MLP [ q ; q^T M r ; r ] )      q, r: bi-GRUs over the words of query and
        response s_R = cos( v(response), v(reference) )        v: max and min over the word vectors
        s   = min( scaled s_U, scaled s_R )           or max, or their arithmetic or geometric mean

    The query is the last turn before the response. The scorer of s_U was trained to tell the
    response that was given from a random one (`dialeval train ruber`); it needs no references.
    Without references use blend=unreferenced.

    mode=released is what PONE's code does: for s_R, words are what stands between whitespace, and
    those without a vector share a random one. It reads a blank response as one unknown word, where
    mode=paper gives no score. s_U is that of the same scorer in both modes.

    The referenced half s_R (section 3.1) pools word vectors component by component: pooling=extrema
    takes the largest and the smallest of each, pooling=average takes the mean instead, pooling=all
    puts all three behind each other. See `embedding-average` for words and unknown words. An
    undefined cosine is 0 in mode=released.

    Chinese words have no spaces between them: tokenize=jieba finds them, for a scorer that was
    trained with --tokenize jieba. Otherwise a text whose words run together gets no score.
    """

    name = "ruber"
    version = 2
    citation = (
        "Tao, Mou, Zhao, Yan: RUBER: An Unsupervised Method for Automatic Evaluation of Open-Domain"
        " Dialog Systems. AAAI 2018"
    )

    model: str = model_option("ruber", "the trained scorer; its word vectors serve both halves")
    blend: Blend = option("min", "a blend of the two halves, or one of them")
    pooling: Pooling = option("max-min", "pooling of the word vectors for the referenced half")
    tokenize: Literal["treebank", "jieba"] = option(
        "treebank", "tokenizer of words: treebank splits off punctuation, jieba is for Chinese"
    )

    def __post_init__(self) -> None:
        if self.mode == "released" and self.tokenize != "treebank":
            raise UsageError(
                "metric 'ruber': mode=released takes what stands between spaces for words. Leave"
                " tokenize out, or use mode=paper."
            )

    def obstacle(self, sample: Sample) -> str:
        turns = (turn.text for turn in sample.context[-1:])
        return super().obstacle(sample) or words_obstacle(
            self.tokenize, sample.response or "", *turns, *sample.references
        )

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = self._spaced(sample.response or "")
        if self.mode == "paper" and not response.strip():
            return ()
        turns = tuple(self._spaced(turn.text) for turn in sample.context[-1:])
        near = self._referenced().ask(sample) if sample.references else ()
        read = read_in(self.mode, response).read
        return [*(Judge(self.model, turns, window) for window in read), *near]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return Score.missing("empty response")
        cut = read_in(self.mode, self._spaced(sample.response or ""))
        fit, vectors = answers[: len(cut.read)], answers[len(cut.read) :]
        near = self._referenced().score(sample, vectors) if vectors else None
        return self.blended(cut, fit, near)

    def signature_fields(self) -> Mapping[str, str]:
        return {**super().signature_fields(), **tokenizer_release(self.tokenize)}

    def _spaced(self, text: str) -> str:
        return " ".join(chinese_words(text)) if self.tokenize == "jieba" else text

    def _referenced(self) -> ReferencedHalf:
        return ReferencedHalf(self.model, self.mode, self.tokenize, pooling=self.pooling)


@dataclass(frozen=True)
class BertRuber(BlendedMetric):
    """Fit to the context, by a scorer on sentence vectors that learned from random negatives.

    `bert-ruber`: does it fit the context, to a scorer on sentence vectors? (Ghazarian et al., 2019)

        s_U = sigmoid( MLP [ q ; q^T M r ; r ] )      q, r: pooled states of an encoder
        s_R = cos( vector of the response, vector of the reference )

    The scorer of s_U was trained to tell the response that was given from a random one (`dialeval
    train bert-ruber`); how the turns before the response become q is what it was trained with. s_R
    takes the vectors of the same encoder. The
    score is s_U, as in the tables of PONE (Lan et al., TOIS 2020), unless a blend is asked for.

    mode=released is what PONE's code does: s_U is put on a scale from 0 to 1 over the run, which
    moves no correlation; a blank text is read as `[UNK]`, and s_R is 0 where one side is blank. In
    mode=paper a blank response gets no score, and a blank reference is none.
    """

    name = "bert-ruber"
    citation = (
        "Ghazarian, Wei, Galstyan, Peng: Better Automatic Evaluation of Open-Domain Dialogue"
        " Systems with Contextualized Embeddings. NeuralGen 2019"
    )

    model: str = model_option("bert-ruber", "the trained scorer; its encoder serves both halves")

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if self.mode == "paper" and not response.strip():
            return ()
        turns = tuple(turn.text for turn in sample.context)
        texts = (response, *sample.references) if sample.references else ()
        return [
            *(Judge(self.model, turns, window) for window in read_in(self.mode, response).read),
            *(Embed(self.model, part) for text in texts for part in read_in(self.mode, text).read),
        ]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return Score.missing("empty response")
        cut = read_in(self.mode, sample.response or "")
        fit, vectors = answers[: len(cut.read)], answers[len(cut.read) :]
        near = self._referenced(sample, vectors) if vectors else None
        return self.blended(cut, fit, near)

    def _referenced(self, sample: Sample, vectors: Sequence[Answer]) -> Score:
        texts = (sample.response or "", *sample.references)
        cut = [read_in(self.mode, text) for text in texts]
        response, *references = (_mean(own) for own in by_answer(cut, vectors))
        blank = not (sample.response or "").strip()
        cosines = [
            0.0 if blank or not text.strip() else _cosine(response, vector)
            for text, vector in zip(sample.references, references, strict=True)
            if self.mode == "released" or text.strip()
        ]
        return Score(max(cosines)) if cosines else Score.missing("empty reference")


def read_in(mode: str, text: str) -> Windows:
    """Returns the windows in which a text is read: in mode=released it is its only one."""
    return windows(text, whole=LONG) if mode == "paper" else Windows((text,))


def _mean(vectors: Sequence[Answer]) -> Answer:
    if len(vectors) == 1:
        return vectors[0]
    import numpy as np

    mean: Answer = np.mean([np.asarray(one, np.float64) for one in vectors], axis=0)
    return mean


def _cosine(first: Answer, second: Answer) -> float:
    """0 where a vector is zero, which no encoder gives."""
    import numpy as np

    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    norms = math.sqrt(float(x @ x) * float(y @ y))
    return float(np.clip(x @ y / norms, -1.0, 1.0)) if norms else 0.0


@dataclass(frozen=True)
class Pone(Metric):
    """Fit to the context, by a scorer on sentence vectors that learned from hard cases.

    `pone`: does it fit the context, to a scorer that learned from hard cases? (Lan et al., 2020)

        s_U = sigmoid( MLP [ q ; q^T M r ; r ] )      q, r: pooled states of an encoder

    The network is that of `bert-ruber`; what it learned from is PONE's own: negative samples that
    are near to the right response, positive samples beyond the one in the corpus, and a filter for
    labels that are wrong (`dialeval train pone`). How the turns before the response become q is
    what it was trained with. References are not looked at.

    mode=released is what the authors' code does: scores are put on a scale from 0 to 1 by their
    smallest and largest value over the run, which moves no correlation, and a blank response is
    read as `[UNK]`. In mode=paper it gets no score, and a long one is read in windows.
    """

    name = "pone"
    version = 3
    needs = frozenset({"context"})
    citation = (
        "Lan, Mao, Wei, Gao, Huang: PONE: A Novel Automatic Evaluation Metric for Open-Domain"
        " Generative Dialogue Systems. TOIS 2020"
    )

    model: str = model_option("pone", "the trained scorer")
    mode: Literal["paper", "released"] = option("paper", "the paper, or the authors' code")

    @property
    def range(self) -> tuple[float, float]:
        """Scales of another run may put a value outside 0 to 1."""
        return (-math.inf, math.inf) if self.mode == "released" else (0.0, 1.0)

    def ask(self, sample: Sample) -> Sequence[Question]:
        response = sample.response or ""
        if self.mode == "paper" and not response.strip():
            return ()
        turns = tuple(turn.text for turn in sample.context)
        return [Judge(self.model, turns, part) for part in read_in(self.mode, response).read]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        if not answers:
            return Score.missing("empty response")
        fit = judged([read_in(self.mode, sample.response or "")], answers)
        assert fit.value is not None
        return Score(fit.value, {"unreferenced": fit.value}, fit.note)

    def parts(self) -> tuple[Part, ...]:
        return (Part("unreferenced", "how well the response fits, before any scaling"),)

    def scales(self) -> Mapping[str, CalibrationKind]:
        return {"unreferenced": "minmax"} if self.mode == "released" else {}

    def combine(self, scaled: Mapping[str, float]) -> float:
        return scaled["unreferenced"]
