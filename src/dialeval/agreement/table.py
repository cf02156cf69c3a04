"""The rows of `dialeval agree`: every metric against every quality that people rated.

    by turn             all samples of a level together (turns and dialogues are never mixed)
    by system           the mean score of each system against its mean rating
    by within-item      the correlation among the answers to one item, averaged over the items
    by within-system    the correlation among the answers of one system, averaged over the systems

The target is the mean rating, one rater, or the maximum over raters. A maximum has no pairwise
accuracy: that is largest with the rater who ties most, and 1 with a constant one.

Samples without a score or a rating are left out and counted. For a lower-is-better metric the
correlations keep their sign, but a pair counts as ordered alike if the lower score goes with the
higher rating.

Pairwise accuracy with tie calibration (Deutsch, Foster and Freitag, EMNLP 2023), acc_eq, is the
share of pairs of items that the metric orders as people do. A tie is an answer, too:

    acc_eq = (C + T_xy) / (pairs)        C ordered alike, T_xy tied by both

A metric with real-valued scores never ties, so it never agrees with a tie of people. Calibration
counts scores that differ by at most epsilon as tied, with the smallest epsilon that makes acc_eq
largest (0 or one of the differences that occur). It is fitted on the data that it is reported on:
to report on other data, pass its `epsilon`.

With groups, only pairs within a group count, and acc_eq is the mean over the groups that have
pairs, with one epsilon for all. If there are more than `most_pairs` pairs, that many are drawn at
random.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.arithmetic import Floats, Integers
from dialeval.agreement.bootstrap import Bootstrap
from dialeval.agreement.coefficient import Coefficient, maximum_over_raters
from dialeval.agreement.correlation import (
    CONSTANT,
    NAMES,
    Correlate,
    Name,
    Numbers,
    complete_pairs,
    correlations,
    group_members,
    kendall,
    pearson,
    spearman,
    system_means,
    within_groups,
)
from dialeval.agreement.rated import RatedLevel
from dialeval.errors import UsageError, did_you_mean
from dialeval.progress import Progress

if TYPE_CHECKING:
    from dialeval.metric import Direction
    from dialeval.sample import Level

By = Literal["turn", "system", "within-item", "within-system"]

MOST_PAIRS = 1_000_000
"""The number of pairs that are drawn for an accuracy, which is then known to +-.001."""
NO_PAIRS = "not taken as a maximum over raters"
_CORRELATE: dict[Name, Correlate] = {"pearson": pearson, "spearman": spearman, "kendall": kendall}


@dataclass(frozen=True)
class AgreementRow:
    """One metric, one quality, one level; `n` items had a score and a rating."""

    dataset: str
    metric: str
    quality: str
    level: Level
    by: By
    n: int
    n_missing: int
    correlations: Mapping[Name, Coefficient]
    target: str
    direction: Direction
    pairwise: PairwiseAccuracy
    ties_metric: int
    """Number of pairs of items (in the same group, if there are groups) with the same score."""
    ties_human: int

    def to_record(self) -> dict[str, Any]:
        record = dict(self.__dict__)
        found: Mapping[Name, Coefficient] = record.pop("correlations")
        pairwise: PairwiseAccuracy = record.pop("pairwise")
        estimates = {name: one.to_estimate() for name, one in found.items()}
        return record | estimates | {"pairwise": asdict(pairwise)}


@dataclass(frozen=True)
class ScoredQuality:
    """The scores of one metric and the ratings of one quality, for the same samples."""

    level: RatedLevel
    metric: str
    quality: str
    scores: Floats
    ratings: Floats
    """A matrix of samples x targets."""
    groups: Sequence[str]
    """The system or the item of each sample, as the grouping requires."""

    @property
    def oriented(self) -> Floats:
        """The scores, inverted if lower is better."""
        return -self.scores if self.level.directions[self.metric] == "lower" else self.scores


def agreement_rows(
    levels: Iterable[RatedLevel],
    *,
    metrics: Sequence[str] = (),
    by: By = "turn",
    rounds: int = 1000,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[AgreementRow]:
    """Returns a row for each level, quality and metric that has a score there."""
    levels = list(levels)
    check_rated(levels)
    everything = [one for level in levels for one in scored_qualities(level, metrics, by)]
    per_row = max(1, rounds)
    rows: list[AgreementRow] = []

    def report(done: int, total: int) -> None:
        if progress:
            progress(len(rows) * per_row + done, len(everything) * per_row)

    for one in everything:
        bootstrap = None
        if rounds:
            rng = np.random.default_rng(seed)
            bootstrap = Bootstrap(rng, rounds, workers=workers, progress=report)
        rows.append(_row(one, by, bootstrap, np.random.default_rng(seed)))
        report(0, 1)
    return rows


def check_rated(levels: Sequence[RatedLevel]) -> None:
    """Raises an error if a data set has no ratings."""
    for dataset in dict.fromkeys(level.dataset for level in levels):
        if not any(level.qualities for level in levels if level.dataset == dataset):
            raise UsageError(
                f"{dataset or 'the data'}: no sample has ratings. A run keeps those of the files"
                " that it scored: dialeval score FILE --rating COLUMN -o RUN"
            )


def points_label(level: Level, by: By) -> str:
    """Returns the name of what is one point in a plot of this grouping, for headings."""
    return {
        "turn": f"{level}s",
        "system": f"means of systems over {level}s",
        "within-item": f"{level}s within items",
        "within-system": f"{level}s within systems",
    }[by]


def scored_qualities(level: RatedLevel, metrics: Sequence[str], by: By) -> list[ScoredQuality]:
    """Pairs each quality of a level with each metric of it."""
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
                found.append(ScoredQuality(level, metric, quality, scores, rated.ratings, groups))
    return found


@dataclass(frozen=True)
class CommonSamples:
    """Several metrics, restricted to the samples that all of them scored."""

    scored: list[ScoredQuality]
    left_out: int
    """Number of rated samples that some metrics scored, but not all."""
    scarcest: str
    """The metric with the fewest scores, if samples are left out."""


def on_common_samples(scored: Sequence[ScoredQuality]) -> CommonSamples:
    """Restricts the metrics of one quality. A metric without any score restricts nothing."""
    has_both = [~np.isnan(one.scores + one.ratings[:, 0]) for one in scored]
    counted = {one.metric: has for one, has in zip(scored, has_both, strict=True) if has.any()}
    if not counted:
        return CommonSamples(list(scored), 0, "")
    common = np.logical_and.reduce(list(counted.values()))
    left_out = int(np.logical_or.reduce(list(counted.values())).sum() - common.sum())
    scarcest = min(counted, key=lambda metric: int(counted[metric].sum())) if left_out else ""
    kept = [replace(one, scores=np.where(common, one.scores, np.nan)) for one in scored]
    return CommonSamples(kept, left_out, scarcest)


def correlate(
    scores: Floats,
    human: Floats,
    groups: Sequence[str],
    by: By,
    bootstrap: Bootstrap | None = None,
    names: Sequence[Name] = NAMES,
    flat: float | None = None,
) -> Mapping[Name, Coefficient]:
    """Returns the correlations of the items that the grouping compares; `flat` as in
    `within_groups`."""
    if by == "turn":
        return correlations(scores, human, bootstrap, names)
    if by == "system":
        means = system_means(scores, human, groups)
        return correlations(means.x, means.y, bootstrap, names)
    return {
        name: within_groups(scores, human, groups, _CORRELATE[name], flat=flat) for name in names
    }


def _row(
    one: ScoredQuality, by: By, bootstrap: Bootstrap | None, rng: np.random.Generator
) -> AgreementRow:
    level, columns = one.level, one.ratings.T
    if level.target.kind == "max-over-raters":
        by_rater = {
            rater: correlate(one.scores, column, one.groups, by)
            for rater, column in zip(level.qualities[one.quality].raters, columns, strict=True)
        }
        found: Mapping[Name, Coefficient] = {
            name: maximum_over_raters({rater: own[name] for rater, own in by_rater.items()})
            for name in NAMES
        }
        pairwise = PairwiseAccuracy(None, None, None, 0, 0, reason=NO_PAIRS)
    else:
        found = correlate(one.scores, columns[0], one.groups, by, bootstrap)
        pairwise = _pairwise(one, columns[0], by, rng)
    shown = found["spearman"]
    return AgreementRow(
        level.dataset,
        one.metric,
        one.quality,
        level.level,
        by,
        shown.n,
        shown.n_missing,
        found,
        str(level.target),
        level.directions[one.metric],
        pairwise,
        shown.ties_x,
        shown.ties_y,
    )


def _pairwise(
    one: ScoredQuality, human: Floats, by: By, rng: np.random.Generator
) -> PairwiseAccuracy:
    scores, groups = one.oriented, one.groups if by.startswith("within") else None
    if by == "system":
        means = system_means(scores, human, one.groups)
        scores, human = means.x, means.y
    return pairwise_accuracy(scores, human, groups, rng=rng)


@dataclass(frozen=True)
class PairwiseAccuracy:
    """`value` is acc_eq, None if there are no pairs, and `reason` says why."""

    value: float | None
    epsilon: float | None
    uncalibrated: float | None
    """acc_eq at epsilon 0, where only equal scores are tied."""
    n: int
    n_missing: int
    n_pairs: int = 0
    n_groups: int = 0
    """Number of groups with at least two complete items; 1 without groups."""
    human_ties: int = 0
    metric_ties: int = 0
    """Number of pairs within epsilon."""
    drawn: bool = False
    """Whether the pairs are a random sample."""
    reason: str = ""


def pairwise_accuracy(
    scores: Numbers,
    human: Numbers,
    groups: Sequence[Hashable] | None = None,
    epsilon: float | None = None,
    rng: np.random.Generator | None = None,
    most_pairs: int = MOST_PAIRS,
) -> PairwiseAccuracy:
    """acc_eq of scores against human ratings, calibrated unless an epsilon is given. `rng` is only
    needed for more than `most_pairs` pairs."""
    pairs = complete_pairs(scores, human)
    members = [np.arange(pairs.n)]
    if groups is not None:
        first, second = (np.asarray(side, dtype=np.float64) for side in (scores, human))
        there = np.flatnonzero(~(np.isnan(first) | np.isnan(second)))
        if len(groups) != len(first):
            raise ValueError(f"{len(groups)} groups for {len(first)} items")
        members = group_members([groups[i] for i in there.tolist()], pairs.n)
    members = [items for items in members if len(items) > 1]
    if not members:
        return PairwiseAccuracy(
            None, None, None, pairs.n, pairs.n_missing, reason="no two items to compare"
        )
    if all(np.ptp(pairs.y[items]) == 0 for items in members):
        return PairwiseAccuracy(None, None, None, pairs.n, pairs.n_missing, reason=CONSTANT)
    total = sum(len(items) * (len(items) - 1) // 2 for items in members)
    drawn = total > most_pairs
    if drawn:
        if rng is None:
            raise ValueError(f"{total} pairs are more than {most_pairs}: pass a generator to draw")
        left, right, weight = _drawn_pairs(members, most_pairs, rng)
    else:
        left, right, weight = _all_pairs(members)
    metric, people = pairs.x[left] - pairs.x[right], pairs.y[left] - pairs.y[right]
    distance = np.abs(metric)
    gain_tied = np.where(people == 0, weight, 0.0)
    gain_ordered = np.where((np.sign(metric) == np.sign(people)) & (people != 0), weight, 0.0)
    if epsilon is None:
        epsilon = _best_epsilon(distance, gain_tied, gain_ordered)

    def accuracy(limit: float) -> float:
        return float(np.where(distance <= limit, gain_tied, gain_ordered).sum())

    return PairwiseAccuracy(
        accuracy(epsilon),
        epsilon,
        accuracy(0.0),
        pairs.n,
        pairs.n_missing,
        len(left),
        len(members),
        int((people == 0).sum()),
        int((distance <= epsilon).sum()),
        drawn,
    )


def _best_epsilon(distance: Floats, gain_tied: Floats, gain_ordered: Floats) -> float:
    """As epsilon grows, each pair that becomes tied gains `gain_tied` and loses `gain_ordered`."""
    order = np.argsort(distance, kind="stable")
    limits = distance[order]
    gained = np.cumsum((gain_tied - gain_ordered)[order])
    last = np.flatnonzero(np.append(limits[1:] != limits[:-1], True))  # equal ones tie together
    candidates, gains = limits[last], gained[last]
    if candidates[0] > 0:
        candidates, gains = np.append(0.0, candidates), np.append(0.0, gains)
    # weights of 1/pairs add up with rounding: what is equal up to that is equal
    return float(candidates[np.argmax(gains >= gains.max() - 1e-12)])


def _all_pairs(members: Sequence[Integers]) -> tuple[Integers, Integers, Floats]:
    left, right, weight = [], [], []
    for items in members:
        i, j = np.triu_indices(len(items), k=1)
        left.append(items[i])
        right.append(items[j])
        weight.append(np.full(len(i), 1 / (len(i) * len(members))))
    return np.concatenate(left), np.concatenate(right), np.concatenate(weight)


def _drawn_pairs(
    members: Sequence[Integers], count: int, rng: np.random.Generator
) -> tuple[Integers, Integers, Floats]:
    """Draws a group, then two different items of it: each pair is as likely as its weight."""
    sizes = np.array([len(items) for items in members])
    offset = np.cumsum(sizes) - sizes
    group = rng.integers(0, len(members), size=count)
    first = rng.integers(0, sizes[group])
    second = rng.integers(0, sizes[group] - 1)
    second += second >= first
    items = np.concatenate(members)
    weight = np.full(count, 1 / count)
    return items[offset[group] + first], items[offset[group] + second], weight
