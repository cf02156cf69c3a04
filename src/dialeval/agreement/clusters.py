"""Significance clusters: a ranking that claims no more than the data show.

Systems stand in the order of their means, best first, and each pair is compared on the items both
have (paired permutation or bootstrap, two-sided, p corrected by Holm over all pairs). Lines are
then drawn by one of two rules:

all   between two neighbours where every system above is significantly better than every one below
      (WMT, Bojar et al. 2016, section 3). What a line says is true of every pair across it.
any   above a system than which some system of the current cluster is significantly better
      (mt-metrics-eval, `AssignRanks`). No system of a cluster beats another of it, but systems of
      different clusters may be indistinguishable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dialeval.agreement.holm import holm
from dialeval.agreement.paired import (
    PairedMethod,
    PairedTest,
    paired_bootstrap,
    paired_permutation,
)
from dialeval.agreement.ranks import Floats
from dialeval.agreement.resampling import Resampling

ClusterRule = Literal["all", "any"]


@dataclass(frozen=True)
class Placed:
    """A system in the ranking; `mean` is over its own items, `cluster` counts from 1."""

    name: str
    cluster: int
    mean: float | None
    n: int


@dataclass(frozen=True)
class Comparison:
    """Two systems, the one that ranks higher first; `p_holm` is p after the correction."""

    first: str
    second: str
    test: PairedTest
    p_holm: float | None


@dataclass(frozen=True)
class Ranking:
    """Systems, best first, and all comparisons between them."""

    systems: tuple[Placed, ...]
    comparisons: tuple[Comparison, ...]
    level: float
    rule: ClusterRule

    def to_record(self) -> dict[str, Any]:
        record = asdict(self)
        return record | {name: list(record[name]) for name in ("systems", "comparisons")}


def rank_systems(
    scores: Floats,
    names: Sequence[str],
    resampling: Resampling,
    *,
    method: PairedMethod = "permutation",
    level: float = 0.05,
    rule: ClusterRule = "all",
) -> Ranking:
    """Clusters of systems from a table of items x systems, NaN where a score is missing."""
    if scores.ndim != 2 or scores.shape[1] != len(names):
        raise ValueError(f"{len(names)} names for a table of shape {scores.shape}")
    counts = (~np.isnan(scores)).sum(axis=0)
    means = [
        float(np.nanmean(column)) if n else None for column, n in zip(scores.T, counts, strict=True)
    ]
    # Equal means keep the order of names, so that the result does not hang on the input's order.
    order = sorted(
        range(len(names)), key=lambda s: (np.inf if (m := means[s]) is None else -m, names[s])
    )
    test = paired_permutation if method == "permutation" else paired_bootstrap
    pairs = list(combinations(order, 2))
    tests = [test(scores[:, a], scores[:, b], resampling) for a, b in pairs]
    corrected = holm([one.p for one in tests])
    better = np.zeros((len(names), len(names)), dtype=bool)
    for (a, b), one, p in zip(pairs, tests, corrected, strict=True):
        significant = p is not None and p <= level and (one.difference or 0) > 0
        better[order.index(a), order.index(b)] = significant
    clusters = draw_lines(better, rule)
    return Ranking(
        systems=tuple(
            Placed(names[s], cluster, means[s], int(counts[s]))
            for s, cluster in zip(order, clusters, strict=True)
        ),
        comparisons=tuple(
            Comparison(names[a], names[b], one, p)
            for (a, b), one, p in zip(pairs, tests, corrected, strict=True)
        ),
        level=level,
        rule=rule,
    )


def draw_lines(better: npt.NDArray[np.bool_], rule: ClusterRule = "all") -> list[int]:
    """The cluster of each system, best first; better[i, j]: i is significantly better than j."""
    clusters: list[int] = []
    start = 0
    for place in range(len(better)):
        if rule == "all":
            line = place > 0 and bool(better[:place, place:].all())
        else:
            line = bool(better[start:place, place].any())
        if line:
            start = place
        clusters.append(clusters[-1] + line if clusters else 1)
    return clusters
