"""The protocol of DSTC10 track 5, task 1: one number for a metric over many rated data sets.

For each data set and each quality that people rated there, Spearman's rho of scores and ratings is
computed. Two different means are in use (Zhang et al. 2021; Zhang et al., MME-CRS, 2022):

    two-level   mean over the qualities of a data set, then mean over the data sets (development)
    flat        mean over all pairs of data set and quality (test)

The rating of an item is the mean over its annotators, except in dailydialog-gupta, where the first
annotator counts. An empty response is judged as the words "no response"; in a test file its item is
not counted, as in the organisers' script for JSALT. An undefined rho is left out of the mean and
counted; it is never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.agreement.coefficient import Coefficient, mean_of
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

TEST_SETS = ("JSALT", "ESL", "NCM", "DSTC10-Topical", "DSTC10-Persona")
"""Their files are called jsalt_eval.json, ..., dstc10-persona_clean_eval.json. If there is a file
with `_clean` and one without, the challenge counted the clean one."""

_SHORT = {
    "j": "JSALT", "e": "ESL", "n": "NCM", "dt": "DSTC10-Topical", "dp": "DSTC10-Persona"
}  # fmt: skip

RhoByQuality = Mapping[str, Mapping[str, Coefficient]]
"""Data set -> quality -> rho."""


@dataclass(frozen=True)
class ScoredSet:
    """A rated data set and its scores: metric -> a score for each sample, in order."""

    name: str
    samples: Sequence[Sample]
    scores: Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Dstc10Table:
    """Metric -> data set -> quality -> rho, with both means."""

    metrics: Mapping[str, RhoByQuality]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Every pair of data set and quality, in order of appearance."""
        pairs = (
            (dataset, quality)
            for of_metric in self.metrics.values()
            for dataset, qualities in of_metric.items()
            for quality in qualities
        )
        return list(dict.fromkeys(pairs))

    def to_records(self) -> list[dict[str, Any]]:
        """Returns a record for each metric, ready for JSON."""
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


def two_level_mean(rho: RhoByQuality) -> Coefficient:
    """Returns the mean of the development phase: each data set counts once."""
    return mean_of([mean_of(list(qualities.values())) for qualities in rho.values()])


def flat_mean(rho: RhoByQuality) -> Coefficient:
    """Returns the mean of the test phase: every quality of every data set counts once."""
    return mean_of([found for qualities in rho.values() for found in qualities.values()])


def dstc10_table(sets: Iterable[ScoredSet]) -> Dstc10Table:
    """Returns the results of several metrics over several data sets."""
    metrics: dict[str, dict[str, dict[str, Coefficient]]] = {}
    for scored in sets:
        for metric, scores in scored.scores.items():
            metrics.setdefault(metric, {})[scored.name] = _by_quality(scored, scores)
    return Dstc10Table(metrics)


def protocol_rating(dataset: str, rating: Rating) -> float | None:
    """Returns the rating of an item by the rules of the track."""
    if dataset in FIRST_ANNOTATOR_COUNTS:
        return rating.values[0] if rating.values else None
    return rating.mean


def test_set(name: str) -> str | None:
    """Returns the test set that a file is by its name: `jsalt_eval.json`, `dstc10-persona`, `DP`,
    `dstc10-persona_clean_eval.json`; None if it is none of them."""
    plain = name.lower().removesuffix(".json").removesuffix("_eval").removesuffix("_clean")
    plain = plain.replace("_", "-").replace("\\", "/").rpartition("/")[2]
    return ({one.lower(): one for one in TEST_SETS} | _SHORT).get(plain)


def track_files(folder: Path) -> list[Path]:
    """Returns the files of the track in a folder; of a test set with a clean file, that one."""
    names = {path.name for path in folder.glob("*_eval.json")}
    return [
        folder / name
        for name in sorted(names)
        if name.removesuffix("_eval.json") + "_clean_eval.json" not in names
    ]


def protocol_samples(dataset: str, samples: Iterable[Sample]) -> list[Sample]:
    """Returns what is judged and counted of a file of the track."""
    if test_set(dataset):
        return [one for one in samples if one.response is None or one.response.strip()]
    return [protocol_sample(one) for one in samples]


def protocol_sample(sample: Sample) -> Sample:
    """Returns the sample that a metric is shown: an empty response becomes "no response"."""
    if sample.response is None or sample.response.strip():
        return sample
    return replace(sample, response=NO_RESPONSE)


def _by_quality(scored: ScoredSet, scores: Sequence[float | None]) -> dict[str, Coefficient]:
    found: dict[str, Coefficient] = {}
    for quality in dict.fromkeys(quality for s in scored.samples for quality in s.ratings):
        ratings = [
            protocol_rating(scored.name, sample.ratings[quality])
            if quality in sample.ratings
            else None
            for sample in scored.samples
        ]
        found[quality] = spearman(scores, ratings)
    return found
