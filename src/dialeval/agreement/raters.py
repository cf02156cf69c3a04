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
distinguishable from 0 (one-sided p of Student's t above .05), or where all of their ratings are the
same while those of the others are not. The first rule is needed because many items make even
r = .16 significant: of HolisticEval's ten raters of context, the two with -.08 and .16 are flagged
and the next, with .36, is not. The second because few items make .3 easy to come by. Nothing is
said of a rater who shares fewer than `FEWEST` items with others: too little data is no behaviour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

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
from dialeval.agreement.rated import check_qualities, ratings_table
from dialeval.agreement.student import correlation_two_sided_p
from dialeval.agreement.targets import mean_rating

if TYPE_CHECKING:
    from dialeval.sample import Level, Sample

WEAK = 0.2
"""Below this a rater's agreement with the others is called very weak (Evans 1996)."""
LEVEL = 0.05
FEWEST = 10
"""Below this a correlation must exceed .55 not to be chance: good raters would be accused."""


@dataclass(frozen=True)
class MeanAndMax:
    """Two correlations, summed up over raters or over pairs of raters."""

    pearson_mean: Agreement
    pearson_max: Agreement
    spearman_mean: Agreement
    spearman_max: Agreement


@dataclass(frozen=True)
class Rater:
    """One rater beside the others. `p` is one-sided, of the Pearson correlation.

    `reason` says why the rater looks random or, where that is not so, why nobody can tell.
    """

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


@dataclass(frozen=True)
class QualityRaters:
    """The raters of one quality of one level: a turn and a dialogue are not items of one kind."""

    level: Level
    quality: str
    report: RaterReport

    def to_record(self) -> dict[str, Any]:
        return {"level": self.level, "quality": self.quality} | self.report.to_record()


def rater_reports(samples: Iterable[Sample], qualities: Sequence[str] = ()) -> list[QualityRaters]:
    """A report for each level and each quality (of those wanted) that has ratings there."""
    rated: dict[tuple[Level, str], list[Sample]] = {}
    for sample in samples:
        for quality in sample.ratings:
            rated.setdefault((sample.level, quality), []).append(sample)
    check_qualities("", dict.fromkeys(quality for _, quality in rated), qualities)
    return [
        QualityRaters(level, quality, summarise_raters(*ratings_table(found, quality)))
        for (level, quality), found in rated.items()
        if not qualities or quality in qualities
    ]


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
    alone = len(names) == 1
    return tuple(
        _rater(name, ratings[:, place], mean_rating(np.delete(ratings, place, axis=1)), alone)
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


def _rater(name: str, own: Floats, others: Floats, alone: bool) -> Rater:
    pearson = pearson_of(own, others)
    given = own[~np.isnan(own)]
    p = None
    if pearson.value is not None:
        half = correlation_two_sided_p(pearson.value, pearson.n) / 2
        p = half if pearson.value > 0 else 1 - half
    unknown = _why_unknown(own, others, pearson, alone)
    suspicion = "" if unknown else _suspicion(pearson.value, p)
    return Rater(
        name=name,
        n=len(given),
        mean=float(given.mean()) if len(given) else None,
        pearson=pearson,
        spearman=spearman_of(own, others),
        p=p,
        looks_random=bool(suspicion),
        reason=suspicion or unknown,
    )


def _why_unknown(own: Floats, others: Floats, pearson: Agreement, alone: bool) -> str:
    """Why it cannot be told whether a rater answers at random."""
    if alone:
        return "only one rater"
    if pearson.n < FEWEST:
        return f"too few common items: {pearson.n} of at least {FEWEST}"
    common = others[~np.isnan(own) & ~np.isnan(others)]
    return "the others always say the same" if common.min() == common.max() else ""


def _suspicion(correlation: float | None, p: float | None) -> str:
    if correlation is None or p is None:
        return "always gives the same rating"
    if correlation < WEAK:
        return f"correlation with the others below {WEAK:g}"
    return f"correlation with the others may be chance (p > {LEVEL:g})" if p > LEVEL else ""
