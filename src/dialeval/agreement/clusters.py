"""Significance clusters: a ranking that claims no more than the data show.

Systems stand in the order of their means, best first, and each pair is compared (`standings.py`,
`rivals.py`). Lines are then drawn by one of two rules:

all   between two neighbours where every system above is significantly better than every one below
      (WMT, Bojar et al. 2016, section 3). What a line says is true of every pair across it.
any   above a system than which some system of the current cluster is significantly better
      (mt-metrics-eval, `AssignRanks`). No system of a cluster beats another of it, but systems of
      different clusters may be indistinguishable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

ClusterRule = Literal["all", "any"]


@dataclass(frozen=True)
class Placed:
    """A system in the ranking; `mean` is over its own items, `cluster` counts from 1."""

    name: str
    cluster: int
    mean: float | None
    n: int


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
