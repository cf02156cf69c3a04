"""One number per system and metric, and the table of them: systems down, metrics across.

The numbers are gathered while scores stream past. Means are exact: a sum is kept as Shewchuk's
non-overlapping partial sums, so the result does not depend on the order of the samples, on chunks
or on how often a run was resumed.

A cell of the table is the mean over the system's samples, or the metric's own system score (corpus
BLEU, distinct over all responses) if it has one. Under the table stands everything that is needed
to trust it: how many samples were scored, why the others were not, and the signatures.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dialeval.metric import Metric, Pool
from dialeval.scores import Score
from dialeval.tables import TextTable
from dialeval.text import clean


class ExactMean:
    """The mean of a stream of floats, correctly rounded whatever the order."""

    def __init__(self) -> None:
        self.n = 0
        self._partials: list[float] = []

    def add(self, value: float) -> None:
        self.n += 1
        self._add(value)

    def merge(self, other: ExactMean) -> None:
        """Adds everything that another mean was given."""
        self.n += other.n
        for partial in other._partials:
            self._add(partial)

    def _add(self, value: float) -> None:
        kept = 0
        for partial in self._partials:
            if abs(value) < abs(partial):
                value, partial = partial, value
            high = value + partial
            low = partial - (high - value)
            if low:
                self._partials[kept] = low
                kept += 1
            value = high
        self._partials[kept:] = [value]

    @property
    def value(self) -> float | None:
        return math.fsum(self._partials) / self.n if self.n else None


_DETAIL = re.compile(r" \([^()]*\d[^()]*\)$")
"""What a note says of its sample alone: such notes are counted as one."""


@dataclass
class MetricSummary:
    """What one metric said about the samples of one system."""

    mean: ExactMean = field(default_factory=ExactMean)
    parts: dict[str, ExactMean] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    missing: int = 0

    def add(self, score: Score) -> None:
        if score.note:
            self.notes[_DETAIL.sub("", score.note)] += 1
        if score.value is None:
            self.missing += 1
            return
        self.mean.add(score.value)
        for name, part in score.parts.items():
            if not isinstance(part, tuple):
                self.parts.setdefault(name, ExactMean()).add(part)

    def merge(self, other: MetricSummary) -> None:
        """Adds what the metric said about further samples."""
        self.mean.merge(other.mean)
        for name, mean in other.parts.items():
            self.parts.setdefault(name, ExactMean()).merge(mean)
        self.notes.update(other.notes)
        self.missing += other.missing

    def to_record(self, pooled: Score | None) -> dict[str, Any]:
        record: dict[str, Any] = {
            "n": self.mean.n,
            "missing": self.missing,
            "mean": self.mean.value,
            "parts": {name: mean.value for name, mean in sorted(self.parts.items())},
            "notes": dict(sorted(self.notes.items())),
        }
        if pooled is not None:
            record["pooled"] = {
                "value": pooled.value,
                "parts": dict(sorted(pooled.parts.items())),
                "note": pooled.note,
            }
        return record


class PoolResults(Protocol):
    """The system scores of metrics that are not means."""

    def result(self, system: str, label: str) -> Score | None: ...


class Pools:
    """The accumulators of metrics whose system score is not a mean, one per system and metric.

    Each chunk has its own, which may come from another process; those of a run are all merged.
    """

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.pooled = {m.label: m for m in metrics if m.pool() is not None}
        self._pools: dict[tuple[str, str], Pool] = {}

    def add(self, system: str, label: str, score: Score) -> None:
        """Counts a score of a metric in `pooled`."""
        self._pool(system, label).add(score)

    def merge(self, other: Pools) -> None:
        for (system, label), pool in other._pools.items():
            self._pool(system, label).merge(pool)

    def result(self, system: str, label: str) -> Score | None:
        pool = self._pools.get((system, label))
        return pool.result() if pool else None

    def _pool(self, system: str, label: str) -> Pool:
        if (system, label) not in self._pools:
            pool = self.pooled[label].pool()
            assert pool is not None
            self._pools[system, label] = pool
        return self._pools[system, label]


FEW_TO_CALIBRATE = 20
"""With fewer values the 5th percentile is the smallest value."""

GAP = 3
"""Blanks between two columns."""


@dataclass(frozen=True)
class Column:
    """One column; `pooled` says that it is the metric's system score and not a mean."""

    label: str
    part: str = ""
    pooled: bool = False
    direction: str = "higher"

    @property
    def title(self) -> str:
        name = f"{self.label}.{self.part}" if self.part else self.label
        arrow = {"higher": " ↑", "lower": " ↓"}.get(self.direction, "")
        return f"{name} (system){arrow}" if self.pooled else name + arrow


@dataclass(frozen=True)
class ScoreTable:
    """`cells[row][column]` is None where there is no score."""

    columns: tuple[Column, ...]
    systems: tuple[str, ...]
    samples: tuple[int, ...]
    cells: tuple[tuple[float | None, ...], ...]
    notes: tuple[str, ...]
    signatures: tuple[str, ...]

    def text(self, width: int = 100) -> list[list[str]]:
        """Returns rows of cells as people read them, the first one the header.

        Systems go down and metrics across, unless that is wider than `width`: then the other way.
        """
        columns = [format_column(column) for column in zip(*self.cells, strict=True)]
        rows = [["system", "n", *(column.title for column in self.columns)]] + [
            [system or "(unnamed)", f"{n:,}", *(column[row] for column in columns)]
            for row, (system, n) in enumerate(zip(self.systems, self.samples, strict=True))
        ]
        if sum(column_widths(rows)) + GAP * (len(rows[0]) - 1) <= width:
            return rows
        return [list(column) for column in zip(*rows, strict=True)]

    def __str__(self) -> str:
        header, *rows = [[clean(cell) for cell in row] for row in self.text()]
        widths = column_widths([header, *rows])
        lines = [
            (" " * GAP).join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in [header, ["-" * width for width in widths], *rows]
        ]
        return "\n".join([*lines, "", *map(clean, (*self.notes, *self.signatures))])

    def as_text_table(self, width: int = 100) -> TextTable:
        """Returns the cells of `text`, with notes and signatures below, for Markdown, LaTeX and
        HTML."""
        header, *rows = (tuple(row) for row in self.text(width))
        return TextTable(header, tuple(rows), 1, self.notes, code=self.signatures)

    def _repr_html_(self) -> str:
        return self.as_text_table().html()

    def to_records(self) -> list[dict[str, Any]]:
        """Returns one JSON-ready dictionary per system."""
        return [
            {
                "system": system,
                "n": n,
                "scores": {
                    column.title.rstrip(" ↑↓"): value
                    for column, value in zip(self.columns, cells, strict=True)
                },
            }
            for system, n, cells in zip(self.systems, self.samples, self.cells, strict=True)
        ]


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]


def score_table(manifest: Mapping[str, Any], parts: bool) -> ScoreTable:
    """Returns the table of a run, from its manifest alone; with `parts`, a column for each part
    too."""
    columns = [
        column for metric in manifest["metrics"] for column in _columns(metric, parts, manifest)
    ]
    systems = manifest["systems"]
    return ScoreTable(
        columns=tuple(columns),
        systems=tuple(system["name"] for system in systems),
        samples=tuple(system["samples"] for system in systems),
        cells=tuple(
            tuple(_cell(system["scores"][column.label], column) for column in columns)
            for system in systems
        ),
        notes=tuple(_notes(manifest)),
        signatures=tuple(metric["signature"] for metric in manifest["metrics"]),
    )


def _columns(metric: Mapping[str, Any], parts: bool, manifest: Mapping[str, Any]) -> list[Column]:
    label, direction = metric["label"], metric["direction"]
    pooled = any("pooled" in system["scores"][label] for system in manifest["systems"])
    columns = [Column(label, direction=direction)]
    if pooled:
        columns.append(Column(label, pooled=True, direction=direction))
    if parts:
        names = [
            part["name"]
            for part in metric["parts"]
            if not part["many"] and part.get("in_table", True)
        ]
        columns += [Column(label, name, direction=direction) for name in names]
        if pooled:
            columns += [Column(label, name, True, direction) for name in names]
    return columns


def _cell(summary: Mapping[str, Any], column: Column) -> float | None:
    if column.pooled:
        pooled = summary.get("pooled") or {"value": None, "parts": {}}
        value = pooled["parts"].get(column.part) if column.part else pooled["value"]
    else:
        value = summary["parts"].get(column.part) if column.part else summary["mean"]
    return value if value is None else float(value)


def _notes(manifest: Mapping[str, Any]) -> list[str]:
    """Returns what a careful reader asks about a table: n of n, what was left out, what was
    dropped."""
    data = manifest["data"]
    judged = {"response": data["turns"], "whole dialogue": data["dialogues"]}
    notes = [", ".join(count(n, noun) for noun, n in judged.items() if n) or "no samples"]
    if data.get("skipped"):
        notes.append(f"{count(data['skipped'], 'bad record')} skipped")
    if data.get("warnings"):
        notes.append(f"{count(data['warnings'], 'warning')} in the input: see dialeval data check")
    scaled = [m for m in manifest["metrics"] if m["calibration"] and not m["calibration_given"]]
    if scaled:
        few = min(metric["calibration"]["n"] for metric in scaled)
        names = ", ".join(metric["label"] for metric in scaled)
        warning = ", too few for a stable scale" if few < FEW_TO_CALIBRATE else ""
        notes.append(f"{names}: scaled on this file (n = {few}{warning}); --calibration RUN reuses")
        notes[-1] += " the scale of another run"
    for metric in manifest["metrics"]:
        if metric["notes"]:
            reasons = "; ".join(f"{count} {note}" for note, count in metric["notes"].items())
            total = metric["scored"] + metric["missing"]
            notes.append(f"{metric['label']}: {metric['scored']} of {total} scored ({reasons})")
    return notes


def count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def format_column(values: Sequence[float | None]) -> list[str]:
    """Numbers of one column: three decimals below 10, fewer above, a dash for what is missing."""
    largest = max((abs(value) for value in values if value is not None), default=0.0)
    decimals = 3 if largest < 10 else 2 if largest < 1000 else 0
    return ["-" if value is None else f"{value:,.{decimals}f}" for value in values]
