"""What is held against what: each metric with each quality, by turn, by system or within groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dialeval.agreement.bootstrap import Bootstrap
from dialeval.agreement.correlation import (
    NAMES,
    Coefficient,
    Correlation,
    Name,
    correlations,
    kendall,
    pearson,
    spearman,
)
from dialeval.agreement.grouping import WithinGroups, system_means, within_groups
from dialeval.agreement.ranks import Floats
from dialeval.agreement.rated import RatedLevel
from dialeval.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from dialeval.sample import Level

By = Literal["turn", "system", "within-item", "within-system"]

COEFFICIENTS: dict[Name, Coefficient] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


def check_rated(levels: Sequence[RatedLevel]) -> None:
    """There is something to agree with in every data set."""
    for dataset in dict.fromkeys(level.dataset for level in levels):
        if not any(level.qualities for level in levels if level.dataset == dataset):
            raise UsageError(
                f"{dataset or 'the data'}: no sample has ratings. A run keeps those of the files"
                " that it scored: dialeval score FILE --rating COLUMN -o RUN"
            )


def points(level: Level, by: By) -> str:
    """What is a point in a plot of this grouping, for headings."""
    return {
        "turn": f"{level}s",
        "system": f"means of systems over {level}s",
        "within-item": f"{level}s within items",
        "within-system": f"{level}s within systems",
    }[by]


@dataclass(frozen=True)
class Case:
    """The numbers behind one row."""

    level: RatedLevel
    metric: str
    quality: str
    scores: Floats
    ratings: Floats
    """Samples x targets."""
    groups: Sequence[str]
    """The system or the item of each sample, as the grouping asks."""


def cases_of(level: RatedLevel, metrics: Sequence[str], by: By) -> list[Case]:
    """Each quality of a level with each metric of it."""
    for metric in metrics:
        if metric not in level.directions:
            raise UsageError(
                f"{level.dataset}: no metric {metric!r}.{did_you_mean(metric, level.directions)}"
                f" It has: {', '.join(level.directions)}"
            )
    labels = level.items if by == "within-item" else level.systems
    if by == "within-item" and level.qualities and not any(labels):
        raise UsageError(
            f"{level.dataset}: no {level.level} says which item it answers, so nothing can be"
            " compared within an item. Use --by turn, or give the samples the field 'item'."
        )
    found = []
    for quality, rated in level.qualities.items():
        groups = [labels[place] for place in rated.places.tolist()]
        unknown = np.array([by == "within-item" and not group for group in groups], dtype=bool)
        for metric in level.scores:
            if not metrics or metric in metrics:
                scores = level.scores[metric][rated.places]
                scores[unknown] = np.nan
                found.append(Case(level, metric, quality, scores, rated.ratings, groups))
    return found


def oriented(case: Case) -> Floats:
    """Scores that are better the higher they are."""
    return -case.scores if case.level.directions[case.metric] == "lower" else case.scores


@dataclass(frozen=True)
class CommonSamples:
    """Metrics on the samples that all of them scored; the others have no scores any more."""

    cases: list[Case]
    left_out: int
    """Rated samples that some metrics scored, but not all."""
    scarcest: str
    """The metric with the fewest scores, where samples are left out."""


def on_common_samples(cases: Sequence[Case]) -> CommonSamples:
    """Of the metrics of one quality. One without any score does not count."""
    scored = [~np.isnan(case.scores + case.ratings[:, 0]) for case in cases]
    counted = {case.metric: there for case, there in zip(cases, scored, strict=True) if there.any()}
    if not counted:
        return CommonSamples(list(cases), 0, "")
    common = np.logical_and.reduce(list(counted.values()))
    left_out = int(np.logical_or.reduce(list(counted.values())).sum() - common.sum())
    scarcest = min(counted, key=lambda metric: int(counted[metric].sum())) if left_out else ""
    kept = [replace(case, scores=np.where(common, case.scores, np.nan)) for case in cases]
    return CommonSamples(kept, left_out, scarcest)


def correlate(
    scores: Floats,
    human: Floats,
    groups: Sequence[str],
    by: By,
    bootstrap: Bootstrap | None = None,
    names: Sequence[Name] = NAMES,
    flat: float | None = None,
) -> Mapping[Name, Correlation | WithinGroups]:
    """Correlations of the items that the grouping compares; `flat` as in `within_groups`."""
    if by == "turn":
        return correlations(scores, human, bootstrap, names)
    if by == "system":
        means = system_means(scores, human, groups)
        return correlations(means.x, means.y, bootstrap, names)
    return {
        name: within_groups(scores, human, groups, COEFFICIENTS[name], flat=flat) for name in names
    }
