"""Do the raters agree? The usual statistics, from one table of items x raters.

leave-one-out   Each rater against the mean of the others; mean and largest value over the raters
                (HolisticEval, Tables 3, 4 and 9; Table 4's caption says "pairwise", but its numbers
                are these).
pairwise        Each rater against each other rater; mean and largest value are PONE's Human(Avg)
                and Human(Max).
human variance  The variance over the raters of an item (ddof 0), averaged over items (Table 6).

Cohen's kappa (1960, 1968) compares two raters, with o the joint distribution of their ratings, e
the product distribution, and w_ij the weight of a disagreement:

    kappa = 1 - sum w_ij o_ij / sum w_ij e_ij
    plain      1 where i != j         linear     |i - j|         quadratic     (i - j)^2

Distances are those of the ratings. scikit-learn takes the positions of the categories that occur;
the results differ if a category between others is unused.

Fleiss' kappa (1971) takes any number of raters, with P the mean share of agreeing pairs of ratings
per item and Pe the sum of squared shares of the categories. Items need two ratings; the raters of
an item need not be those of the next.

    kappa = (P - Pe) / (1 - Pe)

Krippendorff's alpha (Content Analysis, 2004, 11.3) takes any number of raters, missing ratings, and
three scales. m_u is the number of ratings of item u (items with one are left out) and n the number
of all these ratings. Sums over pairs are in closed form, so a million ratings need no table.

    alpha = 1 - Do / De
    Do = 1/n sum over items u of 1/(m_u - 1) sum over ordered pairs of ratings of u of d(v, v')
    De = 1/(n (n-1)) sum over ordered pairs of all ratings of d(v, v')

    nominal    d = 1 where v != v'
    interval   d = (v - v')^2
    ordinal    d = (sum of n_g for g from v to v', minus half of both ends)^2: the squared
               difference of the mid-ranks of v and v' among all ratings

The intraclass correlation of the two-way random model (Shrout and Fleiss 1979, Psychological
Bulletin 86, 420) uses the mean squares between n items (BMS), between k raters (JMS), and of the
residual (EMS). It measures absolute agreement: a rater who is always one point stricter lowers it.
Items that some rater left out are not used.

    ICC(2,1) = (BMS - EMS) / (BMS + (k-1) EMS + k (JMS - EMS) / n)    of one rating
    ICC(2,k) = (BMS - EMS) / (BMS + (JMS - EMS) / n)                  of the mean of k ratings

NaN is a missing rating. Each statistic counts the items that it cannot use.

A rater looks random if the leave-one-out Pearson correlation is below `WEAK`, or is not
distinguishable from 0 (one-sided p of Student's t above .05), or if all of their ratings are equal
and those of the others are not. The first rule is needed because many items make even r = .16
significant: of HolisticEval's ten raters of context, the two with -.08 and .16 are flagged, and the
next, with .36, is not. The second rule is needed because .3 is easy to reach with few items. A
rater who shares fewer than `FEWEST` items with others is not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.arithmetic import Floats, rank
from dialeval.agreement.coefficient import Coefficient, largest_of, mean_of, record_of
from dialeval.agreement.correlation import pearson, spearman
from dialeval.agreement.rated import RatedRow, check_qualities, mean_rating, ratings_table

if TYPE_CHECKING:
    from dialeval.sample import Level, Sample

Weights = Literal["plain", "linear", "quadratic"]

ONE_CATEGORY = "only one category in use"


def cohen_kappa(x: Floats, y: Floats, weights: Weights = "plain") -> Coefficient:
    """Coefficient of two raters, over the items that both rated."""
    both = ~(np.isnan(x) | np.isnan(y))
    n, missing = int(both.sum()), int((~both).sum())
    if n == 0:
        return Coefficient(None, 0, missing, "no items in common")
    x, y = x[both], y[both]
    observed, expected = _DISAGREEMENT[weights](x, y)
    if expected == 0:
        return Coefficient(None, n, missing, ONE_CATEGORY)
    return Coefficient(1 - observed / expected, n, missing)


def mean_cohen_kappa(ratings: Floats, weights: Weights = "plain") -> Coefficient:
    """Returns the mean of Cohen's kappa over all pairs of raters (columns)."""
    return mean_of([cohen_kappa(x, y, weights) for x, y in combinations(ratings.T, 2)])


def fleiss_kappa(ratings: Floats) -> Coefficient:
    """Coefficient of all raters, over the items with two ratings or more."""
    per_item = (~np.isnan(ratings)).sum(axis=1)
    used = per_item >= 2
    n, missing = int(used.sum()), int((~used).sum())
    if n == 0:
        return Coefficient(None, 0, missing, "no item with 2 ratings")
    counts = per_item[used]
    squares, shares = category_counts(ratings[used])
    agreement = float(np.mean((squares - counts) / (counts * (counts - 1))))
    chance = float((shares / shares.sum()) @ (shares / shares.sum()))
    if len(shares) == 1:
        return Coefficient(None, n, missing, ONE_CATEGORY)
    return Coefficient((agreement - chance) / (1 - chance), n, missing)


def category_counts(ratings: Floats) -> tuple[Floats, Floats]:
    """Per item the sum of squared counts of its categories; per category its count in all."""
    items, raters = np.nonzero(~np.isnan(ratings))
    categories, codes = np.unique(ratings[items, raters], return_inverse=True)
    cells, counts = np.unique(items * len(categories) + codes, return_counts=True)
    squares: Floats = np.bincount(
        cells // len(categories), weights=counts.astype(np.float64) ** 2, minlength=len(ratings)
    ).astype(np.float64)
    return squares, np.bincount(codes).astype(np.float64)


def _plain(x: Floats, y: Floats) -> tuple[float, float]:
    categories, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    shares = [np.bincount(half, minlength=len(categories)) / len(x) for half in np.split(codes, 2)]
    if len(categories) == 1:
        return 0.0, 0.0
    return float(np.mean(x != y)), 1 - float(shares[0] @ shares[1])


def _linear(x: Floats, y: Floats) -> tuple[float, float]:
    """E|X - Y| of independent X, Y is the integral of F(1 - G) + G(1 - F)."""
    steps = np.unique(np.concatenate([x, y]))
    below = [np.searchsorted(np.sort(side), steps[:-1], side="right") / len(x) for side in (x, y)]
    apart = below[0] * (1 - below[1]) + below[1] * (1 - below[0])
    return float(np.mean(np.abs(x - y))), float(np.diff(steps) @ apart)


def _quadratic(x: Floats, y: Floats) -> tuple[float, float]:
    """E(X - Y)^2 of independent X, Y is var X + var Y + (mean X - mean Y)^2."""
    if x.min() == x.max() == y.min() == y.max():
        return 0.0, 0.0
    expected = x.var() + y.var() + (x.mean() - y.mean()) ** 2
    return float(np.mean((x - y) ** 2)), float(expected)


_DISAGREEMENT: dict[Weights, Callable[[Floats, Floats], tuple[float, float]]] = {
    "plain": _plain,
    "linear": _linear,
    "quadratic": _quadratic,
}
"""Per weighting, the observed disagreement and the one expected of independent raters."""


Scale = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: Floats, scale: Scale = "interval") -> Coefficient:
    """Coefficient of all raters; `n` counts the items with two ratings or more."""
    per_item = (~np.isnan(ratings)).sum(axis=1)
    used = per_item >= 2
    items, missing = int(used.sum()), int((~used).sum())
    if items == 0:
        return Coefficient(None, 0, missing, "no item with 2 ratings")
    ratings, per_item = ratings[used], per_item[used]
    given = ~np.isnan(ratings)
    if np.nanmin(ratings) == np.nanmax(ratings):
        return Coefficient(None, items, missing, ONE_CATEGORY)
    n = int(per_item.sum())
    if scale == "nominal":
        squares, totals = category_counts(ratings)
        within = float(np.sum((per_item**2 - squares) / (per_item - 1)))
        overall = float(n**2 - totals @ totals)
    else:
        values = np.where(given, ratings, 0.0)
        values[given] = rank(ratings[given]) if scale == "ordinal" else ratings[given]
        # Twice m times the sum of squared deviations is the sum over ordered pairs.
        centres = values.sum(axis=1) / per_item
        spread = np.where(given, (values - centres[:, None]) ** 2, 0.0).sum(axis=1)
        within = float(np.sum(2 * per_item * spread / (per_item - 1)))
        overall = 2 * n * float(np.sum((values[given] - values[given].mean()) ** 2))
    return Coefficient(1 - (n - 1) * within / overall, items, missing)


def icc_single(ratings: Floats) -> Coefficient:
    """ICC(2,1): how reliable is one rating?"""
    return _icc(ratings, of_the_mean=False)


def icc_mean(ratings: Floats) -> Coefficient:
    """ICC(2,k): how reliable is the mean over these raters?"""
    return _icc(ratings, of_the_mean=True)


def _icc(ratings: Floats, of_the_mean: bool) -> Coefficient:
    complete = ~np.isnan(ratings).any(axis=1)
    table = ratings[complete]
    (n, k), missing = table.shape, int((~complete).sum())
    if k < 2:
        return Coefficient(None, n, missing, "fewer than 2 raters")
    if n < 2:
        return Coefficient(None, n, missing, "fewer than 2 items rated by all")
    if table.min() == table.max():
        return Coefficient(None, n, missing, "constant")
    centred = table - table.mean()
    items, raters = centred.mean(axis=1), centred.mean(axis=0)
    residual = centred - items[:, None] - raters
    between_items = k * float(items @ items) / (n - 1)
    between_raters = n * float(raters @ raters) / (k - 1)
    error = float((residual**2).sum()) / ((n - 1) * (k - 1))
    below = between_items + (between_raters - error) / n
    if not of_the_mean:
        below = between_items + (k - 1) * error + k * (between_raters - error) / n
    if below <= 1e-12 * (between_items + between_raters + error):
        # Items all alike and raters not: the model's variances add up to nothing or less.
        return Coefficient(None, n, missing, "no variance between items")
    return Coefficient((between_items - error) / below, n, missing)


WEAK = 0.2
"""Below this a rater's agreement with the others is called very weak (Evans 1996)."""
LEVEL = 0.05
FEWEST = 10
"""Below this a correlation must exceed .55 not to be chance: good raters would be accused."""


@dataclass(frozen=True)
class MeanAndMax:
    """Two correlations, summed up over raters or over pairs of raters."""

    pearson_mean: Coefficient
    pearson_max: Coefficient
    spearman_mean: Coefficient
    spearman_max: Coefficient


@dataclass(frozen=True)
class Rater:
    """One rater beside the others. `p` is one-sided, of the Pearson correlation.

    `reason` says why the rater looks random or, where that is not so, why nobody can tell.
    """

    name: str
    n: int
    mean: float | None
    pearson: Coefficient
    spearman: Coefficient
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
    cohen_kappa: Coefficient
    cohen_kappa_linear: Coefficient
    cohen_kappa_quadratic: Coefficient
    fleiss_kappa: Coefficient
    alpha_nominal: Coefficient
    alpha_ordinal: Coefficient
    alpha_interval: Coefficient
    icc_single: Coefficient
    icc_mean: Coefficient
    human_variance: Coefficient
    raters: tuple[Rater, ...]

    @property
    def random_looking(self) -> tuple[str, ...]:
        """The names of the raters who look random."""
        return tuple(rater.name for rater in self.raters if rater.looks_random)

    def to_record(self) -> dict[str, Any]:
        return record_of(self)


@dataclass(frozen=True)
class QualityRaters:
    """The raters of one quality of one level: a turn and a dialogue are not items of one kind."""

    level: Level
    quality: str
    report: RaterReport

    def to_record(self) -> dict[str, Any]:
        return {"level": self.level, "quality": self.quality} | self.report.to_record()


def rater_reports(
    samples: Iterable[Sample | RatedRow], qualities: Sequence[str] = ()
) -> list[QualityRaters]:
    """Returns a report for each level and each quality (of those wanted) that has ratings there."""
    rated: dict[tuple[Level, str], list[Sample | RatedRow]] = {}
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
    """Returns every statistic of agreement for a table of items x raters, NaN where nobody
    answered."""
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
    """Correlates each rater with the mean of the others, over the items that both sides rated."""
    alone = len(names) == 1
    return tuple(
        _rater(name, ratings[:, place], mean_rating(np.delete(ratings, place, axis=1)), alone)
        for place, name in enumerate(names)
    )


def pairwise(ratings: Floats) -> MeanAndMax:
    """Correlates each rater with each: Human(Avg) and Human(Max)."""
    pairs = list(combinations(ratings.T, 2))
    return _mean_and_max([pearson(x, y) for x, y in pairs], [spearman(x, y) for x, y in pairs])


def human_variance(ratings: Floats) -> Coefficient:
    """Returns how far people are apart on one item, over the items with two ratings or more."""
    given = ~np.isnan(ratings)
    used = given.sum(axis=1) >= 2
    n, missing = int(used.sum()), int((~used).sum())
    if n == 0:
        return Coefficient(None, 0, missing, "no item with 2 ratings")
    return Coefficient(float(np.nanvar(ratings[used], axis=1).mean()), n, missing)


def _mean_and_max(linear: list[Coefficient], ranked: list[Coefficient]) -> MeanAndMax:
    return MeanAndMax(mean_of(linear), largest_of(linear), mean_of(ranked), largest_of(ranked))


def _rater(name: str, own: Floats, others: Floats, alone: bool) -> Rater:
    found = pearson(own, others)
    given = own[~np.isnan(own)]
    p = None
    if found.value is not None and found.p is not None:
        p = found.p / 2 if found.value > 0 else 1 - found.p / 2
    unknown = _why_unknown(own, others, found.n, alone)
    suspicion = "" if unknown else _suspicion(found.value, p)
    return Rater(
        name=name,
        n=len(given),
        mean=float(given.mean()) if len(given) else None,
        pearson=found,
        spearman=spearman(own, others),
        p=p,
        looks_random=bool(suspicion),
        reason=suspicion or unknown,
    )


def _why_unknown(own: Floats, others: Floats, n: int, alone: bool) -> str:
    """Says why nobody can tell whether a rater answers at random; empty if one can tell."""
    if alone:
        return "only one rater"
    if n < FEWEST:
        return f"too few common items: {n} of at least {FEWEST}"
    common = others[~np.isnan(own) & ~np.isnan(others)]
    return "the others always say the same" if common.min() == common.max() else ""


def _suspicion(correlation: float | None, p: float | None) -> str:
    if correlation is None or p is None:
        return "always gives the same rating"
    if correlation < WEAK:
        return f"correlation with the others below {WEAK:g}"
    return f"correlation with the others may be chance (p > {LEVEL:g})" if p > LEVEL else ""
