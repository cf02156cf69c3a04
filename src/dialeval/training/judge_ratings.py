"""The second stage of `judge`: weights over what several readers say, fitted on ratings of people.

    minimise  mean over sets of mean_i (y_i - w . x_i)^2                  x, y centred within a set
            + PAIRS mean over pairs of log(1 + exp(-w . (x_good - x_bad)))
            + strength |w - w_0|^2                             of the vector's weights: VECTOR times

y is the rank of the mean rating within its set, made uniform with deviation 1, so that the scales
and habits of raters do not matter, and every set counts the same. The pairs are the half of the
behaviour pairs that may be learned from: faults that the rated sets hardly show. w_0 is 0, or the
weights of the judge to start from, so that few ratings change little.

A quality of a set teaches one aspect (`ASPECT_OF`); its principal one teaches `overall`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt

from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.examples.behaviour import behaviour_pairs
from dialeval.metrics.judge import assessed
from dialeval.model_store.presets import PRESETS
from dialeval.models.quality_judge import Scale
from dialeval.models.quality_stack import FEATURES, Floats, Weights, asked, features_of
from dialeval.question import ASPECTS, Assess
from dialeval.sample import Sample, letters

RELEVANCE = "judge-relevance-minilm-l6"
"""What `mme-relevance` is, learned from dialogues that no rated set shares."""

PAIRS = 0.3
"""How much the behaviour pairs count against the ratings."""

STRENGTH = 0.01
"""How much large weights cost."""

VECTOR = 1000.0
"""How many times more those of the answer's vector cost: it has hundreds of numbers."""

PRINCIPAL = ("overall", "appropriateness", "relevance", "coherence", "engagement")
"""The quality of a set that teaches `overall`: the first of these that it has."""

ASPECT_OF = {
    "relevance": "relevance",
    "relevant": "relevance",
    "appropriateness": "relevance",
    "semantically appropriate": "relevance",
    "maintains context": "relevance",
    "coherence": "relevance",
    "correct": "relevance",
    "grammar": "fluency",
    "fluent": "fluency",
    "fluency": "fluency",
    "natural": "fluency",
    "understandable": "fluency",
    "language_usage": "fluency",
    "engaging": "engagement",
    "engagement": "engagement",
    "interesting": "engagement",
    "specific": "engagement",
    "content": "engagement",
    "informativeness": "engagement",
}
MANY = 30
"""Answers of a system whose mean is held against people."""

FEW = 10
"""A set with no more answers than this is not learned from."""

LEARNED = ("overall", "relevance", "fluency", "engagement")
"""Aspects that ratings teach; of the others the quality-judge has the last word."""


@dataclass(frozen=True)
class Rated:
    """The rated answers of a set: features, and per aspect the mean ratings from 1 to 5 (NaN:
    nobody said)."""

    name: str
    features: Floats
    ratings: Mapping[str, Floats]
    contexts: tuple[str, ...]
    """What was said before each answer, letters alone: copies in other sets are known by it."""
    systems: tuple[str, ...]
    """Who gave each answer; empty where nobody says."""

    def without(self, contexts: Collection[str]) -> Rated:
        """The answers to anything else."""
        return self.rows(
            [place for place, said in enumerate(self.contexts) if said not in contexts]
        )

    def rows(self, kept: Sequence[int] | npt.NDArray[np.intp]) -> Rated:
        return Rated(
            self.name,
            self.features[kept],
            {aspect: ratings[kept] for aspect, ratings in self.ratings.items()},
            tuple(self.contexts[place] for place in kept),
            tuple(self.systems[place] for place in kept),
        )

    def targets(self, aspect: str) -> tuple[Floats, Floats]:
        """Features and y of the answers that were rated, both centred."""
        ratings = self.ratings.get(aspect)
        known = np.zeros(0, dtype=bool) if ratings is None else ~np.isnan(ratings)
        if ratings is None or known.sum() < 3:
            return self.features[:0], np.zeros(0)
        own = self.features[known]
        return own - own.mean(axis=0), _uniform(ratings[known])


@dataclass(frozen=True)
class Readers:
    """The models that are asked."""

    judge: str
    encoder: str = PRESETS["default"]["sentence-encoder"]
    relevance: str = RELEVANCE


def rated_features(
    name: str,
    samples: Sequence[Sample],
    readers: Readers,
    answerer: Answerer,
    quality: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Rated:
    """Asks the readers about every rated answer; `quality` is what teaches `overall`."""
    kept = [s for s in samples if s.response and s.response.strip() and s.context and s.ratings]
    if not kept:
        raise UsageError(f"{name}: holds no rated answer with turns before it")
    questions = [assessed(sample, readers.judge) for sample in kept]
    features = _features(questions, readers, answerer, progress)
    contexts = tuple(letters(" ".join(turn.text for turn in s.context)) for s in kept)
    systems = tuple(sample.system for sample in kept)
    return Rated(name, features, _ratings(name, kept, quality), contexts, systems)


def pair_features(
    readers: Readers, answerer: Answerer, split: Literal["learn", "test"] = "learn"
) -> Floats:
    """Features of the good answer minus those of the bad one, a row a pair."""
    questions = [
        assessed(sample, readers.judge)
        for pair in behaviour_pairs(split)
        for sample in pair.samples()
    ]
    found = _features(questions, readers, answerer, lambda done, total: None)
    return found[0::2] - found[1::2]


def fit(
    rated: Sequence[Rated],
    pairs: Floats,
    *,
    start: Weights | None = None,
    strength: float = STRENGTH,
) -> Weights:
    """Weights from all of these sets."""
    everything = np.concatenate([one.features for one in rated])
    if start is None:
        means = np.mean([one.features.mean(axis=0) for one in rated], axis=0)
        spread = everything - np.repeat(
            [one.features.mean(axis=0) for one in rated], [len(one.features) for one in rated], 0
        )
        deviations = spread.std(axis=0) + 1e-6
        before = np.zeros((len(ASPECTS), everything.shape[1]))
    else:
        means, deviations, before = start.means, start.deviations, start.weights
    weights = before.copy()
    for row, aspect in enumerate(ASPECTS):
        if aspect not in LEARNED:
            # What the quality-judge says, as it is: (x - m) / d times d.
            weights[row] = 0.0
            weights[row, row] = deviations[row]
            continue
        sets = [one.targets(aspect) for one in rated]
        sets = [(x / deviations, y) for x, y in sets if len(y)]
        own_pairs = pairs / deviations if aspect == "overall" else pairs[:0]
        if sets:
            weights[row] = _minimum(sets, own_pairs, before[row], strength)
    return Weights(weights, means, deviations)


def fit_scale(
    rated: Sequence[Rated], weights: Weights, margin: float = 2.0, doubt: float = 1.0
) -> Scale:
    """The line under the sigmoid that brings judgements nearest to mean ratings, set by set; that
    of aspects without ratings is as the quality-judge has it."""
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
        slope, shift = _sigmoid_line(points) if points else (1.0, 0.0)
        slopes.append(slope)
        shifts.append(shift)
    return Scale(tuple(slopes), tuple(shifts), margin, doubt)


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
        contexts = frozenset(one.contexts)
        others = [
            other.without(contexts) for other in rated if together(other.name) != together(one.name)
        ]
        others = [other for other in others if len(other.contexts) > FEW]
        if not others:
            continue
        weights = fit(others, pairs)
        judged = fit_scale(others, weights).ratings(weights.judge(one.features))
        columns = {aspect: judged[:, place] for place, aspect in enumerate(ASPECTS)}
        found.append(LeftOut(one.name, columns, one.ratings, one.features, one.systems))
    return found


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
        scores[f"{one.name}, left out: overall given length"] = partial(
            one.judged["overall"], one.ratings["overall"], one.features[:, LENGTH]
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
        fit_scale(rated, weights, margin_of(left_out), doubt_of(left_out)),
        scores,
        "How people would rate an answer, from 1 to 5. Weights over what several readers say,"
        " fitted on ratings of several data sets, every set counting the same.",
    )


STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""How much it costs to leave the judge that is started from; cross-validation chooses."""

FOLDS = 5


def adapt(rated: Sequence[Rated], start: Weights, doubt: float, seed: int) -> Fitted:
    """From a judge that is there, on ratings of one's own: as far from it as cross-validation
    says, and not at all where nothing is gained."""
    everything = _joined(rated)
    count = len(everything.contexts)
    if count < 2 * FOLDS:
        raise UsageError(f"{count} rated answers are too few: it takes at least {2 * FOLDS}")
    none = everything.features[:0]
    folds = np.random.default_rng(seed).permutation(count) % FOLDS
    before = start.judge(everything.features)[:, 0]
    ratings = everything.ratings["overall"]
    shipped = spearman(before, ratings)
    gained: dict[float, float] = {}
    for strength in STRENGTHS:
        judged = np.empty(count)
        for fold in range(FOLDS):
            inside, outside = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            weights = fit(
                [everything.rows(inside)], everything.features[:0], start=start, strength=strength
            )
            judged[outside] = weights.judge(everything.features[outside])[:, 0]
        gained[strength] = spearman(judged, ratings) or 0.0
    best = max(gained, key=lambda strength: gained[strength])
    moves = shipped is None or gained[best] > shipped
    weights = fit([everything], none, start=start, strength=best) if moves else start
    scale = fit_scale([everything], weights)
    judged = scale.ratings(weights.judge(everything.features))[:, 0]
    residuals = np.abs(ratings - judged)
    margin = float(np.quantile(residuals[~np.isnan(residuals)], 0.9))
    scores: dict[str, float | None] = {
        f"Spearman with your {count} ratings, before": shipped,
        "Spearman with your ratings, adapted (cross-validated)": gained[best] if moves else shipped,
    }
    what = (
        f"strength {best:g}" if moves else "nothing gained: the weights are those it started from"
    )
    return Fitted(
        weights,
        replace(scale, margin=margin, doubt=doubt),
        scores,
        f"The judge, adapted to ratings of your own ({what}).",
    )


LENGTH = FEATURES.index("log length")

SHARED = (
    frozenset({"fed/all", "dstc10/fed-turn", "dstc10/fed-dial"}),
    frozenset({"usr-topical/all", "dstc10/topical-usr"}),
    frozenset({"grade-dailydialog/all", "dstc10/dailydialog-grade"}),
)
"""Rated sets with the same dialogues."""


def shares_dialogues(name: str) -> str:
    """One name for all sets that share their dialogues."""
    return next((min(group) for group in SHARED if {name, f"{name}/all"} & group), name)


def spearman(judged: Floats, ratings: Floats) -> float | None:
    """None where one side does not vary."""
    from dialeval.agreement.correlation import correlations

    known = ~np.isnan(ratings)
    return correlations(judged[known], ratings[known])["spearman"].value


def partial(judged: Floats, ratings: Floats, given: Floats) -> float | None:
    """Spearman's correlation of two, given a third."""
    both, one, other = (
        spearman(judged, ratings), spearman(judged, given), spearman(ratings, given)
    )  # fmt: skip
    if both is None or one is None or other is None:
        return both
    rest = (1.0 - one * one) * (1.0 - other * other)
    return float((both - one * other) / np.sqrt(rest)) if rest > 0 else None


def _joined(rated: Sequence[Rated]) -> Rated:
    aspects = {aspect for one in rated for aspect in one.ratings}
    return Rated(
        " + ".join(one.name for one in rated),
        np.concatenate([one.features for one in rated]),
        {
            aspect: np.concatenate(
                [one.ratings.get(aspect, np.full(len(one.contexts), np.nan)) for one in rated]
            )
            for aspect in aspects
        },
        tuple(context for one in rated for context in one.contexts),
        tuple(system for one in rated for system in one.systems),
    )


def _minimum(
    sets: Sequence[tuple[Floats, Floats]], pairs: Floats, before: Floats, strength: float
) -> Floats:
    """Newton's method: the objective is convex and has as many unknowns as there are features."""
    cost = np.where(np.arange(len(before)) < len(FEATURES), strength, strength * VECTOR)
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


def _uniform(ratings: Floats) -> Floats:
    """Ranks as if drawn evenly, with mean 0 and deviation 1; equal ratings stay equal."""
    order = np.unique(ratings, return_inverse=True)[1]
    counts = np.bincount(order)
    middle = np.cumsum(counts) - (counts - 1) / 2.0 - 0.5
    ranks = middle[order] / len(ratings) - 0.5
    spread = ranks.std()
    found: Floats = ranks / spread if spread else ranks
    return found


def _ratings(name: str, samples: Sequence[Sample], quality: str | None) -> dict[str, Floats]:
    """Per aspect the mean over its qualities, each brought to 1 to 5 by its scale."""
    values: dict[str, Floats] = {}
    for label in dict.fromkeys(label for sample in samples for label in sample.ratings):
        column = np.full(len(samples), np.nan)
        for place, sample in enumerate(samples):
            rating = sample.ratings.get(label)
            if rating is not None and rating.mean is not None:
                column[place] = rating.mean
        scale = next((s.ratings[label].scale for s in samples if label in s.ratings), None)
        low, high = scale or (float(np.nanmin(column)), float(np.nanmax(column)))
        if high > low:
            values[label] = 1.0 + 4.0 * (column - low) / (high - low)
    principal = _principal(name, list(values), quality)
    taught: dict[str, list[Floats]] = {"overall": [values[principal]]}
    for label, column in values.items():
        if aspect := ASPECT_OF.get(label.casefold()):
            taught.setdefault(aspect, []).append(column)
    return {aspect: np.mean(columns, axis=0) for aspect, columns in taught.items()}


def _principal(name: str, labels: Sequence[str], quality: str | None) -> str:
    if quality is not None:
        if quality not in labels:
            raise UsageError(
                f"{name}: there is no quality {quality!r}. There are: {', '.join(labels)}"
            )
        return quality
    by_name = {label.casefold(): label for label in labels}
    found = next((by_name[one] for one in PRINCIPAL if one in by_name), None)
    if found is None and len(labels) == 1:
        found = labels[0]
    if found is None:
        raise UsageError(
            f"{name}: which quality is the judge to learn? Say --quality NAME:"
            f" {', '.join(labels) or 'there is none with more than one value'}"
        )
    return found


def _features(
    questions: Sequence[Assess],
    readers: Readers,
    answerer: Answerer,
    progress: Callable[[int, int], None],
) -> Floats:
    wanted = [asked(q, readers.judge, readers.encoder, readers.relevance) for q in questions]
    answers = answerer.answer((one for own in wanted for one in own), progress)
    return np.stack(
        [
            features_of(question, [answers[one] for one in own])
            for question, own in zip(questions, wanted, strict=True)
        ]
    )
