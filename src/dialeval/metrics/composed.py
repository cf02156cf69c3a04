"""`mme-crs`, `mme-avg`: several metrics as one (Zhang et al., MME-CRS, 2022, Eq. 3).

    S_j = sum over k of  w_jk * s_k

s_k is sub-metric k on its scale from 0 to 1, w_jk its weight for the quality j: how well it agreed
with what people said of that quality elsewhere (`metrics/composition.py`). `mme-avg` gives all the
same weight. Terms, scales and weights are data: a file that `dialeval compose fit` writes, from any
metrics. The one that comes with dialeval composes the seven sub-metrics of the paper.

quality=overall (the default) takes the weights of overall; where the file has none, the mean over
all its qualities. appropriateness, as the test sets of DSTC10 call it, is overall where no data set
had that name. Any other quality must be in the file, by its name there, in the data, or in another
case: relevance, Relevant.

A sub-metric whose weight is 0 is not asked. Where one in use has no value for a sample there is no
score (missing=none), or the others share its weight (missing=rescale).

The weights belong to the models that they were fitted with: a sub-metric that another model answers
is refused. The file is read when the metric is made, and the composition is part of the metric.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dialeval.metric import Metric, Need, Part, bound
from dialeval.metrics.composition import Composition, Term, Weights, find_composition
from dialeval.metrics.mme import MME_CITATION
from dialeval.model_store.presets import COMPOSITION, model_option
from dialeval.options import option
from dialeval.question import Answer, Question
from dialeval.sample import Sample
from dialeval.scores import PartValue, Score, Signature


@dataclass(frozen=True)
class ComposedMetric(Metric):
    """A weighted sum of metrics on their scales."""

    version = 2
    levels = frozenset({"turn", "dialogue"})
    range = (0.0, 1.0)
    citation = MME_CITATION

    weights: str = model_option(
        COMPOSITION, "weights that come with dialeval, or a file of compose fit"
    )
    missing: Literal["none", "rescale"] = option(
        "none", "if a sub-metric has no value: give no score, or share its weight among the others"
    )
    composition: Composition = bound()
    in_use: tuple[tuple[Term, float], ...] = bound()

    def __post_init__(self) -> None:
        composition = find_composition(self.weights)
        pairs = zip(composition.terms, self.chosen(composition), strict=True)
        # The terms that count, with their weights.
        used = tuple((term, weight) for term, weight in pairs if weight > 0)
        self.bind(composition=composition, in_use=used)

    @property
    def needs(self) -> frozenset[Need]:
        """All that a sub-metric needs, unless the others may share its weight."""
        terms = self.in_use if self.missing == "none" else ()
        return frozenset(need for term, _ in terms for need in term.metric.needs)

    @property
    def languages(self) -> frozenset[str]:
        return frozenset(one for term, _ in self.in_use for one in term.metric.languages)

    @abstractmethod
    def chosen(self, composition: Composition) -> Weights:
        """Returns the weights of the terms, in their order."""

    def ask(self, sample: Sample) -> Sequence[Question]:
        return [question for term, _ in self.in_use for question in _questions(term, sample)]

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        parts: dict[str, PartValue] = {}
        weighted: list[tuple[float, float]] = []
        remarks: dict[str, list[str]] = {}
        lacking, start = [], 0
        for term, weight in self.in_use:
            end = start + len(_questions(term, sample))
            found = _score(term, sample, answers[start:end])
            start = end
            if found.value is None:
                lacking.append(f"{term.metric.name}: {found.note}")
                continue
            scaled = term.scaled(found.value, found.parts)
            parts[term.spec] = scaled
            weighted.append((weight, scaled))
            if found.note:
                remarks.setdefault(found.note, []).append(term.metric.name)
        if not weighted or (lacking and self.missing == "none"):
            return Score(None, parts, lacking[0])
        shared = math.fsum(weight for weight, _ in weighted)
        value = math.fsum(weight * scaled for weight, scaled in weighted) / shared
        note = f"without {lacking[0]}" if lacking else _who_says(remarks)
        return Score(min(1.0, max(0.0, value)), parts, note)

    def parts(self) -> tuple[Part, ...]:
        return tuple(
            Part(term.spec, f"{term.spec} from 0 to 1; its weight is {weight:.3f}", weight=weight)
            for term, weight in self.in_use
        )

    def models(self) -> Mapping[str, str]:
        """Returns each model once, under the first sub-metric that asks it."""
        by_model: dict[str, str] = {}
        for term, _ in self.in_use:
            for role, model in term.metric.models().items():
                by_model.setdefault(model, f"{term.spec}/{role}")
        return {role: model for model, role in by_model.items()}

    def signature(self, fingerprints: Mapping[str, str] | None = None) -> Signature:
        """With fingerprints, somebody is about to score: the sub-metrics must be those that the
        weights were fitted with."""
        if fingerprints is not None:
            for term, _ in self.in_use:
                term.check_signature(term.metric.signature(fingerprints))
        return super().signature(fingerprints)

    def signature_fields(self) -> Mapping[str, str]:
        """Returns the digest of the weights: the content of the file counts, not its place."""
        return {"weights": f"{Path(self.weights).stem}@{self.composition.digest()[:8]}"}


@dataclass(frozen=True)
class MmeCrs(ComposedMetric):
    """Sub-metrics weighted by how well they agree with people on a quality (MME-CRS)."""

    name = "mme-crs"

    quality: str = option("overall", "the quality whose weights are used")

    def chosen(self, composition: Composition) -> Weights:
        return composition.weights_for(self.quality).weights


@dataclass(frozen=True)
class MmeAvg(ComposedMetric):
    """The plain mean of the sub-metrics of a composition (MME-Avg)."""

    name = "mme-avg"

    def chosen(self, composition: Composition) -> Weights:
        return composition.average.weights


def _who_says(remarks: Mapping[str, Sequence[str]]) -> str:
    """`mme-fluency, mme-engagement: response truncated to 50 tokens`: each remark of sub-metrics,
    after those that made it."""
    return " + ".join(
        f"{', '.join(dict.fromkeys(names))}: {remark}" for remark, names in remarks.items()
    )


def _questions(term: Term, sample: Sample) -> Sequence[Question]:
    return () if term.metric.obstacle(sample) else term.metric.ask(sample)


def _score(term: Term, sample: Sample, answers: Sequence[Answer]) -> Score:
    why = term.metric.obstacle(sample)
    return Score.missing(why) if why else term.metric.score(sample, answers)
