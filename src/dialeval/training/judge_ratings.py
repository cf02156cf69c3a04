"""The second stage of `judge`: weights over what several readers say, fitted on ratings of people.

    minimise  mean over sets of mean_i (y_i - w . t_i)^2                  t, y centred within a set
            + PAIRS mean over pairs of log(1 + exp(-w . (t_good - t_bad)))
            + strength |w - w_0|^2              PRODUCT, VECTOR times for products, for the vector

t are the terms of an answer (`models/quality_stack`). y is the rank of the mean rating within its
set, made uniform with deviation 1, so that the scales and habits of raters do not matter, and every
set counts the same. The pairs are half of the behaviour pairs, and graded answers that contradict
what was said: faults that the rated sets hardly show. w_0 is 0, or the weights of the judge to
start from, so that few ratings change little.

The ratings and features themselves are made in `examples/rated_answers.py`.

Three functions say what a fitted judge is worth on answers that it has not seen:

    across_sets      several sets, each judged by weights from the others
    adapt            ratings of one's own, each judged by weights from other folds of them
    learning_curve   a set that is left out, judged after some of its ratings

The widths of intervals and the doubt about two systems come from such answers, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dialeval.errors import UsageError
from dialeval.models.quality_judge import Scale
from dialeval.models.quality_stack import FEATURES, PRODUCTS, Floats, Weights, terms_of
from dialeval.question import ASPECTS
from dialeval.training.card import partial_correlation
from dialeval.training.examples.rated_answers import Rated, joined, shares_dialogues

PAIRS = 0.1
"""How much the pairs count against the ratings."""

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


MANY = 30
"""Answers of a system whose mean is held against people."""

FEW = 10
"""A set with no more answers than this is not learned from."""

LENGTH = FEATURES.index("log length")


@dataclass(frozen=True)
class LeftOut:
    """A set, judged by weights that were fitted on the others."""

    name: str
    judged: Mapping[str, Floats]
    """Per aspect, on the scale from 1 to 5."""
    ratings: Mapping[str, Floats]
    features: Floats
    systems: tuple[str, ...]

    def system_means(self) -> list[tuple[float, float]]:
        """Per system with `MANY` answers or more its mean judgement and its mean rating."""
        known = ~np.isnan(self.ratings["overall"])
        names = np.array(self.systems)
        places = [np.flatnonzero(known & (names == name)) for name in sorted(set(self.systems))]
        return [
            (float(self.judged["overall"][own].mean()), float(self.ratings["overall"][own].mean()))
            for own in places
            if len(own) >= MANY
        ]

    def residuals(self) -> Floats:
        """How far the mean ratings lie from the overall judgement."""
        known = ~np.isnan(self.ratings["overall"])
        found: Floats = self.ratings["overall"][known] - self.judged["overall"][known]
        return found


def leave_one_out(
    rated: Sequence[Rated], pairs: Floats, together: Callable[[str], str] = lambda name: name
) -> list[LeftOut]:
    """Each set judged by what the others taught. Sets with the same `together` share dialogues and
    are left out together; so is an answer of another set to turns that the set has, too."""
    found = []
    for one in rated:
        others = others_of(rated, one, together)
        if not others:
            continue
        weights = fit(others, pairs)
        judged = fit_scale(others, weights).ratings(weights.judge(one.features))
        columns = {aspect: judged[:, place] for place, aspect in enumerate(ASPECTS)}
        found.append(LeftOut(one.name, columns, one.ratings, one.features, one.systems))
    return found


def others_of(rated: Sequence[Rated], one: Rated, together: Callable[[str], str]) -> list[Rated]:
    contexts = frozenset(one.contexts)
    others = [
        other.without(contexts) for other in rated if together(other.name) != together(one.name)
    ]
    return [other for other in others if len(other.contexts) > FEW]


def margin_of(left_out: Sequence[LeftOut], share: float = 0.9) -> float:
    """Half the width of the interval around a judgement that holds this share of the mean ratings,
    every set counting the same."""
    sizes = np.concatenate([np.abs(one.residuals()) for one in left_out])
    each = np.concatenate(
        [np.full(len(own := one.residuals()), 1.0 / len(own)) for one in left_out]
    )
    order = np.argsort(sizes)
    reached = np.cumsum(each[order]) / each.sum()
    return float(sizes[order][min(int(np.searchsorted(reached, share)), len(sizes) - 1)])


def doubt_of(left_out: Sequence[LeftOut]) -> float:
    """How far the difference of two systems' mean ratings lies from that of their judgements: the
    root of the mean square over pairs of systems, every set counting the same."""
    squares = [
        float(
            np.mean(
                [
                    ((one[0] - other[0]) - (one[1] - other[1])) ** 2
                    for one, other in combinations(means, 2)
                ]
            )
        )
        for own in left_out
        if len(means := own.system_means()) > 1
    ]
    return math.sqrt(float(np.mean(squares))) if squares else 1.0


def systems_ordered(left_out: Sequence[LeftOut]) -> tuple[int, int]:
    """Pairs of systems of one set that are ordered as people order them, and all pairs."""
    pairs = [pair for own in left_out for pair in combinations(own.system_means(), 2)]
    right = [(one[0] - other[0]) * (one[1] - other[1]) > 0 for one, other in pairs]
    return sum(right), len(right)


def coverage_of(left_out: Sequence[LeftOut], share: float = 0.9) -> dict[str, float]:
    """Per set the share of its ratings inside an interval whose width the other sets gave."""
    return {
        one.name: float(
            np.mean(
                np.abs(one.residuals())
                <= margin_of([other for other in left_out if other is not one], share)
            )
        )
        for one in left_out
        if len(left_out) > 1
    }


@dataclass(frozen=True)
class Fitted:
    """Weights and their scale, and what was measured on answers that they had not seen."""

    weights: Weights
    scale: Scale
    scores: Mapping[str, float | None]
    summary: str


def across_sets(rated: Sequence[Rated], pairs: Floats) -> Fitted:
    """From nothing, on several sets: every number of the card is one of a set that was left out."""
    left_out = leave_one_out(rated, pairs, shares_dialogues)
    if len(left_out) < 2:
        raise UsageError(
            "a judge from nothing takes two rated sets or more: each is left out once. With one,"
            " start from the shipped judge"
        )
    scores: dict[str, float | None] = {}
    for one in left_out:
        for aspect, ratings in one.ratings.items():
            if aspect in LEARNED:
                scores[f"{one.name}, left out: Spearman of {aspect}"] = spearman(
                    one.judged[aspect], ratings
                )
        own, length = one.judged["overall"], one.features[:, LENGTH]
        scores[f"{one.name}, left out: overall given length"] = partial_correlation(
            spearman(own, one.ratings["overall"]),
            spearman(own, length),
            spearman(length, one.ratings["overall"]),
        )
    defined = [
        value for name, value in scores.items() if name.endswith("of overall") and value is not None
    ]
    scores["mean over sets, left out: Spearman of overall"] = float(np.mean(defined))
    for name, covered in coverage_of(left_out).items():
        scores[f"{name}, left out: share of ratings in the interval (nominal 0.9)"] = covered
    right, compared = systems_ordered(left_out)
    scores[f"pairs of systems ordered as people do, left out ({compared} pairs)"] = (
        right / compared if compared else None
    )
    weights = fit(rated, pairs)
    return Fitted(
        weights,
        replace(fit_scale(rated, weights), margin=margin_of(left_out), doubt=doubt_of(left_out)),
        scores,
        "How people would rate an answer, from 1 to 5. Weights over what several readers say,"
        " fitted on ratings of several data sets, every set counting the same.",
    )


STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""How much it costs to leave the judge that is started from; cross-validation chooses."""

FOLDS = 5


def adapt(rated: Sequence[Rated], start: Weights, scale: Scale, seed: int) -> Fitted:
    """From a judge that is there, on ratings of one's own: as far from it as cross-validation
    says, and not at all where the gain may be chance."""
    everything = joined(rated)
    count = len(everything.contexts)
    if count < 2 * FOLDS:
        raise UsageError(f"{count} rated answers are too few: it takes at least {2 * FOLDS}")
    ratings = everything.ratings["overall"]
    none = np.zeros((0, 2, everything.features.shape[1]))
    folds = np.random.default_rng(seed).permutation(count) % FOLDS
    judged = start.judge(everything.features)[:, 0]
    before = after = spearman(judged, ratings)
    best, started = None, judged
    for strength in STRENGTHS:
        unseen = np.empty(count)
        for fold in range(FOLDS):
            inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            weights = fit(
                [everything.rows(inside)],
                none,
                start=start,
                strength=strength,
                aspects=("overall",),
            )
            unseen[outside] = weights.judge(everything.features[outside])[:, 0]
        gained = spearman(unseen, ratings)
        if gained is not None and (after is None or gained > after):
            best, after, judged = strength, gained, unseen
    if best is not None and not _better(judged, started, ratings, seed):
        best, after, judged = None, before, started
    weights = start if best is None else fit([everything], none, start=start, strength=best)
    own = fit_scale([everything], weights, scale)
    # `judged` was judged by weights that had not seen the answer: the margin is honest.
    column = np.tile(judged[:, None], (1, len(ASPECTS)))
    residuals = np.abs(ratings - own.ratings(column)[:, 0])
    margin = float(np.quantile(residuals[~np.isnan(residuals)], 0.9))
    how = "no sure gain: the weights are those it started from"
    if best is not None:
        how = f"strength {best:g}"
    return Fitted(
        weights,
        replace(own, margin=margin),
        {
            f"Spearman with your {count} ratings, before": before,
            "Spearman with your ratings, adapted (cross-validated)": after,
        },
        f"The judge, adapted to ratings of your own ({how}).",
    )


SURE = 0.95
"""A gain counts if this share of draws with replacement shows it."""


def _better(new: Floats, old: Floats, ratings: Floats, seed: int, rounds: int = 200) -> bool:
    generator = np.random.default_rng(seed)
    drawn = [generator.integers(0, len(ratings), len(ratings)) for _ in range(rounds)]
    gains = [
        (spearman(new[own], ratings[own]) or 0.0) - (spearman(old[own], ratings[own]) or 0.0)
        for own in drawn
    ]
    return float(np.mean(np.array(gains) > 0.0)) >= SURE


@dataclass(frozen=True)
class Learned:
    """Ratings of a set that the judge was adapted to, and its Spearman with the set's others."""

    name: str
    ratings: int
    before: float
    after: float


def learning_curve(
    rated: Sequence[Rated],
    pairs: Floats,
    sizes: Sequence[int],
    *,
    draws: int = 3,
    rest: int = 200,
) -> list[Learned]:
    """How much does a judge that never saw a set gain from some of its ratings?

    For each set with `rest` answers more than the largest size: a judge from the other sets is
    adapted to ratings drawn at random, and tried on the answers that were not drawn.
    """
    found = []
    for one in rated:
        count = len(one.contexts)
        if count < max(sizes) + rest:
            continue
        others = others_of(rated, one, shares_dialogues)
        start = fit(others, pairs)
        scale = fit_scale(others, start)
        orders = [np.random.default_rng(seed).permutation(count) for seed in range(draws)]
        for size in sizes:
            tried = []
            for seed, order in enumerate(orders):
                new = adapt([one.rows(order[:size])], start, scale, seed).weights
                unseen = one.rows(order[max(sizes) :])
                tried.append(
                    [
                        spearman(weights.judge(unseen.features)[:, 0], unseen.ratings["overall"])
                        or 0.0
                        for weights in (start, new)
                    ]
                )
            before, after = np.mean(tried, axis=0)
            found.append(Learned(one.name, size, float(before), float(after)))
    return found


def spearman(judged: Floats, ratings: Floats) -> float | None:
    """None where one side does not vary."""
    from dialeval.agreement.correlation import correlations

    known = ~np.isnan(ratings)
    return correlations(judged[known], ratings[known])["spearman"].value
