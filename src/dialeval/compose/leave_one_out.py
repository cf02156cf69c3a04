"""What to expect on data that nobody fitted on: fit on all data sets but one, try on that one.

With the left-out set go its relatives, which hold the same conversations (`gathering.py`); neither
ratings nor scales are seen of any of them. On the left-out set everything is correlated, not a
sample. The composition is held against the plain average of its terms, each term alone, and
whatever else the runs hold, by Spearman's rho; the means are those of DSTC10 (`agreement/dstc10`).

Which scale terms are put on (`FitOptions.scale`) can be chosen in the same way, on the sets that
are kept alone: each of them is left out of them once more, and the scale with the highest mean by
set is taken. What is then found on the left-out set had no part in the choice.

A quality that no other set has is judged with the weights of overall, or where there are none with
the mean over all qualities: `Trial.weights` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dialeval.agreement.coefficient import Agreement, spearman_of
from dialeval.agreement.dstc10 import OfOneMetric, flat_mean, two_level_mean
from dialeval.compose.evidence import Evidence, composed
from dialeval.compose.fitting import PAPER, SCALES, FitOptions, Scale, compose, fit
from dialeval.compose.gathering import Gathered, are_relatives
from dialeval.errors import UsageError
from dialeval.metrics.composition import OVERALL, Chosen, Composition

CRS, AVERAGE = "crs", "average"
SINGLE = "crs, one score"
"""What the test phase of DSTC10 asks for: one score, here by the weights of overall."""


@dataclass(frozen=True)
class Trial:
    """One quality of a left-out data set. `weights` names the quality whose weights were used."""

    dataset: str
    quality: str
    weights: str
    found: Mapping[str, Agreement]
    """What was held against people -> its correlation."""
    scale: str = ""
    """On which scale its terms were put."""


@dataclass(frozen=True)
class LeaveOneOut:
    """All trials."""

    trials: tuple[Trial, ...]

    @property
    def rivals(self) -> list[str]:
        """What was tried: the composition first."""
        return list(self.trials[0].found)

    def of(self, rival: str, where: str = "") -> OfOneMetric:
        """Data set -> quality -> correlation; `where` another is defined, too."""
        rho: dict[str, dict[str, Agreement]] = {}
        for trial in self.trials:
            if not where or trial.found[where].value is not None:
                rho.setdefault(trial.dataset, {})[trial.quality] = trial.found[rival]
        return rho

    def summary(self) -> list[Standing]:
        """Best first."""
        standings = [
            Standing(rival, Means.of(self.of(rival)), *self.duel(rival)) for rival in self.rivals
        ]
        return sorted(standings, key=lambda one: -_or_least(one.all.by_set.value))

    def duel(self, rival: str) -> tuple[Means, Means]:
        """A rival and the composition, on the qualities for which both have a correlation."""
        return Means.of(self.of(rival, where=CRS)), Means.of(self.of(CRS, where=rival))

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
    """Of correlations: over the qualities of a set and then over sets, and over all pairs of set
    and quality."""

    by_set: Agreement
    by_quality: Agreement

    @classmethod
    def of(cls, rho: OfOneMetric) -> Means:
        return cls(two_level_mean(rho), flat_mean(rho))

    def to_record(self) -> dict[str, Any]:
        return {"by_set": self.by_set.to_record(), "by_quality": self.by_quality.to_record()}


@dataclass(frozen=True)
class Standing:
    """One rival over all left-out sets. One that needs more than others (references, several
    responses) has fewer correlations, so it is held against the composition on those that both
    have: `shared` is its own there, `crs` that of the composition."""

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


def leave_one_out(
    gathered: Gathered,
    options: FitOptions = PAPER,
    progress: Callable[[int, int], None] = lambda done, total: None,
    scales: Sequence[Scale] = (),
) -> LeaveOneOut:
    """Each family of data sets is left out once; of sets that are the same the first is tried.
    With `scales`, the best of them on the kept sets is taken each time."""
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
    """Fitted on those of `places` that are not left out, tried on the first of each set that is."""
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
    """By leaving out each family among `places` (all sets if not given) once. Where there are
    fewer than two families nothing can be left out, and the first scale is taken."""
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
    """The composition of all data sets on the best scale; its provenance tells what was tried."""
    choice = choose_scale(gathered, options)
    found = fit(gathered, replace(options, scale=choice.scale))
    tried = {"scales tried": dict(choice.means)} if choice.means else {}
    return replace(found, provenance={**found.provenance, **tried})


def try_on_unseen(
    composition: Composition, fitted: Gathered, unseen: Gathered, options: FitOptions
) -> LeaveOneOut:
    """On data sets that nothing was fitted or chosen on. One that shares a conversation with what
    was fitted on is refused."""
    for one in unseen.sets:
        for other in fitted.sets:
            if are_relatives(one, other):
                raise UsageError(f"{one.name} shares conversations with {other.name}: it was seen")
    others = [label for label in fitted.others if label in unseen.others]
    first = [unseen.sets[group[0]] for group in unseen.families.same]
    trials = [trial for one in first for trial in try_on(composition, one, others, options)]
    return LeaveOneOut(tuple(trials))


def try_on(
    composition: Composition, evidence: Evidence, others: Sequence[str], options: FitOptions
) -> list[Trial]:
    """A composition and its rivals on all of a data set that it was not fitted on."""
    columns = np.column_stack([evidence.scaled(term) for term in composition.terms])
    alone = {label: evidence.metrics[label].value for label in (*composition.specs, *others)}
    found = []
    for quality, ratings in evidence.ratings.items():
        chosen = weights_on(composition, options.names(quality))
        scores = {
            CRS: composed(columns, chosen),
            AVERAGE: composed(columns, composition.average),
            SINGLE: composed(columns, composition.weights_for(OVERALL[0])),
            **alone,
        }
        rho = {name: spearman_of(column, ratings) for name, column in scores.items()}
        found.append(Trial(evidence.name, quality, chosen.quality, rho, options.scale))
    return found


def weights_on(composition: Composition, quality: str) -> Chosen:
    """Those of the quality, if it was rated in some set, else what `mme-crs` takes of itself."""
    if quality in composition.weights:
        return Chosen(quality, composition.weights[quality])
    return composition.weights_for(OVERALL[0])


def _or_least(value: float | None) -> float:
    return -2.0 if value is None else value
