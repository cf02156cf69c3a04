"""Tests a composition on data that it was not fitted on: fit on all data sets but one, try on
that one.

The relatives of the left-out set, which hold the same conversations (`evidence.py`), are left out
with it; neither their ratings nor their scales are seen. On the left-out set all samples are
correlated. The composition is compared with the plain average of its terms, with each term alone,
and with the other metrics of the runs, by Spearman's rho; the means are those of DSTC10
(`agreement/dstc10.py`).

The scale of the terms (`FitOptions.scale`) can be chosen in the same way, on the kept sets alone:
each of them is left out once more, and the scale with the highest mean by set is taken. The
left-out set has no part in the choice.

A quality that no other set has is judged with the weights of overall, or if there are none with the
mean over all qualities: `Trial.weights` says so.

`difference` says whether a composition is better than its rivals over data sets. Two methods are
compared on left-out sets, where both have a correlation. What is drawn or turned
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
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np

from dialeval.agreement.arithmetic import Floats
from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.correlation import spearman
from dialeval.agreement.dstc10 import RhoByQuality, flat_mean, two_level_mean
from dialeval.compose.evidence import Evidence, Gathered, are_relatives, composed, gather
from dialeval.compose.fitting import (
    OURS,
    PAPER,
    SCALES,
    FitOptions,
    Scale,
    compose,
    find_quality_map,
    fit,
    fit_warnings,
)
from dialeval.errors import UsageError
from dialeval.metrics.composition import OVERALL, Chosen, Composition, Power
from dialeval.progress import Progress, silent
from dialeval.runs.run import Run, open_run

CRS, AVERAGE = "crs", "average"
SINGLE = "crs, one score"
"""One score for all qualities, as in the test phase of DSTC10: the weights of overall."""


@dataclass(frozen=True)
class Trial:
    """One quality of a left-out data set. `weights` names the quality whose weights were used."""

    dataset: str
    quality: str
    weights: str
    found: Mapping[str, Coefficient]
    """Method -> its correlation with people."""
    scale: str = ""
    """The scale of the terms."""


@dataclass(frozen=True)
class LeaveOneOut:
    """The trials of all left-out sets."""

    trials: tuple[Trial, ...]

    @property
    def methods(self) -> list[str]:
        """The names of what was tried, the composition first."""
        return list(self.trials[0].found)

    def of(self, method: str, where: str = "") -> RhoByQuality:
        """Data set -> quality -> correlation; only if the method `where` is defined there, too."""
        rho: dict[str, dict[str, Coefficient]] = {}
        for trial in self.trials:
            if not where or trial.found[where].value is not None:
                rho.setdefault(trial.dataset, {})[trial.quality] = trial.found[method]
        return rho

    def summary(self) -> list[MethodSummary]:
        """Returns the methods with their means, best first."""
        summaries = [
            MethodSummary(method, Means.of(self.of(method)), *self.where_both_are_defined(method))
            for method in self.methods
        ]
        return sorted(summaries, key=lambda one: -_or_least(one.all.by_set.value))

    def where_both_are_defined(self, method: str) -> tuple[Means, Means]:
        """Returns the means of a method and of the composition, where both have a correlation."""
        return Means.of(self.of(method, where=CRS)), Means.of(self.of(CRS, where=method))

    def to_record(self) -> dict[str, Any]:
        return {
            "summary": [one.to_record() for one in self.summary()],
            "trials": [
                {
                    "set": trial.dataset,
                    "quality": trial.quality,
                    "weights of": trial.weights,
                    "scale": trial.scale,
                    "spearman": {name: one.to_record() for name, one in trial.found.items()},
                }
                for trial in self.trials
            ],
        }


@dataclass(frozen=True)
class Means:
    """Means of correlations: over the qualities of a set and then over sets; over all pairs of set
    and quality."""

    by_set: Coefficient
    by_quality: Coefficient

    @classmethod
    def of(cls, rho: RhoByQuality) -> Means:
        return cls(two_level_mean(rho), flat_mean(rho))

    def to_record(self) -> dict[str, Any]:
        return {"by_set": self.by_set.to_record(), "by_quality": self.by_quality.to_record()}


@dataclass(frozen=True)
class MethodSummary:
    """One method over all left-out sets. A metric that needs references or several responses has
    fewer correlations, so it is compared with the composition where both have one: `shared` is its
    own mean there, `crs` that of the composition."""

    name: str
    all: Means
    shared: Means
    crs: Means

    def to_record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **self.all.to_record(),
            "where_both_are": {"it": self.shared.to_record(), "crs": self.crs.to_record()},
        }


def leave_each_out(
    gathered: Gathered,
    options: FitOptions = PAPER,
    progress: Progress = silent,
    scales: Sequence[Scale] = (),
) -> LeaveOneOut:
    """Leaves out each family of data sets once; of equal sets the first is tried. With `scales`,
    the best of them on the kept sets is taken each time."""
    families = gathered.families.relatives
    if len(families) < 2:
        raise UsageError(
            "to leave out a data set there must be another that shares no conversation with it,"
            f" but there is only: {', '.join(one.name for one in gathered.sets)}"
        )
    every = range(len(gathered.sets))
    trials: dict[int, list[Trial]] = {}
    for done, left_out in enumerate(families):
        own = options
        if scales:
            kept = [place for place in every if place not in left_out]
            own = replace(options, scale=choose_scale(gathered, options, scales, kept).scale)
        trials |= _left_out(gathered, every, left_out, own)
        progress(done + 1, len(families))
    return LeaveOneOut(tuple(trial for place in sorted(trials) for trial in trials[place]))


def _left_out(
    gathered: Gathered, places: Sequence[int], left_out: Sequence[int], options: FitOptions
) -> dict[int, list[Trial]]:
    """Fits on the `places` that are not left out, and tries on the first of each left-out set."""
    first = {group[0] for group in gathered.families.same}
    composition = compose(gathered, [place for place in places if place not in left_out], options)
    return {
        place: try_on(composition, gathered.sets[place], gathered.others, options)
        for place in first.intersection(left_out)
    }


@dataclass(frozen=True)
class ScaleChoice:
    """The scale with the highest mean by set, and the means of all."""

    scale: Scale
    means: Mapping[Scale, float | None]


def choose_scale(
    gathered: Gathered,
    options: FitOptions,
    scales: Sequence[Scale] = SCALES,
    places: Sequence[int] | None = None,
) -> ScaleChoice:
    """Leaves out each family among `places` (default: all sets) once. With fewer than two families
    nothing can be left out, and the first scale is taken."""
    kept = range(len(gathered.sets)) if places is None else places
    families = [
        own for family in gathered.families.relatives if (own := [p for p in family if p in kept])
    ]
    if len(families) < 2:
        return ScaleChoice(scales[0], {})
    means: dict[Scale, float | None] = {}
    for scale in scales:
        on = replace(options, scale=scale)
        trials = [t for family in families for t in _left_out(gathered, kept, family, on).values()]
        found = LeaveOneOut(tuple(trial for of_set in trials for trial in of_set))
        means[scale] = two_level_mean(found.of(CRS)).value
    return ScaleChoice(max(scales, key=lambda scale: _or_least(means[scale])), means)


def fit_best(gathered: Gathered, options: FitOptions) -> Composition:
    """Returns the composition of all data sets on the best scale; its provenance lists all
    scales."""
    choice = choose_scale(gathered, options)
    found = fit(gathered, replace(options, scale=choice.scale))
    tried = {"scales tried": dict(choice.means)} if choice.means else {}
    return replace(found, provenance={**found.provenance, **tried})


@dataclass(frozen=True)
class Fit:
    """What `dialeval.compose.fit` found; `trials` only with `leave_one_out`."""

    composition: Composition
    trials: LeaveOneOut | None = None

    @property
    def warnings(self) -> list[str]:
        return fit_warnings(self.composition)

    def to_record(self) -> dict[str, Any]:
        """Returns what `dialeval compose fit --json` prints."""
        trials = {"leave_one_out": self.trials.to_record()} if self.trials else {}
        return self.composition.to_record() | trials | {"warnings": self.warnings}


def fit_runs(
    runs: Sequence[Run | str | Path],
    *,
    metrics: Sequence[str] = (),
    power: Power = PAPER.power,
    sample: int = PAPER.sample,
    seed: int = PAPER.seed,
    map: str = PAPER.names.name,
    prior: float | None = None,
    even: bool | None = None,
    scale: Scale | Literal["best"] | None = None,
    paper: bool = False,
    leave_one_out: bool = False,
    progress: Progress = silent,
) -> Fit:
    """`dialeval.compose.fit`: the weights of a composition, fitted on rated runs.

    metrics  the metrics to compose; default: all that every run has and that have a direction
    map      "literal", "common", or a JSON file that renames qualities
    scale    of metrics that do not range from 0 to 1; "best" chooses by leaving out each data set
    paper    as in the paper: prior 0, not even, scale "quartile" (see `FitOptions`)
    """
    if paper and (prior or even or scale not in (None, "quartile")):
        raise UsageError(
            "--paper means --prior 0, --no-even and --scale quartile: leave out what says otherwise"
        )
    usual = PAPER if paper else OURS
    options = FitOptions(
        power,
        sample,
        seed,
        find_quality_map(map),
        usual.prior if prior is None else prior,
        usual.even if even is None else even,
        usual.scale if scale is None or scale == "best" else scale,
    )
    opened = [run if isinstance(run, Run) else open_run(run) for run in runs]
    gathered = gather(opened, metrics)
    composition = fit_best(gathered, options) if scale == "best" else fit(gathered, options)
    if not leave_one_out:
        return Fit(composition)
    scales = SCALES if scale == "best" else ()
    return Fit(composition, leave_each_out(gathered, options, progress, scales))


def try_on_new_sets(
    composition: Composition, fitted: Gathered, new: Gathered, options: FitOptions
) -> LeaveOneOut:
    """Tries a composition on data sets that nothing was fitted or chosen on. A set that shares a
    conversation with the fitted sets is refused."""
    for one in new.sets:
        for other in fitted.sets:
            if are_relatives(one, other):
                raise UsageError(f"{one.name} shares conversations with {other.name}: it was seen")
    others = [label for label in fitted.others if label in new.others]
    first = [new.sets[group[0]] for group in new.families.same]
    trials = [trial for one in first for trial in try_on(composition, one, others, options)]
    return LeaveOneOut(tuple(trials))


def try_on(
    composition: Composition, evidence: Evidence, others: Sequence[str], options: FitOptions
) -> list[Trial]:
    """Tries a composition, and what it is compared with, on a data set that it was not fitted
    on."""
    columns = np.column_stack([evidence.scaled(term) for term in composition.terms])
    alone = {label: evidence.metrics[label].value for label in (*composition.specs, *others)}
    found = []
    for quality, ratings in evidence.ratings.items():
        chosen = weights_on(composition, options.names(quality))
        scores = {
            CRS: composed(columns, chosen),
            AVERAGE: composed(columns, composition.average),
            SINGLE: composed(columns, composition.weights_for(OVERALL[0])),
        }
        rho = {name: spearman(column, ratings) for name, column in scores.items()}
        for label, column in alone.items():
            rho[label] = evidence.correlation(label, column, quality)
        found.append(Trial(evidence.name, quality, chosen.quality, rho, options.scale))
    return found


def weights_on(composition: Composition, quality: str) -> Chosen:
    """Returns the weights of the quality if it was rated in some set, else the default of
    `mme-crs`."""
    if quality in composition.weights:
        return Chosen(quality, composition.weights[quality])
    return composition.weights_for(OVERALL[0])


def _or_least(value: float | None) -> float:
    return -2.0 if value is None else value


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
