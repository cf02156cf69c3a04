"""The second stage of `judge`: weights over what several readers say, fitted on ratings of people.

    minimise  mean over sets of mean_i (y_i - w . t_i)^2                  t, y centred within a set
            + PAIRS mean over pairs of log(1 + exp(-w . (t_good - t_bad)))
            + strength |w - w_0|^2              PRODUCT, VECTOR times for products, for the vector

t are the terms of an answer (`models/quality_stack`). y is the rank of the mean rating within its
set, made uniform with deviation 1, so that the scales and habits of raters do not matter, and every
set counts the same. The pairs are the half of the behaviour pairs that may be learned from: faults
that the rated sets hardly show. w_0 is 0, or the weights of the judge to start from, so that few
ratings change little.

The ratings and features themselves are made in `examples/rated_answers.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from dialeval.models.quality_judge import Scale
from dialeval.models.quality_stack import FEATURES, PRODUCTS, Floats, Weights, terms_of
from dialeval.question import ASPECTS
from dialeval.training.examples.rated_answers import Rated

PAIRS = 0.2
"""How much the behaviour pairs count against the ratings."""

STRENGTH = 0.1
"""How much large weights cost."""

PRODUCT = 10.0
"""How many times more the weights of products of two features cost."""

VECTOR = 100.0
"""How many times more those of the answer's vector cost: it has hundreds of numbers."""

LEARNED = ("overall", "relevance", "fluency", "engagement")
"""Aspects that ratings teach; of the others the quality-judge has the last word."""


def fit(
    rated: Sequence[Rated],
    pairs: Floats,
    *,
    start: Weights | None = None,
    strength: float = STRENGTH,
    aspects: Collection[str] = LEARNED,
) -> Weights:
    """Weights from all of these sets, and from `pairs`: (pairs, good and bad, features)."""
    if start is None:
        means, deviations = _means_and_deviations(rated)
        before = np.zeros((len(ASPECTS), len(means) + len(PRODUCTS)))
    else:
        means, deviations, before = start.means, start.deviations, start.weights
    weights = before.copy()
    good, bad = (terms_of(pairs[:, side], means, deviations) for side in (0, 1))
    for row, aspect in enumerate(ASPECTS):
        if aspect not in LEARNED:
            # What the quality-judge says, as it is: (x - m) / d times d.
            weights[row] = 0.0
            weights[row, row] = deviations[row]
        if aspect not in aspects:
            continue
        sets = []
        for one in rated:
            features, ranks = one.targets(aspect)
            if len(ranks):
                terms = terms_of(features, means, deviations)
                sets.append((terms - terms.mean(axis=0), ranks))
        own_pairs = good - bad if aspect == "overall" else good[:0]
        if sets:
            weights[row] = _minimum(sets, own_pairs, before[row], strength)
    return Weights(weights, means, deviations)


def _means_and_deviations(rated: Sequence[Rated]) -> tuple[Floats, Floats]:
    """The mean of the sets' means of each feature, and its deviation within sets."""
    means = [one.features.mean(axis=0) for one in rated]
    within = np.concatenate([one.features - own for one, own in zip(rated, means, strict=True)])
    return np.mean(means, axis=0), within.std(axis=0) + 1e-6


def fit_scale(rated: Sequence[Rated], weights: Weights, start: Scale | None = None) -> Scale:
    """The line under the sigmoid that brings judgements nearest to mean ratings, set by set.

    Where nobody rated an aspect, `start` has its line. Of aspects that ratings never teach it is
    as the quality-judge has it. `start` also has the margin and the doubt.
    """
    start = start or Scale.neutral()
    slopes, shifts = [], []
    for row, aspect in enumerate(ASPECTS):
        if aspect not in LEARNED:
            slopes.append(1.0)
            shifts.append(float(weights.means[row]))
            continue
        points = [
            (weights.judge(one.features)[known, row], one.ratings[aspect][known])
            for one in rated
            if aspect in one.ratings and (known := ~np.isnan(one.ratings[aspect])).any()
        ]
        known_line = (start.slopes[row], start.shifts[row])
        slope, shift = _sigmoid_line(points) if points else known_line
        slopes.append(slope)
        shifts.append(shift)
    return replace(start, slopes=tuple(slopes), shifts=tuple(shifts))


def settings_of(weights: Weights) -> dict[str, float]:
    """What the card says of a fit: its constants, and the weight of each named term on overall."""
    names = (*FEATURES, *map(" x ".join, PRODUCTS))
    return {
        "strength": STRENGTH,
        "strength of products": STRENGTH * PRODUCT,
        "strength of the vector": STRENGTH * VECTOR,
        "pairs": PAIRS,
        **{
            f"weight of {name} on overall": float(weights.weights[0, place])
            for place, name in enumerate(names)
        },
    }


def _minimum(
    sets: Sequence[tuple[Floats, Floats]], pairs: Floats, before: Floats, strength: float
) -> Floats:
    """Newton's method: the objective is convex and has as many unknowns as there are features."""
    cost = np.full(len(before), strength * VECTOR)
    cost[: len(FEATURES)] = strength
    cost[len(FEATURES) : len(FEATURES) + len(PRODUCTS)] = strength * PRODUCT
    hessian = 2.0 * np.diag(cost)
    right = 2.0 * cost * before
    for x, y in sets:
        hessian += 2.0 / len(sets) * (x.T @ x) / len(y)
        right += 2.0 / len(sets) * (x.T @ y) / len(y)
    weights = before.copy()
    for _ in range(50):
        gradient = hessian @ weights - right
        curvature = hessian.copy()
        if len(pairs):
            wrong = 1.0 / (1.0 + np.exp(np.clip(pairs @ weights, -50, 50)))
            gradient -= PAIRS * (pairs.T @ wrong) / len(pairs)
            curvature += PAIRS * (pairs.T * (wrong * (1.0 - wrong))) @ pairs / len(pairs)
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-10:
            break
    return weights


def _sigmoid_line(points: Sequence[tuple[Floats, Floats]]) -> tuple[float, float]:
    """a, c of 1 + 4 sigmoid(a z + c), by least squares in which every set counts the same."""
    z = np.concatenate([own for own, _ in points])
    y = np.concatenate([ratings for _, ratings in points])
    each = np.concatenate([np.full(len(own), 1.0 / len(own)) for own, _ in points])
    found = np.array([1.0, 0.0])
    for _ in range(100):
        share = 1.0 / (1.0 + np.exp(-np.clip(found[0] * z + found[1], -30, 30)))
        slope = 4.0 * share * (1.0 - share)
        jacobian = np.stack((slope * z, slope), axis=1) * np.sqrt(each)[:, None]
        residual = (y - 1.0 - 4.0 * share) * np.sqrt(each)
        step = np.linalg.solve(jacobian.T @ jacobian + 1e-3 * np.eye(2), jacobian.T @ residual)
        found = found + step
        if np.abs(step).max() < 1e-10:
            break
    return float(found[0]), float(found[1])
