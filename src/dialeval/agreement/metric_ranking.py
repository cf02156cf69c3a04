"""Does one metric agree with people better than another, and is the difference significant?

For each quality the metrics are ranked by their correlation with people, and each pair is tested
(Williams or PERM-BOTH, two-sided). Holm's correction covers all pairs of the quality. Ranking and
tests use the samples that every metric scored: on samples of its own, a metric could rank above one
that beats it. A metric without any score takes no part. For the same reason a group whose scores
are all equal counts as 0 within groups (`--by within-item`): the metric ordered nothing there.
Outside of a ranking such groups are left out.

Going down the ranking, a new cluster begins with the first metric that is significantly worse than
a metric of the current cluster (rule `any` of `draw_lines`, as in mt-metrics-eval).

Lower-is-better metrics are inverted (`RankedMetric.turned`), so a strong negative correlation is as
good as a strong positive one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.bootstrap import Resampling
from dialeval.agreement.correlation import system_means
from dialeval.agreement.significance import (
    CoefficientName,
    CorrelationLevel,
    MetricTest,
    draw_lines,
    holm,
    perm_both,
    williams_test,
)
from dialeval.agreement.table import (
    By,
    ScoredQuality,
    check_rated,
    correlate,
    on_common_samples,
    scored_qualities,
)
from dialeval.errors import UsageError
from dialeval.progress import Progress

if TYPE_CHECKING:
    from dialeval.agreement.rated import RatedLevel
    from dialeval.sample import Level

TestName = Literal["williams", "perm-both"]

DEFAULT_COEFFICIENT: dict[TestName, CoefficientName] = {
    "williams": "pearson",
    "perm-both": "spearman",
}
"""Williams' test is exact for Pearson's r only; the papers mostly report Spearman's rho."""
_PERMUTED: dict[By, CorrelationLevel] = {
    "turn": "turn",
    "system": "system",
    "within-item": "group",
    "within-system": "group",
}


@dataclass(frozen=True)
class RankedMetric:
    """A metric in the ranking; `cluster` counts from 1."""

    metric: str
    cluster: int
    correlation: float | None
    n: int
    turned: bool
    """Whether the scores were inverted because lower is better."""
    reason: str = ""


@dataclass(frozen=True)
class TestedPair:
    """Two metrics, the one that ranks higher first; `p_holm` is p after the correction."""

    first: str
    second: str
    test: MetricTest
    p_holm: float | None


@dataclass(frozen=True)
class MetricRanking:
    """All metrics on one quality."""

    dataset: str
    level: Level
    quality: str
    by: By
    target: str
    test: TestName
    coefficient: CoefficientName
    alpha: float
    metrics: tuple[RankedMetric, ...]
    pairs: tuple[TestedPair, ...]
    left_out: int
    """Number of samples that some of the metrics scored, but not all."""
    scarcest: str
    """The metric with the fewest scores, if samples were left out."""

    @property
    def remark(self) -> str:
        """Says how many samples were left out, and why."""
        if not self.left_out:
            return ""
        return (
            f"{self.quality}: {self.left_out:,} samples are left out because not all metrics scored"
            f" them; {self.scarcest} scored fewest (without it: name the others with -m)"
        )

    @property
    def warning(self) -> str:
        """Says that no pair can be significant after Holm, if there were too few rounds."""
        rounds = max((pair.test.rounds for pair in self.pairs), default=0)
        needed = rounds_needed(len(self.pairs), self.alpha)
        if not rounds or rounds >= needed:
            return ""
        return (
            f"{self.quality}: {rounds} rounds are too few for {len(self.pairs)} pairs: none can be"
            f" significant after Holm. Use --rounds {needed} or more."
        )

    def to_record(self) -> dict[str, Any]:
        record = asdict(self)
        record |= {name: list(record[name]) for name in ("metrics", "pairs")}
        return record | {"warning": self.warning, "remark": self.remark}


def rank_metrics(
    levels: Iterable[RatedLevel],
    test: TestName,
    *,
    metrics: Sequence[str] = (),
    by: By = "turn",
    coefficient: CoefficientName | None = None,
    rounds: int = 9999,
    seed: int = 0,
    alpha: float = 0.05,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[MetricRanking]:
    """Returns a ranking for each data set, level and quality. Only PERM-BOTH uses `rounds`."""
    if test == "williams" and by.startswith("within"):
        raise UsageError(f"Williams' test knows no groups: with --by {by} use --test perm-both")
    levels = list(levels)
    check_rated(levels)
    by_quality = [scored for level in levels for scored in _by_quality(level, metrics, by)]
    chosen = coefficient or DEFAULT_COEFFICIENT[test]
    pairs = sum(len(scored) * (len(scored) - 1) // 2 for scored in by_quality)
    per_pair = rounds if test == "perm-both" else 1
    done = 0

    def one_test(first: ScoredQuality, second: ScoredQuality) -> MetricTest:
        nonlocal done

        def report(so_far: int, _: int) -> None:
            if progress:
                progress(done * per_pair + so_far, pairs * per_pair)

        rng = np.random.default_rng(seed)
        how = Resampling(rng, rounds, workers=workers, progress=report)
        found = _test(first, second, test, by, chosen, how)
        done += 1
        report(0, 0)
        return found

    return [_ranking(scored, by, test, chosen, alpha, one_test) for scored in by_quality]


def _by_quality(level: RatedLevel, metrics: Sequence[str], by: By) -> list[list[ScoredQuality]]:
    """Returns the metrics to rank, one list for each quality."""
    if level.target.kind == "max-over-raters":
        raise UsageError(
            "a maximum over raters cannot be tested: each metric would be compared with another"
            " rater. Use --target mean or --target rater:NAME"
        )
    found: dict[str, list[ScoredQuality]] = {}
    for one in scored_qualities(level, metrics, by):
        found.setdefault(one.quality, []).append(one)
    return list(found.values())


def _ranking(
    scored: Sequence[ScoredQuality],
    by: By,
    test: TestName,
    coefficient: CoefficientName,
    alpha: float,
    one_test: Callable[[ScoredQuality, ScoredQuality], MetricTest],
) -> MetricRanking:
    common = on_common_samples(scored)
    found = {
        one.metric: correlate(
            one.oriented, one.ratings[:, 0], one.groups, by, names=[coefficient], flat=0.0
        )[coefficient]
        for one in common.scored
    }

    def position(one: ScoredQuality) -> tuple[float, str]:
        value = found[one.metric].value
        return float("inf") if value is None else -value, one.metric

    ranked = sorted(common.scored, key=position)
    places = list(combinations(range(len(ranked)), 2))
    tests = [one_test(ranked[i], ranked[j]) for i, j in places]
    corrected = holm([one.p for one in tests])
    better = np.zeros((len(ranked), len(ranked)), dtype=bool)
    for place, one, p in zip(places, tests, corrected, strict=True):
        better[place] = p is not None and p <= alpha and (one.difference or 0) > 0
    metrics = [
        RankedMetric(
            one.metric,
            cluster,
            found[one.metric].value,
            found[one.metric].n,
            one.level.directions[one.metric] == "lower",
            found[one.metric].reason,
        )
        for one, cluster in zip(ranked, draw_lines(better, "any"), strict=True)
    ]
    pairs = [
        TestedPair(ranked[i].metric, ranked[j].metric, one, p)
        for (i, j), one, p in zip(places, tests, corrected, strict=True)
    ]
    level = ranked[0].level
    return MetricRanking(
        level.dataset,
        level.level,
        ranked[0].quality,
        by,
        str(level.target),
        test,
        coefficient,
        alpha,
        tuple(metrics),
        tuple(pairs),
        common.left_out,
        common.scarcest,
    )


def rounds_needed(pairs: int, alpha: float = 0.05) -> int:
    """Returns the smallest number of rounds with which one of the pairs can be significant after
    Holm."""
    return int(np.ceil(pairs / alpha)) - 1


def _test(
    first: ScoredQuality,
    second: ScoredQuality,
    test: TestName,
    by: By,
    name: CoefficientName,
    how: Resampling,
) -> MetricTest:
    human, groups = first.ratings[:, 0], first.groups
    x, y = first.oriented, second.oriented
    if test == "perm-both":
        return perm_both(x, y, human, how, coefficient=name, level=_PERMUTED[by], groups=groups)
    if by == "system":
        both = np.where(np.isnan(x) | np.isnan(y), np.nan, human)
        first_means, second_means = (system_means(side, both, groups) for side in (x, y))
        return williams_test(first_means.x, second_means.x, first_means.y, name)
    return williams_test(x, y, human, name)
