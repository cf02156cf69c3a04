"""Do the raters agree? All that is usually reported, from one table of items x raters.

leave-one-out   each rater against the mean of the others; mean and largest over the raters
                (HolisticEval, Tables 3, 4 and 9; Table 4's caption says "pairwise", its numbers are
                these)
pairwise        each rater against each; mean and largest are PONE's Human(Avg) and Human(Max)
kappa, alpha    see `kappa.py` and `alpha.py`
ICC             see `intraclass.py`
human variance  variance over the raters of an item (ddof 0), mean over items (Table 6)

NaN is a missing rating; each statistic uses the items it can and counts the rest.

A rater looks random where the leave-one-out Pearson correlation is below `WEAK`, or is not
distinguishable from 0 (one-sided p of Student's t above .05), or does not exist. The first rule is
needed because many items make even r = .16 significant: of HolisticEval's ten raters of context,
the two with -.08 and .16 are flagged and the next, with .36, is not. The second because few items
make .3 easy to come by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dialeval.agreement.alpha import krippendorff_alpha
from dialeval.agreement.coefficient import (
    Agreement,
    largest_of,
    mean_of,
    pearson_of,
    spearman_of,
)
from dialeval.agreement.intraclass import icc_mean, icc_single
from dialeval.agreement.kappa import fleiss_kappa, mean_cohen_kappa
from dialeval.agreement.ranks import Floats
from dialeval.agreement.student import correlation_two_sided_p
from dialeval.agreement.targets import mean_rating

WEAK = 0.2
"""Below this a rater's agreement with the others is called very weak (Evans 1996)."""
LEVEL = 0.05


@dataclass(frozen=True)
class MeanAndMax:
    """Two correlations, summed up over raters or over pairs of raters."""

    pearson_mean: Agreement
    pearson_max: Agreement
    spearman_mean: Agreement
    spearman_max: Agreement


@dataclass(frozen=True)
class Rater:
    """One rater beside the others. `p` is one-sided, of the Pearson correlation."""

    name: str
    n: int
    mean: float | None
    pearson: Agreement
    spearman: Agreement
    p: float | None
    looks_random: bool
    reason: str = ""


@dataclass(frozen=True)
class RaterReport:
    """`n_missing` counts ratings; the `n` of a coefficient what it was computed from."""

    n_items: int
    n_raters: int
    n_missing: int
    leave_one_out: MeanAndMax
    pairwise: MeanAndMax
    cohen_kappa: Agreement
    cohen_kappa_linear: Agreement
    cohen_kappa_quadratic: Agreement
    fleiss_kappa: Agreement
    alpha_nominal: Agreement
    alpha_ordinal: Agreement
    alpha_interval: Agreement
    icc_single: Agreement
    icc_mean: Agreement
    human_variance: Agreement
    raters: tuple[Rater, ...]

    @property
    def random_looking(self) -> tuple[str, ...]:
        """The names of the raters who look random."""
        return tuple(rater.name for rater in self.raters if rater.looks_random)

    def to_record(self) -> dict[str, Any]:
        return asdict(self) | {"raters": [asdict(rater) for rater in self.raters]}


def summarise_raters(ratings: Floats, names: Sequence[str]) -> RaterReport:
    """Every statistic of agreement for a table of items x raters, NaN where nobody answered."""
    if ratings.ndim != 2 or ratings.shape[1] != len(names):
        raise ValueError(f"{len(names)} names for a table of shape {ratings.shape}")
    raters = leave_one_out(ratings, names)
    return RaterReport(
        n_items=ratings.shape[0],
        n_raters=ratings.shape[1],
        n_missing=int(np.isnan(ratings).sum()),
        leave_one_out=_mean_and_max([r.pearson for r in raters], [r.spearman for r in raters]),
        pairwise=pairwise(ratings),
        cohen_kappa=mean_cohen_kappa(ratings, "plain"),
        cohen_kappa_linear=mean_cohen_kappa(ratings, "linear"),
        cohen_kappa_quadratic=mean_cohen_kappa(ratings, "quadratic"),
        fleiss_kappa=fleiss_kappa(ratings),
        alpha_nominal=krippendorff_alpha(ratings, "nominal"),
        alpha_ordinal=krippendorff_alpha(ratings, "ordinal"),
        alpha_interval=krippendorff_alpha(ratings, "interval"),
        icc_single=icc_single(ratings),
        icc_mean=icc_mean(ratings),
        human_variance=human_variance(ratings),
        raters=raters,
    )


def leave_one_out(ratings: Floats, names: Sequence[str]) -> tuple[Rater, ...]:
    """Each rater against the mean of the others, over the items that both sides rated."""
    return tuple(
        _rater(name, ratings[:, place], mean_rating(np.delete(ratings, place, axis=1)))
        for place, name in enumerate(names)
    )


def pairwise(ratings: Floats) -> MeanAndMax:
    """Each rater against each: Human(Avg) and Human(Max)."""
    pairs = list(combinations(ratings.T, 2))
    return _mean_and_max(
        [pearson_of(x, y) for x, y in pairs], [spearman_of(x, y) for x, y in pairs]
    )


def human_variance(ratings: Floats) -> Agreement:
    """How far people are apart on one item, over the items with two ratings or more."""
    given = ~np.isnan(ratings)
    used = given.sum(axis=1) >= 2
    n, missing = int(used.sum()), int((~used).sum())
    if n == 0:
        return Agreement(None, 0, missing, "no item with 2 ratings")
    return Agreement(float(np.nanvar(ratings[used], axis=1).mean()), n, missing)


def _mean_and_max(pearson: list[Agreement], spearman: list[Agreement]) -> MeanAndMax:
    return MeanAndMax(
        mean_of(pearson), largest_of(pearson), mean_of(spearman), largest_of(spearman)
    )


def _rater(name: str, own: Floats, others: Floats) -> Rater:
    pearson = pearson_of(own, others)
    given = own[~np.isnan(own)]
    p = None
    if pearson.value is None:
        reason = pearson.reason
    else:
        half = correlation_two_sided_p(pearson.value, pearson.n) / 2
        p = half if pearson.value > 0 else 1 - half
        reason = ""
        if pearson.value < WEAK:
            reason = f"correlation with the others below {WEAK:g}"
        elif p > LEVEL:
            reason = f"correlation with the others may be chance (p > {LEVEL:g})"
    return Rater(
        name=name,
        n=len(given),
        mean=float(given.mean()) if len(given) else None,
        pearson=pearson,
        spearman=spearman_of(own, others),
        p=p,
        looks_random=bool(reason),
        reason=reason,
    )
