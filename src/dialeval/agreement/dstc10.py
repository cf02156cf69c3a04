"""The protocol of DSTC10 track 5, task 1: one number for a metric over many rated data sets.

For each data set and each quality that people rated there, Spearman's rho of scores and ratings.
Then one of two means, which are not the same (Zhang et al. 2021; Zhang et al., MME-CRS, 2022):

    two-level   mean over the qualities of a data set, then mean over the data sets (development)
    flat        mean over all pairs of data set and quality (test)

The rating of an item is the mean over its annotators, except in dailydialog-gupta, where the first
annotator counts. An empty response is judged as the words "no response". Where rho is not defined
it is left out of the mean and counted; it is never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dialeval.agreement.coefficient import Agreement, mean_of
from dialeval.agreement.correlation import spearman

if TYPE_CHECKING:
    from dialeval.sample import Rating, Sample

FIRST_ANNOTATOR_COUNTS = frozenset({"dailydialog-gupta"})
NO_RESPONSE = "no response"

DEVELOPMENT_SETS = (
    "dstc6", "dstc7", "dailydialog-gupta", "dailydialog-zhao", "humod", "persona-usr",
    "topical-usr", "persona-zhao", "fed-turn", "fed-dial", "convai2-grade", "empathetic-grade",
    "dailydialog-grade", "persona-see",
)  # fmt: skip
"""Names as in `NAME_eval.json` of the track."""

OfOneMetric = Mapping[str, Mapping[str, Agreement]]
"""Data set -> quality -> rho."""


@dataclass(frozen=True)
class ScoredSet:
    """A rated data set and what metrics say of it: label -> a score for each sample, in order."""

    name: str
    samples: Sequence[Sample]
    scores: Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Dstc10Table:
    """Metric -> data set -> quality -> rho, with both means."""

    metrics: Mapping[str, OfOneMetric]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Every pair of data set and quality, in the order in which they came."""
        pairs = (
            (dataset, quality)
            for of_metric in self.metrics.values()
            for dataset, qualities in of_metric.items()
            for quality in qualities
        )
        return list(dict.fromkeys(pairs))

    def to_records(self) -> list[dict[str, Any]]:
        """JSON-ready, a record per metric."""
        return [
            {
                "metric": metric,
                "two_level_mean": two_level_mean(rho).to_record(),
                "flat_mean": flat_mean(rho).to_record(),
                "spearman": {
                    dataset: {quality: found.to_record() for quality, found in qualities.items()}
                    for dataset, qualities in rho.items()
                },
            }
            for metric, rho in self.metrics.items()
        ]


def two_level_mean(rho: OfOneMetric) -> Agreement:
    """Ranks the development phase: a data set counts once, however many qualities it has."""
    return mean_of([mean_of(list(qualities.values())) for qualities in rho.values()])


def flat_mean(rho: OfOneMetric) -> Agreement:
    """Ranks the test phase: every quality of every data set counts the same."""
    return mean_of([found for qualities in rho.values() for found in qualities.values()])


def dstc10_table(sets: Iterable[ScoredSet]) -> Dstc10Table:
    """The results of several metrics over several data sets."""
    metrics: dict[str, dict[str, dict[str, Agreement]]] = {}
    for scored in sets:
        for metric, scores in scored.scores.items():
            metrics.setdefault(metric, {})[scored.name] = _by_quality(scored, scores)
    return Dstc10Table(metrics)


def protocol_rating(dataset: str, rating: Rating) -> float | None:
    """What people said about an item, as the track counts it."""
    if dataset in FIRST_ANNOTATOR_COUNTS:
        return rating.values[0] if rating.values else None
    return rating.mean


def protocol_sample(sample: Sample) -> Sample:
    """What a metric is shown: an empty response becomes "no response"."""
    if sample.response is None or sample.response.strip():
        return sample
    return replace(sample, response=NO_RESPONSE)


def _by_quality(scored: ScoredSet, scores: Sequence[float | None]) -> dict[str, Agreement]:
    found: dict[str, Agreement] = {}
    for quality in dict.fromkeys(quality for s in scored.samples for quality in s.ratings):
        ratings = [
            protocol_rating(scored.name, sample.ratings[quality])
            if quality in sample.ratings
            else None
            for sample in scored.samples
        ]
        rho = spearman(scores, ratings)
        found[quality] = Agreement(rho.value, rho.n, rho.n_missing, rho.reason)
    return found
