"""Is a composition better than its rivals over data sets, what does it need, and why does it lose?

Two methods are compared on left-out sets, where both have a correlation. What is drawn or turned
round is a *family* of sets that share conversations (`evidence.py`): the qualities of one set go
up and down together, so that 43 pairs of set and quality are no 43 observations.

    value     mean of the differences, as `mean` weighs them: by set, or by pair of set and quality
    interval  of that mean where families are drawn with replacement (percentiles of 10,000 draws)
    p         two-sided, by signs: the share of all ways to turn families round whose mean is as far
              from 0 (all of them up to 16 families, else 65,536 at random)

`learning_curve` fits on fewer and fewer families. `explain` holds weights that were learned
elsewhere against those that a set would have liked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Literal

import numpy as np

from dialeval.agreement.arithmetic import Floats
from dialeval.agreement.correlation import spearman
from dialeval.agreement.dstc10 import RhoByQuality, flat_mean, two_level_mean
from dialeval.compose.evidence import Gathered, composed
from dialeval.compose.fitting import FitOptions, compose
from dialeval.compose.leave_one_out import CRS, SINGLE, LeaveOneOut, try_on, weights_on
from dialeval.metrics.composition import Composition

Mean = Literal["by set", "by quality"]

EXACT = 16
"""Up to this many families, every combination of signs is tried."""

DRAWS = 10_000


@dataclass(frozen=True)
class Difference:
    """One method less another. `families` were compared, and `better` of them are above 0."""

    value: float
    low: float
    high: float
    p: float
    families: int
    better: int

    def __str__(self) -> str:
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}], p = {self.p:.3f}"


def difference(
    one: RhoByQuality,
    other: RhoByQuality,
    families: Iterable[Sequence[str]],
    mean: Mean = "by set",
    seed: int = 0,
) -> Difference | None:
    """Compares two methods over families of data sets, by name; None where nowhere both have a
    correlation."""
    sums, weights = [], []
    for family in families:
        gains = [found for name in family if (found := _gains(one, other, name))]
        if gains:
            by_set = mean == "by set"
            sums.append(sum(fmean(own) if by_set else sum(own) for own in gains))
            weights.append(sum(1 if by_set else len(own) for own in gains))
    if not sums:
        return None
    total, share = np.array(sums), np.array(weights, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, len(total), (DRAWS, len(total)))
    means = total[drawn].sum(axis=1) / share[drawn].sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Difference(
        float(total.sum() / share.sum()),
        float(low),
        float(high),
        sign_flip_p(total, seed),
        len(total),
        int((total > 0).sum()),
    )


def _gains(one: RhoByQuality, other: RhoByQuality, name: str) -> list[float]:
    """Returns the differences of the qualities of one set where both are defined."""
    found = []
    for quality, rho in one.get(name, {}).items():
        rival = other.get(name, {}).get(quality)
        if rho.value is not None and rival is not None and rival.value is not None:
            found.append(rho.value - rival.value)
    return found


def sign_flip_p(values: Floats, seed: int = 0) -> float:
    """Returns how often the sum, with each value turned round or not, is as far from 0."""
    count = len(values)
    if count <= EXACT:
        signs = np.array(list(product((1.0, -1.0), repeat=count)))
    else:
        signs = np.random.default_rng(seed).choice([1.0, -1.0], (1 << EXACT, count))
        signs[0] = 1.0  # what was found is one of the ways
    sums = np.abs(signs @ values)
    return float((sums >= abs(values.sum()) - 1e-12).mean())


def family_names(gathered: Gathered) -> list[list[str]]:
    return [[gathered.sets[place].name for place in one] for one in gathered.families.relatives]


@dataclass(frozen=True)
class CurvePoint:
    """Weights from so many families: means over left-out sets, and over draws of families; `low`
    and `high` are those of the worst and the best draw."""

    families: int
    draws: int
    value: float | None
    low: float | None
    high: float | None


def learning_curve(
    gathered: Gathered,
    options: FitOptions,
    methods: Sequence[str] = (CRS, SINGLE),
    draws: int = 3,
    seed: int = 0,
) -> dict[str, list[CurvePoint]]:
    """Leaves out each family, and fits on 1, 2, 3, ... of the others, drawn at random; the means of
    each method are by set."""
    families = gathered.families.relatives
    first = {group[0] for group in gathered.families.same}
    points: dict[str, list[CurvePoint]] = {method: [] for method in methods}
    for size in range(1, len(families)):
        times = 1 if size == len(families) - 1 else draws
        means: dict[str, list[float]] = {method: [] for method in methods}
        for draw in range(times):
            trials = []
            for number, left_out in enumerate(families):
                others = [one for place, one in enumerate(families) if place != number]
                chosen = np.random.default_rng([seed, number, draw]).permutation(len(others))[:size]
                kept = sorted(place for one in chosen.tolist() for place in others[one])
                composition = compose(gathered, kept, options)
                for place in sorted(first.intersection(left_out)):
                    trials += try_on(composition, gathered.sets[place], (), options)
            for method in methods:
                value = two_level_mean(LeaveOneOut(tuple(trials)).of(method)).value
                means[method] += [] if value is None else [value]
        for method, known in means.items():
            some = (fmean(known), min(known), max(known)) if known else (None, None, None)
            points[method].append(CurvePoint(size, times, *some))
    return points


@dataclass(frozen=True)
class Explained:
    """One left-out set: means over its qualities.

    own      the composition with the weights that this set itself would have given
    best     the sub-metric that agrees best there, and its mean
    astray   share of the weight that went to sub-metrics that disagree with people there
    """

    dataset: str
    crs: float | None
    average: float | None
    own: float | None
    best: str
    best_value: float | None
    astray: float


def explain(gathered: Gathered, found: LeaveOneOut, options: FitOptions) -> list[Explained]:
    """Returns for each left-out set what its weights were worth, and where they went."""
    lines = []
    for family in gathered.families.relatives:
        kept = [place for place in range(len(gathered.sets)) if place not in family]
        composition = compose(gathered, kept, options)
        for place in family:
            evidence = gathered.sets[place]
            if evidence.name not in found.of(CRS):
                continue
            means = {
                method: flat_mean({evidence.name: found.of(method)[evidence.name]}).value
                for method in found.methods
            }
            single = {spec: means[spec] for spec in composition.specs}
            best = max(single, key=lambda spec: -2.0 if single[spec] is None else single[spec] or 0)
            lines.append(
                Explained(
                    evidence.name,
                    means[CRS],
                    means["average"],
                    _with_own_weights(gathered, place, options),
                    best,
                    single[best],
                    _astray(found, evidence.name, composition, options),
                )
            )
    return lines


def _with_own_weights(gathered: Gathered, place: int, options: FitOptions) -> float | None:
    evidence = gathered.sets[place]
    own = compose(gathered, [place], options)
    columns = np.column_stack([evidence.scaled(term) for term in own.terms])
    rho = {
        quality: spearman(composed(columns, weights_on(own, options.names(quality))), ratings)
        for quality, ratings in evidence.ratings.items()
    }
    return flat_mean({evidence.name: rho}).value


def _astray(
    found: LeaveOneOut, dataset: str, composition: Composition, options: FitOptions
) -> float:
    shares = []
    for trial in found.trials:
        if trial.dataset == dataset:
            weights = weights_on(composition, options.names(trial.quality)).weights
            rho = [trial.found[spec].value for spec in composition.specs]
            wrong = [w for w, r in zip(weights, rho, strict=True) if r is not None and r <= 0]
            shares.append(sum(wrong))
    return fmean(shares) if shares else 0.0


def against_all(
    found: LeaveOneOut, families: Sequence[Sequence[str]], method: str = CRS, mean: Mean = "by set"
) -> Mapping[str, Difference]:
    """Compares a method with every other one; the two compositions are not held against each
    other."""
    rivals = [name for name in found.methods if name not in (CRS, SINGLE)]
    compared = {
        name: difference(found.of(method), found.of(name), families, mean) for name in rivals
    }
    return {name: one for name, one in compared.items() if one is not None}
