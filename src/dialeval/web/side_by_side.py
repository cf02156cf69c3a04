"""The means of two runs beside each other, from their manifests and the ids of their samples.

Whether a difference is real takes the scores of every sample: that is what `dialeval compare` and
`dialeval report A B` do, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dialeval.report.look import aligned
from dialeval.runs.run import Run


def then_and_now(before: float | None, after: float | None) -> tuple[str, str, str]:
    """Returns two numbers and their difference, which has a sign."""
    difference = None if before is None or after is None else after - before
    first, second, change = aligned([before, after, difference])
    return first, second, f"+{change}" if difference and difference > 0 else change


def verdict(difference: float | None, direction: str) -> str:
    """`better`, `worse`, or nothing where the metric has no good end or nothing moved."""
    if not difference or direction == "neither":
        return ""
    return "better" if (difference > 0) == (direction == "higher") else "worse"


@dataclass(frozen=True)
class SideRow:
    """One system and metric, as each run scored it."""

    system: str
    label: str
    direction: str
    first: float | None
    second: float | None
    first_n: int
    second_n: int
    is_comparable: bool
    """Both runs measured the same thing: name, options, weights and scale agree."""

    @property
    def difference(self) -> float | None:
        """None also where the numbers do not mean the same in both runs."""
        if self.first is None or self.second is None or not self.is_comparable:
            return None
        return self.second - self.first

    @property
    def verdict(self) -> str:
        return verdict(self.difference, self.direction)

    @property
    def texts(self) -> tuple[str, str, str]:
        first, second, difference = then_and_now(self.first, self.second)
        return first, second, difference if self.is_comparable else ""


@dataclass(frozen=True)
class SideBySide:
    """The means of two runs beside each other."""

    rows: tuple[SideRow, ...]
    shared: int
    """Samples of the first run whose id the second has, too."""
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    """Metrics that one run alone has."""

    @property
    def systems(self) -> list[tuple[str, list[SideRow]]]:
        """The rows of each system, in the order of the first run."""
        return [(name, list(rows)) for name, rows in groupby(self.rows, lambda row: row.system)]


def side_by_side(first: Run, second: Run) -> SideBySide:
    """Systems with the same name are put beside each other; where each run has but one system,
    those two are, whatever they are called."""
    systems = _pairs(first, second)
    labels = [label for label in first.metrics if label in second.metrics]
    metrics = {metric["label"]: metric for metric in first.manifest["metrics"]}
    rows = [
        _row(name, metrics[label], a["scores"][label], b["scores"][label], first, second)
        for name, a, b in systems
        for label in labels
    ]
    return SideBySide(
        tuple(rows),
        _shared_ids(first, second),
        tuple(label for label in first.metrics if label not in second.metrics),
        tuple(label for label in second.metrics if label not in first.metrics),
    )


def _shared_ids(first: Run, second: Run) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    there = pa.chunked_array([batch.column(0) for batch in second.batches(["id"])], pa.string())
    return sum(
        pc.sum(pc.is_in(batch.column(0), value_set=there)).as_py() or 0
        for batch in first.batches(["id"])
    )


def _pairs(first: Run, second: Run) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    a, b = first.manifest["systems"], second.manifest["systems"]
    if len(a) == len(b) == 1:
        names = dict.fromkeys(one[0]["name"] or "(unnamed)" for one in (a, b))
        return [(" → ".join(names), a[0], b[0])]
    there = {system["name"]: system for system in b}
    return [(s["name"], s, there[s["name"]]) for s in a if s["name"] in there]


def _row(
    system: str,
    metric: Mapping[str, Any],
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    first: Run,
    second: Run,
) -> SideRow:
    label = metric["label"]
    same = first.signatures[label].short() == second.signatures[label].short()
    return SideRow(system, label, metric["direction"], a["mean"], b["mean"], a["n"], b["n"], same)
