"""`diversity`: do its answers vary when the question does? (Pang et al., ACL 2020, section 3.3)

    H_n = - sum over distinct n-grams g of p(g) ln p(g),   p(g) = count(g) / number of n-grams

over the answers to one query and its paraphrases, taken together; the logarithm is natural, case is
kept. It judges a system, not a text: the answers come from a probe (`dialeval probe`) or a file of
groups. Entropy grows with the length of the answers, so a talkative bot looks diverse;
`normalised-n` divides by its largest possible value, ln(number of n-grams), and `distinct-n` is the
share of different n-grams. `dispersion` looks past words: one minus the mean cosine between two
answers' vectors.

mode=paper     words are what whitespace separates; an answer shorter than n words has no n-grams
mode=released  the authors' code: words are what single blanks separate; an answer of n words or
               fewer is one item as a whole, so that "Sure ." is a "trigram"

`marginal-diversity` is the baseline of the paper: the entropy over all answers of a system to all
queries. It is high for a bot that has one fixed answer to each query, however the query is worded,
as long as the queries differ; which is why the paper conditions on the query.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from dialeval.metric import Metric, Part
from dialeval.model_store.presets import model_option
from dialeval.options import option
from dialeval.question import Answer, Embed, Question
from dialeval.sample import Sample
from dialeval.scores import Score

Mode = Literal["paper", "released"]


def ngram_entropy(responses: Iterable[str], n: int = 2, mode: Mode = "released") -> float | None:
    """Entropy in nats; None where there is no n-gram."""
    return entropy(count_ngrams(responses, n, mode))


def count_ngrams(responses: Iterable[str], n: int, mode: Mode) -> Counter[str]:
    """Returns how often each n-gram occurs; blank responses do not count."""
    return Counter(
        ngram
        for response in responses
        if (stripped := response.strip())
        for ngram in (_released(stripped, n) if mode == "released" else _plain(stripped, n))
    )


def entropy(counts: Counter[str]) -> float | None:
    """Returns the entropy in nats; None if there are no n-grams."""
    total = counts.total()
    if not total:
        return None
    # ln(1/p) and not -ln p, so that a single n-gram gives 0 and not -0
    return math.fsum(count / total * math.log(total / count) for count in counts.values())


def _plain(response: str, n: int) -> list[str]:
    words = response.split()
    return [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]


def _released(response: str, n: int) -> list[str]:
    words = response.split(" ")
    if len(words) <= n:
        return [response]
    return [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]


ORDERS = (1, 2, 3)

HOLISTIC_EVAL = (
    "Pang, Nijkamp, Han, Zhou, Liu, Tu: Towards Holistic and Automatic Evaluation of"
    " Open-Domain Dialogue Generation. ACL 2020"
)


@dataclass(frozen=True)
class Diversity(Metric):
    """n-gram entropy of the answers to a query and its paraphrases."""

    name = "diversity"
    levels = frozenset({"turn", "dialogue"})
    needs = frozenset({"variants"})
    range = (0.0, math.inf)
    citation = HOLISTIC_EVAL

    n: int = option(2, "order of the n-grams that give the score", low=ORDERS[0], high=ORDERS[-1])
    mode: Literal["paper", "released"] = option(
        "paper", "plain n-grams, or those of the authors' code"
    )
    dispersion: bool = option(
        True, "also measure how far the answers are apart, by a sentence encoder"
    )
    model: str = model_option("sentence-encoder", "the sentence encoder of the dispersion")

    def ask(self, sample: Sample) -> Sequence[Question]:
        if not self.dispersion:
            return ()
        return [Embed(self.model, text) for text in dict.fromkeys(_answers(sample))]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        texts = _answers(sample)
        parts: dict[str, float] = {}
        for n in ORDERS:
            parts |= ngram_parts(count_ngrams(texts, n, self.mode), n)
        if self.dispersion and len(texts) > 1:
            vectors = dict(zip(dict.fromkeys(texts), answers, strict=True))
            parts["dispersion"] = mean_distance([vectors[text] for text in texts])
        headline = f"entropy-{self.n}"
        if headline not in parts:
            return Score.missing("answers too short" if texts else "empty answers")
        return Score(parts[headline], parts, "" if len(texts) > 1 else "one answer")

    def parts(self) -> tuple[Part, ...]:
        found = [
            part
            for n in ORDERS
            for part in (
                Part(f"entropy-{n}", f"entropy of the {n}-grams, in nats"),
                Part(f"normalised-{n}", f"the same as a share of its largest value, {n}-grams"),
                Part(f"distinct-{n}", f"share of different {n}-grams"),
            )
        ]
        if self.dispersion:
            found.append(Part("dispersion", "1 - mean cosine between two answers"))
        return tuple(found)

    def models(self) -> Mapping[str, str]:
        return {"model": self.model} if self.dispersion else {}


@dataclass(frozen=True)
class MarginalDiversity(Metric):
    """n-gram entropy of all answers of a system, whatever they answer: a baseline."""

    name = "marginal-diversity"
    levels = frozenset({"turn", "dialogue"})
    range = (0.0, math.inf)
    citation = HOLISTIC_EVAL

    n: int = option(2, "order of the n-grams", low=ORDERS[0], high=ORDERS[-1])
    mode: Literal["paper", "released"] = option(
        "paper", "plain n-grams, or those of the authors' code"
    )

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        return self.to_score(count_ngrams(_answers(sample), self.n, self.mode))

    def to_score(self, counts: Counter[str]) -> Score:
        value = entropy(counts)
        if value is None:
            return Score.missing("answers too short", counts)
        return Score(value, counts=counts)

    def pool(self) -> MarginalPool:
        return MarginalPool(self)


class MarginalPool:
    """The n-grams of all answers of one system; memory grows with the different ones."""

    def __init__(self, metric: MarginalDiversity) -> None:
        self._metric = metric
        self._counts: Counter[str] = Counter()

    def add(self, score: Score) -> None:
        self._counts.update(score.counts)

    def merge(self, other: MarginalPool) -> None:
        self._counts.update(other._counts)

    def result(self) -> Score:
        return self._metric.to_score(self._counts)


def ngram_parts(counts: Counter[str], n: int) -> dict[str, float]:
    """Entropy and its relatives; nothing where there is no n-gram."""
    value, total = entropy(counts), counts.total()
    if value is None:
        return {}
    largest = math.log(total)
    return {
        f"entropy-{n}": value,
        f"normalised-{n}": value / largest if largest else 0.0,
        f"distinct-{n}": len(counts) / total,
    }


def mean_distance(vectors: Sequence[Answer]) -> float:
    """1 - cosine, over all pairs of answers."""
    import numpy as np

    units = [v / (np.linalg.norm(v) or 1.0) for v in np.asarray(vectors, dtype=np.float64)]
    cosines = [float(one @ other) for one, other in combinations(units, 2)]
    return 1.0 - math.fsum(cosines) / len(cosines)


def _answers(sample: Sample) -> list[str]:
    """Returns what the system said: to the variants of a query, or, without any, the response."""
    said = [variant.response for variant in sample.variants] or [sample.response or ""]
    return [text for text in said if text.strip()]
