"""Preferences: the Bradley-Terry model, fitted to comparisons, with intervals.

    P(i beats j) = 1 / (1 + exp(s_j - s_i))

s are the strengths, with sum 0 (Bradley & Terry 1952). A tie is half a win for each side. The
likelihood is maximised by the MM algorithm of Hunter (2004, eq. 3),

    g_i <- w_i / sum over j of n_ij / (g_i + g_j),    s = log g,

w_i the wins of i and n_ij the comparisons of i with j, and finished by Newton steps to machine
precision.

Several raters judge the same item, and what they say of it is not independent. So the variance is
the sandwich H^-1 (sum over items of u u') H^-1, with H the information, u the sum of the scores of
one item's comparisons, and the factor m / (m - 1) of m items (Liang & Zeger 1986): what a logistic
regression with item-clustered errors reports. Intervals are normal.

The maximum is finite only if, however the systems are split in two, each part won at least once
against the other (Ford 1957). Where a system won all of its comparisons, its strength has no upper
bound, and there is no ranking but a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dialeval.agreement.arithmetic import Floats, normal_quantile

MM_ROUNDS = 200
NEWTON_ROUNDS = 50
CONVERGED = 1e-12


@dataclass(frozen=True, slots=True)
class Outcome:
    """One comparison: `share` of the win goes to `first` (1, 0.5 or 0), the rest to `second`."""

    first: str
    second: str
    share: float
    item: str = ""


@dataclass(frozen=True)
class Strength:
    """A system's place. `beats_average` is P(it beats a system of strength 0)."""

    system: str
    strength: float
    low: float
    high: float
    beats_average: float


@dataclass(frozen=True)
class Ranking:
    """Best first. Empty with a `reason` where the comparisons do not determine one."""

    strengths: tuple[Strength, ...]
    n: int
    items: int
    reason: str = ""

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def bradley_terry(outcomes: Sequence[Outcome], level: float = 0.95) -> Ranking:
    """Returns the ranking that follows from these comparisons."""
    systems = sorted({name for one in outcomes for name in (one.first, one.second)})
    items = sorted({one.item for one in outcomes})
    n = len(outcomes)
    if not outcomes:
        return Ranking((), 0, 0, "no comparison yet")
    number = {name: place for place, name in enumerate(systems)}
    wins = np.zeros((len(systems), len(systems)))
    for one in outcomes:
        i, j = number[one.first], number[one.second]
        wins[i, j] += one.share
        wins[j, i] += 1 - one.share
    if reason := _no_maximum(wins, systems):
        return Ranking((), n, len(items), reason)
    strengths = fit_strengths(wins)
    if len(items) < 2:
        return Ranking((), n, len(items), "one item says nothing about others")
    deviations = _deviations(outcomes, strengths, number, items)
    z = normal_quantile((1 + level) / 2)
    found = [
        Strength(name, s, s - z * d, s + z * d, float(1 / (1 + np.exp(-s))))
        for name, s, d in zip(systems, map(float, strengths), map(float, deviations), strict=True)
    ]
    return Ranking(tuple(sorted(found, key=lambda one: -one.strength)), n, len(items))


def fit_strengths(wins: Floats) -> Floats:
    """Returns the maximum of the likelihood; `wins[i, j]` counts how often i beat j."""
    total = wins.sum(axis=1)
    games = wins + wins.T
    strong = np.ones(len(wins))
    for _ in range(MM_ROUNDS):
        strong = total / (games / (strong[:, None] + strong[None, :])).sum(axis=1)
        strong /= np.exp(np.log(strong).mean())
    strengths = np.log(strong)
    for _ in range(NEWTON_ROUNDS):
        chance = _chance(strengths)
        step = np.linalg.pinv(_information(games, chance)) @ (total - (games * chance).sum(axis=1))
        strengths = strengths + step
        strengths -= strengths.mean()
        if np.abs(step).max() < CONVERGED:
            break
    return strengths


def _chance(strengths: Floats) -> Floats:
    """P(i beats j)."""
    result: Floats = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    return result


def _information(games: Floats, chance: Floats) -> Floats:
    weights = games * chance * (1 - chance)
    result: Floats = np.diag(weights.sum(axis=1)) - weights
    return result


def _deviations(
    outcomes: Sequence[Outcome], strengths: Floats, number: dict[str, int], items: Sequence[str]
) -> Floats:
    """Standard errors, clustered by item."""
    chance = _chance(strengths)
    games = np.zeros_like(chance)
    rows = {item: row for row, item in enumerate(items)}
    scores = np.zeros((len(items), len(strengths)))
    for one in outcomes:
        i, j = number[one.first], number[one.second]
        games[i, j] += 1
        games[j, i] += 1
        residual = one.share - chance[i, j]
        scores[rows[one.item], i] += residual
        scores[rows[one.item], j] -= residual
    inverse = np.linalg.pinv(_information(games, chance))
    m = len(items)
    variance = inverse @ (scores.T @ scores) @ inverse * (m / (m - 1))
    result: Floats = np.sqrt(np.diag(variance))
    return result


def _no_maximum(wins: Floats, systems: Sequence[str]) -> str:
    """Returns why the likelihood has no finite maximum; empty if it has one."""
    met = _reach(wins + wins.T > 0)
    if not met.all():
        apart = ", ".join(name for name, ok in zip(systems, met[0], strict=True) if not ok)
        return f"never compared, not even by way of others: {systems[0]} with {apart}"
    reach = _reach(wins > 0)
    if reach.all():
        return ""
    best = int(np.argmax(reach.sum(axis=1)))
    above = [name for place, name in enumerate(systems) if reach[place, best]]
    below = [name for place, name in enumerate(systems) if not reach[place, best]]
    return f"{', '.join(above)} won every comparison with {', '.join(below)}"


def _reach(edges: np.ndarray[Any, np.dtype[np.bool_]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Who is reached from whom along the edges."""
    reach = edges | np.eye(len(edges), dtype=bool)
    for middle in range(len(edges)):
        reach |= reach[:, [middle]] & reach[[middle], :]
    return reach
