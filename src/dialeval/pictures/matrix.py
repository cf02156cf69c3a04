"""Matrices in colour: how the rows relate to the columns, blue for high and red for low.

A cell's colour is the end of its side of the scale, as strong as the value is far from the middle,
over the paper: so the middle is the paper itself, on light and dark screens alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dialeval.errors import UsageError
from dialeval.pictures.drawing import Anchor, Drawing, Line, Rect, Shape, Text
from dialeval.pictures.frame import (
    PAD,
    SMALL_SIZE,
    WIDTH,
    Range,
    drawable,
    footnote,
    heading,
    nothing,
    sentences,
    short_number,
    shorten,
    text_width,
    tip_text,
    two_decimals,
)

LABEL_ROOM = 150.0
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
    row_labels = [shorten(row, LABEL_ROOM, size) for row in rows]
    column_labels = [shorten(column, LABEL_ROOM, size) for column in columns]
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
