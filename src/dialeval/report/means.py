"""The first table: the mean of each system on each metric, its interval, and significance clusters.

The interval of a mean is Student's, mean -+ t s / sqrt(n): it says how far the mean of other
samples like these could lie, not whether two systems differ. That is what the clusters are for:
they come from paired tests on the samples that the sides share (`agreement/comparison.py`).
`histogram` draws how scores are spread: a row of bars for each side, all on one axis, with a tick
at the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.arithmetic import Floats, student_quantile
from dialeval.agreement.joining import Side
from dialeval.pictures.drawing import OTHERS, Drawing, Line, Rect, Shape, Text, colour_groups
from dialeval.pictures.frame import (
    PAD,
    SMALL_SIZE,
    TEXT_SIZE,
    heading,
    nothing,
    sentences,
    shorten,
    text_width,
    tip_text,
    x_axis,
)
from dialeval.pictures.scale import Scale, data_range, short_number
from dialeval.report.look import aligned
from dialeval.report.material import ReportData

if TYPE_CHECKING:
    from dialeval.agreement.comparison import Comparison
    from dialeval.sample import Level

BINS = 28
WIDTH, ROW, GAP = 440.0, 44.0, 10.0
LABEL_ROOM = 110.0
MOST_ROWS = 8


def histogram(title: str, sides: Mapping[str, Floats], note: str = "") -> Drawing:
    """Bars of equal width; their height is the share of the side's scores, on one scale for all."""
    there = {name: column[~np.isnan(column)] for name, column in sides.items()}
    there = {name: column for name, column in there.items() if len(column)}
    if not there:
        return nothing(title, note)
    hidden = len(there) - MOST_ROWS
    if hidden > 0:
        there = dict(list(there.items())[:MOST_ROWS])
        note = sentences(note, f"{hidden} more are not drawn")
    everything = np.concatenate(list(there.values()))
    low, high = data_range((float(everything.min()), float(everything.max())), margin=0.0)
    edges = np.linspace(low, high, BINS + 1)
    shares = {name: np.histogram(column, edges)[0] / len(column) for name, column in there.items()}
    tallest = max(float(share.max()) for share in shares.values())

    head = heading(title, (), WIDTH)
    several = len(there) > 1 or "" not in there
    labels = {name: shorten(name or "(unnamed)", LABEL_ROOM, TEXT_SIZE) for name in there}
    left = PAD + (max(text_width(text, TEXT_SIZE) for text in labels.values()) + 10) * several
    top = head.bottom + 6
    bottom = top + len(there) * (ROW + GAP)
    scale = Scale(low, high, left, WIDTH - PAD)
    below = x_axis(scale, top, bottom, "")
    colours = colour_groups(list(there))
    shapes: list[Shape] = [*head.shapes, *below.shapes]
    said = []
    y = top
    for name, share in shares.items():
        base = y + ROW
        role = colours[name] if several else "series1"
        shapes += _bars(share, edges, scale, base, tallest, role, len(there[name]))
        mean = float(there[name].mean())
        tip = f"mean {short_number(mean)}"
        shapes.append(Line(left, base, WIDTH - PAD, base, "axis"))
        shapes.append(Line(scale(mean), base - ROW, scale(mean), base + 4, "ink", 1.6, tip))
        if several:
            full = tip_text(name) if labels[name] != name else ""
            shapes.append(
                Text(left - 10, base - 4, labels[name], TEXT_SIZE, anchor="end", tip=full)
            )
        said.append(f"{name or 'all'}: n = {len(there[name]):,}, {tip}")
        y += ROW + GAP
    height = below.bottom + 4
    if note:
        height += SMALL_SIZE + 6
        shapes.append(Text(PAD, height - 6, note, SMALL_SIZE, "muted"))
    return Drawing(
        WIDTH, height, tuple(shapes), title, sentences("Histogram. " + "; ".join(said), note)
    )


def _bars(
    share: Floats, edges: Floats, scale: Scale, base: float, tallest: float, role: str, n: int
) -> list[Shape]:
    shapes: list[Shape] = []
    for place, part in enumerate(share.tolist()):
        if not part:
            continue
        start, end = scale(float(edges[place])), scale(float(edges[place + 1]))
        height = max(1.0, (ROW - 4) * part / tallest)
        span = f"{short_number(float(edges[place]))} to {short_number(float(edges[place + 1]))}"
        tip = f"{span}: {round(part * n):,} ({part:.0%})"
        opacity = 0.55 if role == OTHERS else 0.8
        width = max(0.8, end - start - 1)
        shapes.append(Rect(start + 0.5, base - height, width, height, role, opacity, tip))
    return shapes


@dataclass(frozen=True)
class MeanCell:
    """A mean over `n` of `total` samples. `cluster` is None where nothing was compared, or where
    all sides are in one cluster."""

    mean: float | None
    low: float | None
    high: float | None
    n: int
    total: int
    cluster: int | None = None


@dataclass(frozen=True)
class SummaryRow:
    """A run, or a system; `inner` systems stand under their run."""

    name: str
    total: int
    cells: tuple[MeanCell, ...]
    inner: bool = False


@dataclass(frozen=True)
class Pooled:
    """The own scores of metrics for a whole system, which are no means: corpus BLEU, distinct over
    all. Systems down, metrics across, as they are read."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Summary:
    """The table of one level; `metrics` are records of the manifest."""

    level: Level
    metrics: tuple[Mapping[str, Any], ...]
    rows: tuple[SummaryRow, ...]

    @property
    def largest(self) -> list[float]:
        """The mean of each metric that is farthest from 0."""
        return [
            max((abs(cell.mean) for cell in cells if cell.mean is not None), default=0.0)
            for cells in zip(*(row.cells for row in self.rows), strict=True)
        ]


def summaries(material: ReportData, comparison: Comparison | None) -> list[Summary]:
    clusters = _clusters(comparison)
    found = []
    for entries in material.levels:
        level = entries.level
        metrics = [
            metric
            for metric in material.metrics
            if any(_has(side, level, metric["label"]) for side in material.whole)
        ]
        labels = [metric["label"] for metric in metrics]
        rows = []
        for side in material.sides:
            rows.append(_row(side, level, labels, clusters))
            systems = list(dict.fromkeys(side.systems))
            if material.several and len(systems) > 1:
                rows += [_row(side, level, labels, {}, system) for system in systems]
        kept = tuple(row for row in rows if row.total)
        found.append(Summary(level, tuple(metrics), kept))
    return found


def pooled_scores(material: ReportData) -> Pooled:
    found: dict[str, list[float | None]] = {
        label: [] for label in material.labels if label not in material.grounds.none
    }
    names = []
    for name, run in zip(material.names, material.runs, strict=True):
        for system in run.manifest["systems"]:
            shown = system["name"] or "(unnamed)"
            names.append(f"{name}: {shown}" if material.several else shown)
            for label, values in found.items():
                values.append((system["scores"][label].get("pooled") or {}).get("value"))
    there = {
        label: aligned(values)
        for label, values in found.items()
        if any(value is not None for value in values)
    }
    rows = zip(names, zip(*there.values(), strict=True), strict=True) if there else ()
    return Pooled(tuple(there), tuple(rows))


def mean_interval(values: Floats) -> tuple[float | None, float | None, float | None]:
    """Returns the mean and both ends of its 95 % interval; no ends of fewer than two values."""
    n = len(values)
    if not n:
        return None, None, None
    mean = float(values.mean())
    if n < 2:
        return mean, None, None
    half = student_quantile(0.975, n - 1) * float(values.std(ddof=1)) / n**0.5
    return mean, mean - half, mean + half


def _row(
    side: Side,
    level: Level,
    labels: Sequence[str],
    clusters: Mapping[tuple[str, str, str], int],
    system: str | None = None,
) -> SummaryRow:
    here = np.array(side.levels) == level
    if system is not None:
        here &= np.array(side.systems) == system
    total = int(here.sum())
    cells = []
    for label in labels:
        values = side.scores[label][here]
        values = values[~np.isnan(values)]
        cluster = clusters.get((level, label, side.name)) if system is None else None
        cells.append(MeanCell(*mean_interval(values), len(values), total, cluster))
    name = side.name if system is None else system
    return SummaryRow(name or "(unnamed)", total, tuple(cells), system is not None)


def _has(side: Side, level: Level, label: str) -> bool:
    return bool((~np.isnan(side.scores[label][np.array(side.levels) == level])).any())


def _clusters(comparison: Comparison | None) -> dict[tuple[str, str, str], int]:
    """(level, metric, side) -> cluster, where there is more than one."""
    found: dict[tuple[str, str, str], int] = {}
    for standing in comparison.standings if comparison else ():
        if len({one.cluster for one in standing.sides}) > 1:
            for one in standing.sides:
                found[standing.level, standing.metric, one.name] = one.cluster
    return found
