"""Bar charts (one value per row with its interval, lying down so that names can be read), line
charts, histograms and matrices.

A matrix in colour shows how the rows relate to the columns, blue for high and red for low. A cell's
colour is the end of its side of the scale, as strong as the value is far from the middle, over the
paper: so the middle is the paper itself, on light and dark screens alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dialeval.errors import UsageError
from dialeval.pictures.drawing import (
    OTHERS,
    SERIES,
    Anchor,
    Circle,
    Drawing,
    Line,
    Point,
    Polyline,
    Rect,
    Shape,
    Text,
    colour_groups,
)
from dialeval.pictures.frame import (
    PAD,
    SMALL_SIZE,
    TEXT_SIZE,
    WIDTH,
    Key,
    Range,
    Scale,
    data_range,
    drawable,
    drawable_on_log,
    footnote,
    group_keys,
    heading,
    log_range,
    nothing,
    plane,
    sentences,
    short_number,
    shorten,
    text_width,
    tip_text,
    two_decimals,
    x_axis,
)

Floats: TypeAlias = npt.NDArray[np.float64]

BARS_WIDTH = 620.0
BAR_LABEL_ROOM = 190.0
ROW, LOOSE_GAP = 20.0, 8.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A row: `low` and `high` bound its interval, `group` colours it, None is undefined.

    Neighbours with the same label stand close together under one label.
    """

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    group: str = ""


def bar_chart(
    bars: Sequence[Bar], *, title: str = "", x_label: str = "", note: str = ""
) -> Drawing:
    """Returns the bars from top to bottom in their order."""
    if not bars:
        return nothing(title, note)
    colours = colour_groups([bar.group for bar in bars])
    head = heading(title, group_keys(colours), BARS_WIDTH)
    numbers = [n for bar in bars for n in (bar.value, bar.low, bar.high) if n is not None]
    ends = [0.0, *(n for n in numbers if drawable(n))]
    # Two decimals, as papers print correlations, unless the numbers are of another size.
    write = two_decimals if 0.1 <= max(map(abs, ends)) < 100 else short_number
    values = [_value_text(bar, write) for bar in bars]
    labels = {bar.label: shorten(bar.label, BAR_LABEL_ROOM, TEXT_SIZE) for bar in bars}
    left = PAD + max(text_width(label, TEXT_SIZE) for label in labels.values()) + 10
    right = BARS_WIDTH - PAD - max(text_width(text, SMALL_SIZE) for text in values) - 10

    low, high = data_range(ends)
    if min(ends) == 0:
        low, high = 0.0, high if max(ends) > 0 else 1.0
    elif max(ends) == 0:
        high = 0.0
    scale = Scale(low, high, left, right)

    clusters = [list(cluster) for _, cluster in groupby(bars, key=lambda bar: bar.label)]
    gap = LOOSE_GAP if len(clusters) < len(bars) else 2.0
    top = head.bottom + 4
    bottom = top + ROW * len(bars) + gap * (len(clusters) + 1)
    below = x_axis(scale, top, bottom, x_label)
    shapes: list[Shape] = [*head.shapes, *below.shapes]
    y = top + gap
    shown = iter(values)
    for cluster in clusters:
        label, full = labels[cluster[0].label], cluster[0].label
        middle = y + ROW * len(cluster) / 2 + 4
        tip = tip_text(full) if label != full else ""
        shapes.append(Text(left - 10, middle, label, TEXT_SIZE, anchor="end", tip=tip))
        for bar in cluster:
            shapes += _row(bar, colours[bar.group], scale, y)
            text = next(shown)
            shapes.append(Text(BARS_WIDTH - PAD, y + ROW / 2 + 4, text, SMALL_SIZE, "muted", "end"))
            y += ROW
        y += gap
    shapes.append(Line(scale(0), top, scale(0), bottom, "axis", 1.2))
    foot = footnote(note, BARS_WIDTH, below.bottom)
    listed = (f"{_name(bar)} {text}" for bar, text in zip(bars, values, strict=True))
    return Drawing(
        BARS_WIDTH,
        foot.bottom,
        (*shapes, *foot.shapes),
        title,
        sentences(f"Bar chart of {len(bars)} values: " + "; ".join(listed), note),
    )


def _row(bar: Bar, role: str, scale: Scale, y: float) -> list[Shape]:
    """Returns a bar from zero to the value, and its interval as a line with ends."""
    if bar.value is None or not drawable(bar.value):
        return []
    tip = f"{_name(bar)} {_value_text(bar, short_number)}"
    zero, end = scale(0), scale(bar.value)
    start, width = min(zero, end), max(abs(end - zero), 1.0)
    shapes: list[Shape] = [Rect(start, y + 3, width, ROW - 6, role, 0.65, tip)]
    bounds = [bar.value if b is None or not drawable(b) else b for b in (bar.low, bar.high)]
    if bounds != [bar.value, bar.value]:
        a, b = scale(min(bounds)), scale(max(bounds))
        middle = y + ROW / 2
        shapes += [
            Line(a, middle, b, middle, "ink", 1.6, tip),
            Line(a, middle - 4, a, middle + 4, "ink", 1.6),
            Line(b, middle - 4, b, middle + 4, "ink", 1.6),
        ]
    return shapes


def _name(bar: Bar) -> str:
    return tip_text(f"{bar.label} ({bar.group})" if bar.group else bar.label)


def _value_text(bar: Bar, write: Callable[[float], str]) -> str:
    def number(value: float | None) -> str:
        return write(value) if value is not None and drawable(value) else "undefined"

    if bar.value is None or not drawable(bar.value) or (bar.low is None and bar.high is None):
        return number(bar.value)
    return f"{number(bar.value)} [{number(bar.low)}, {number(bar.high)}]"


# Line charts: one or more series over the same axis, such as a training curve.

MARKED_POINTS = 120
DASHES: tuple[tuple[float, ...], ...] = ((), (6, 3), (2, 3))
"""After the last colour the colours come again, dashed and then dotted."""


def line_chart(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    note: str = "",
    log_x: bool = False,
) -> Drawing:
    """Returns each series as a line through its points in their order, broken where a value is
    missing."""
    pieces = {name: list(_unbroken(points, log_x)) for name, points in series.items()}
    shown = [point for parts in pieces.values() for part in parts for point in part]
    total = sum(map(len, series.values()))
    if len(shown) < total:
        rule = "finite value above 0 on the logarithmic axis" if log_x else "finite value"
        note = sentences(note, f"{total - len(shown):,} of {total:,} points have no {rule}")
    if not shown:
        return nothing(title, note)
    looks = {
        name: (SERIES[i % len(SERIES)], DASHES[i // len(SERIES) % len(DASHES)])
        for i, name in enumerate(series)
    }
    frame = plane(
        (log_range if log_x else data_range)(x for x, _ in shown),
        data_range(y for _, y in shown),
        title=title,
        x_label=x_label,
        y_label=y_label,
        note=note,
        keys=[Key(name, role, True, dash) for name, (role, dash) in looks.items()],
        plot_height=240,
        log_x=log_x,
    )
    shapes: list[Shape] = list(frame.shapes)
    marked = len(shown) <= MARKED_POINTS
    for name, parts in pieces.items():
        role, dash = looks[name]
        for part in parts:
            path = [(frame.x(x), frame.y(y)) for x, y in part]
            if len(path) > 1:
                shapes.append(Polyline(_thinned(path), role, 2, dash, tip_text(name)))
            if marked or len(path) == 1:
                shapes += [
                    Circle(x, y, 3, role, tip=_tip(name, point))
                    for (x, y), point in zip(path, part, strict=True)
                ]
    return Drawing(WIDTH, frame.height, tuple(shapes), title, _describe(pieces, x_label, note))


def _unbroken(points: Sequence[Point], log_x: bool) -> Iterator[list[Point]]:
    on_x = drawable_on_log if log_x else drawable

    def usable(point: Point) -> bool:
        return on_x(point[0]) and drawable(point[1])

    for good, run in groupby(points, key=usable):
        if good:
            yield [(float(x), float(y)) for x, y in run]


def _thinned(path: Sequence[Point]) -> tuple[Point, ...]:
    """Keeps the first, lowest, highest and last point of a column of pixels: no others are seen."""
    kept: list[Point] = []
    for _, column in groupby(enumerate(path), key=lambda place: int(place[1][0])):
        places = list(column)
        heights = sorted(places, key=lambda place: place[1][1])
        seen = dict((places[0], heights[0], heights[-1], places[-1]))
        kept += [seen[index] for index in sorted(seen)]
    return tuple(kept)


def _tip(name: str, point: Point) -> str:
    return f"{tip_text(name)}: ({short_number(point[0])}, {short_number(point[1])})"


def _describe(pieces: Mapping[str, Sequence[Sequence[Point]]], x_label: str, note: str) -> str:
    ends = (
        f"{tip_text(name)}: from {short_number(parts[0][0][1])} to {short_number(parts[-1][-1][1])}"
        for name, parts in pieces.items()
        if parts
    )
    over = f" over {x_label}" if x_label else ""
    return sentences(f"Line chart of {len(pieces)} series{over}", *ends, note)


BINS = 28
HISTOGRAM_WIDTH, SIDE, SIDE_GAP = 440.0, 44.0, 10.0
"""The width of all, the height of a side, and the space below it."""
SIDE_LABEL_ROOM = 110.0
MOST_SIDES = 8


def histogram(title: str, sides: Mapping[str, Floats], note: str = "") -> Drawing:
    """Draws how numbers are spread: a row of bars for each side, all on one axis, a tick at the
    mean. The height of a bar is a share of the numbers of its side, on one scale for all."""
    there = {name: column[~np.isnan(column)] for name, column in sides.items()}
    there = {name: column for name, column in there.items() if len(column)}
    if not there:
        return nothing(title, note)
    hidden = len(there) - MOST_SIDES
    if hidden > 0:
        there = dict(list(there.items())[:MOST_SIDES])
        note = sentences(note, f"{hidden} more are not drawn")
    everything = np.concatenate(list(there.values()))
    low, high = data_range((float(everything.min()), float(everything.max())), margin=0.0)
    edges = np.linspace(low, high, BINS + 1)
    shares = {name: np.histogram(column, edges)[0] / len(column) for name, column in there.items()}
    tallest = max(float(share.max()) for share in shares.values())

    head = heading(title, (), HISTOGRAM_WIDTH)
    several = len(there) > 1 or "" not in there
    labels = {name: shorten(name or "(unnamed)", SIDE_LABEL_ROOM, TEXT_SIZE) for name in there}
    left = PAD + (max(text_width(text, TEXT_SIZE) for text in labels.values()) + 10) * several
    top = head.bottom + 6
    bottom = top + len(there) * (SIDE + SIDE_GAP)
    scale = Scale(low, high, left, HISTOGRAM_WIDTH - PAD)
    below = x_axis(scale, top, bottom, "")
    colours = colour_groups(list(there))
    shapes: list[Shape] = [*head.shapes, *below.shapes]
    said = []
    y = top
    for name, share in shares.items():
        base = y + SIDE
        role = colours[name] if several else "series1"
        shapes += _histogram_bars(share, edges, scale, base, tallest, role, len(there[name]))
        mean = float(there[name].mean())
        tip = f"mean {short_number(mean)}"
        shapes.append(Line(left, base, HISTOGRAM_WIDTH - PAD, base, "axis"))
        shapes.append(Line(scale(mean), base - SIDE, scale(mean), base + 4, "ink", 1.6, tip))
        if several:
            full = tip_text(name) if labels[name] != name else ""
            shapes.append(
                Text(left - 10, base - 4, labels[name], TEXT_SIZE, anchor="end", tip=full)
            )
        said.append(f"{name or 'all'}: n = {len(there[name]):,}, {tip}")
        y += SIDE + SIDE_GAP
    height = below.bottom + 4
    if note:
        height += SMALL_SIZE + 6
        shapes.append(Text(PAD, height - 6, note, SMALL_SIZE, "muted"))
    return Drawing(
        HISTOGRAM_WIDTH,
        height,
        tuple(shapes),
        title,
        sentences("Histogram. " + "; ".join(said), note),
    )


def _histogram_bars(
    share: Floats, edges: Floats, scale: Scale, base: float, tallest: float, role: str, n: int
) -> list[Shape]:
    shapes: list[Shape] = []
    for place, part in enumerate(share.tolist()):
        if not part:
            continue
        start, end = scale(float(edges[place])), scale(float(edges[place + 1]))
        height = max(1.0, (SIDE - 4) * part / tallest)
        span = f"{short_number(float(edges[place]))} to {short_number(float(edges[place + 1]))}"
        tip = f"{span}: {round(part * n):,} ({part:.0%})"
        opacity = 0.55 if role == OTHERS else 0.8
        width = max(0.8, end - start - 1)
        shapes.append(Rect(start + 0.5, base - height, width, height, role, opacity, tip))
    return shapes


MATRIX_LABEL_ROOM = 150.0
LARGEST_CELL, SMALLEST_CELL, GRID = 56.0, 10.0, 760.0
SLANT = 0.71
STRONG = {"high": 0.87, "low": 0.76}
"""From this strength on white text has a better contrast than black, on light paper. So chosen, it
is never under 4.5, which WCAG 2.2 asks for; on dark paper all text in cells is white."""

Cell = float | None


def matrix_plot(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[Cell]],
    *,
    title: str = "",
    note: str = "",
    low: float = -1.0,
    high: float = 1.0,
) -> Drawing:
    """Returns a coloured table; numbers beyond `low` and `high` have the colour of the end."""
    if len(values) != len(rows) or any(len(line) != len(columns) for line in values):
        raise UsageError(
            f"a matrix of {len(rows)} rows and {len(columns)} columns needs as many values,"
            f" but has {len(values)} rows of {sorted({len(line) for line in values})}"
        )
    if not (low < high and drawable(low) and drawable(high)):
        raise UsageError(f"low is {low:g} and high is {high:g}, but low has to be less")
    if not rows or not columns:
        return nothing(title, note)
    layout = _lay_out(rows, columns)
    cell, left = layout.cell, layout.left
    head = heading(title, (), layout.width)
    top = head.bottom + layout.above
    shapes = [*head.shapes, *_labels(layout, rows, columns, top)]
    for i, line in enumerate(values):
        for j, value in enumerate(line):
            tip = f"{tip_text(rows[i])}, {tip_text(columns[j])}: {_full(value)}"
            shapes += _cell(value, left + cell * j, top + cell * i, cell, (low, high), tip)
    legend_top = top + cell * len(rows) + 14
    shapes += _colour_bar(left, legend_top, min(200.0, layout.width - left - PAD), low, high)
    foot = footnote(note, layout.width, legend_top + 28)
    known = sum(drawable(value) for line in values for value in line)
    description = (
        f"Matrix of {len(rows)} rows and {len(columns)} columns;"
        f" {known} of {len(rows) * len(columns)} values are defined"
    )
    return Drawing(
        layout.width, foot.bottom, (*shapes, *foot.shapes), title, sentences(description, note)
    )


def strength(value: float, low: float, high: float) -> float:
    """Returns how far a value is from the middle of its scale: -1 at `low`, 1 at `high`.

    The middle is zero; where the scale does not cross it, the end nearest to it.
    """
    middle = min(max(0.0, low), high)
    reach = high - middle if value > middle else middle - low
    return max(-1.0, min(1.0, (value - middle) / reach)) if reach else 0.0


@dataclass(frozen=True, slots=True)
class _Layout:
    """Sizes and shortened labels; `level` says whether the columns' labels fit over their cells."""

    cell: float
    left: float
    above: float
    width: float
    size: float
    rows: list[str]
    columns: list[str]
    level: bool


def _lay_out(rows: Sequence[str], columns: Sequence[str]) -> _Layout:
    cell = max(SMALLEST_CELL, min(LARGEST_CELL, GRID // max(len(rows), len(columns))))
    # At 45 degrees the lines of neighbouring labels are 0.71 cells apart.
    size = min(SMALL_SIZE, cell * 0.7)
    row_labels = [shorten(row, MATRIX_LABEL_ROOM, size) for row in rows]
    column_labels = [shorten(column, MATRIX_LABEL_ROOM, size) for column in columns]
    widths = [text_width(label, size) for label in column_labels]
    level = max(widths) <= cell - 4
    above, right = size + 8, cell * len(columns)
    if not level:
        above = max(widths) * SLANT + size + 6
        ends = (cell * (j + 0.5) + width * SLANT + size for j, width in enumerate(widths))
        right = max(right, *ends)
    left = PAD + max(text_width(label, size) for label in row_labels) + 8
    width = max(left + right + PAD, WIDTH * 0.6)
    return _Layout(cell, left, above, width, size, row_labels, column_labels, level)


def _labels(
    layout: _Layout, rows: Sequence[str], columns: Sequence[str], top: float
) -> Iterator[Shape]:
    """Yields the names of rows on the left; names of columns above, rising to the right if they are
    long."""
    cell, size = layout.cell, layout.size
    for j, (label, full) in enumerate(zip(layout.columns, columns, strict=True)):
        middle = layout.left + cell * (j + 0.5)
        tip = tip_text(full) if label != full else ""
        if layout.level:
            yield Text(middle, top - 6, label, size, "muted", "middle", tip=tip)
        else:
            yield Text(middle + 3, top - 6, label, size, "muted", angle=-45, tip=tip)
    for i, (label, full) in enumerate(zip(layout.rows, rows, strict=True)):
        y = top + cell * (i + 0.5) + size * 0.36
        tip = tip_text(full) if label != full else ""
        yield Text(layout.left - 8, y, label, size, "muted", "end", tip=tip)


def _cell(value: Cell, x: float, y: float, cell: float, limits: Range, tip: str) -> Iterator[Shape]:
    inner = cell - 1
    if value is None or not drawable(value):
        yield Rect(x, y, inner, inner, "void", 0.6, tip)
        for k in range(1, 8):
            near, far = min(k * inner / 4, inner), max(0.0, k * inner / 4 - inner)
            yield Line(x + far, y + near, x + near, y + far, "axis", 0.7)
        return
    strong = strength(value, *limits)
    yield _patch(x, y, inner, inner, strong, tip)
    text, size = _short(value), min(SMALL_SIZE + 1, cell * 0.33)
    if size >= 6 and text_width(text, size) <= inner - 2:
        role = "bright" if abs(strong) >= STRONG[_side(strong)] else "figure"
        yield Text(x + inner / 2, y + inner / 2 + size * 0.36, text, size, role, "middle")


def _patch(x: float, y: float, width: float, height: float, strong: float, tip: str = "") -> Rect:
    return Rect(x, y, width, height, _side(strong), round(0.04 + 0.96 * abs(strong), 2), tip)


def _side(strong: float) -> str:
    return "high" if strong >= 0 else "low"


def _colour_bar(x: float, y: float, width: float, low: float, high: float) -> list[Shape]:
    """Returns the scale: its colours in steps, the ends and the middle labelled."""
    steps = 40
    shapes: list[Shape] = []
    for k in range(steps):
        value = low + (high - low) * (k + 0.5) / steps
        shapes.append(
            _patch(x + width * k / steps, y, width / steps, 8, strength(value, low, high))
        )
    marks = (low, 0.0, high) if low < 0 < high else (low, high)
    for mark in marks:
        at = x + width * (mark - low) / (high - low)
        anchor: Anchor = "start" if mark == low else "end" if mark == high else "middle"
        shapes.append(Text(at, y + 21, short_number(mark), SMALL_SIZE, "muted", anchor))
    return shapes


def _short(value: float) -> str:
    return two_decimals(value) if abs(value) < 10 else short_number(value)


def _full(value: Cell) -> str:
    return "undefined" if value is None or not drawable(value) else short_number(value)
