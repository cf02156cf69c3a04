"""Bootstrap intervals and permutation tests, against the loops that people write.

bootstrap    items are drawn again and scipy computes the three coefficients, round by round
permutation  PERM-BOTH as in `nlpstats` and `mt-metrics-eval`: one round swaps the scores of
             half of the items and computes both correlations anew
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from dialeval.agreement.bootstrap import Bootstrap
from dialeval.agreement.correlation import correlations
from dialeval.agreement.perm_both import perm_both
from dialeval.agreement.resampling import Resampling
from dialeval.speed.contest import Contest

if TYPE_CHECKING:
    from dialeval.agreement.ranks import Floats

SEED = 0


def bootstrap_correlation(items: int, rounds: int, workers: int = 1) -> Contest:
    """95 % intervals of Pearson, Spearman and tau-b of scores against means of three grades."""
    stats = import_module("scipy.stats")

    scores, _, people = made_up(items)

    def ours() -> list[float]:
        how = Bootstrap(np.random.default_rng(SEED), rounds, workers=workers)
        found = correlations(scores, people, how).values()
        return [_width(one.low, one.high) for one in found]

    def theirs() -> list[float]:
        rng = np.random.default_rng(SEED)
        coefficients = (stats.pearsonr, stats.spearmanr, stats.kendalltau)
        drawn = []
        for _ in range(rounds):
            chosen = rng.integers(0, items, size=items)
            drawn.append([one(scores[chosen], people[chosen])[0] for one in coefficients])
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        return [float(width) for width in high - low]

    name = f"bootstrap, {items:,} items, {rounds:,} rounds"
    return Contest(name, f"a loop of scipy {version('scipy')}", ours, theirs, _relative)


def permutation_test(items: int, rounds: int, coefficient: str = "pearson") -> Contest:
    """p of one metric over another."""
    stats = import_module("scipy.stats")

    first, second, people = made_up(items)
    correlate = stats.pearsonr if coefficient == "pearson" else stats.spearmanr

    def ours() -> float:
        how = Resampling(np.random.default_rng(SEED), rounds)
        found = perm_both(first, second, people, how, coefficient=coefficient)  # type: ignore[arg-type]
        assert found.p is not None
        return found.p

    def theirs() -> float:
        rng = np.random.default_rng(SEED)
        one, other = ((side - side.mean()) / side.std() for side in (first, second))

        def delta(x: Floats, y: Floats) -> float:
            return float(correlate(x, people)[0] - correlate(y, people)[0])

        observed, extreme = abs(delta(one, other)), 0
        for _ in range(rounds):
            swap = rng.random(items) < 0.5
            extreme += abs(delta(np.where(swap, other, one), np.where(swap, one, other))) >= (
                observed
            )
        return (extreme + 1) / (rounds + 1)

    name = f"permutation test, {coefficient}, {items:,} items, {rounds:,} rounds"
    peer = f"a loop of scipy {version('scipy')}"
    return Contest(name, peer, ours, theirs, lambda one, other: abs(one - other))


def made_up(items: int) -> tuple[Floats, Floats, Floats]:
    """Scores of two metrics, and the mean of three people's grades from 1 to 5."""
    rng = np.random.default_rng(SEED)
    quality = rng.normal(size=items)
    first, second = quality + rng.normal(size=items), quality + 1.05 * rng.normal(size=items)
    grades = [np.clip(np.round(quality + rng.normal(size=items) + 3), 1, 5) for _ in range(3)]
    return first, second, np.round(np.stack(grades).mean(axis=0), 9)


def _width(low: float | None, high: float | None) -> float:
    assert low is not None
    assert high is not None
    return high - low


def _relative(ours: list[float], theirs: list[float]) -> float:
    """Both draw at random, so widths of intervals agree as far as the rounds allow."""
    return max(abs(one - other) / other for one, other in zip(ours, theirs, strict=True))
