"""Pairwise accuracy with tie calibration (Deutsch, Foster and Freitag, EMNLP 2023).

acc_eq is the share of pairs of items that the metric orders as people do. A tie is an answer, too:

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

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from dialeval.agreement.arithmetic import Floats, Integers
from dialeval.agreement.correlation import CONSTANT, Numbers, complete_pairs, group_members

MOST_PAIRS = 5_000_000
"""They take about 300 MB, and give an accuracy to +-.0005."""


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
