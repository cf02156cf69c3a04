"""Bar charts: one value per row with its interval, lying down so that names can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from dialeval.pictures.drawing import Drawing, Line, Rect, Shape, Text, colour_groups
from dialeval.pictures.frame import (
    PAD,
    SMALL_SIZE,
    TEXT_SIZE,
    footnote,
    group_keys,
    heading,
    nothing,
    sentences,
    shorten,
    text_width,
    tip_text,
    x_axis,
)
from dialeval.pictures.scale import Scale, data_range, drawable, short_number, two_decimals

BARS_WIDTH = 620.0
LABEL_ROOM = 190.0
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
    """The bars from top to bottom in their order."""
    if not bars:
        return nothing(title, note)
    colours = colour_groups([bar.group for bar in bars])
    head = heading(title, group_keys(colours), BARS_WIDTH)
    numbers = [n for bar in bars for n in (bar.value, bar.low, bar.high) if n is not None]
    ends = [0.0, *(n for n in numbers if drawable(n))]
    # Two decimals, as papers print correlations, unless the numbers are of another size.
    write = two_decimals if 0.1 <= max(map(abs, ends)) < 100 else short_number
    values = [_value_text(bar, write) for bar in bars]
    labels = {bar.label: shorten(bar.label, LABEL_ROOM, TEXT_SIZE) for bar in bars}
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
    """A bar from zero to the value, and its interval as a line with ends."""
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
