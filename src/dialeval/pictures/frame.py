"""The frame of all charts: title, legend and note around the plot, axes, the empty picture.

Text must fit: how wide it is about, where to cut it, where to break it. An SVG is drawn with
whatever font the reader has. Widths here are those of DejaVu Sans, the widest of the usual sans-
serif fonts, so that what fits here fits elsewhere too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dialeval.errors import UsageError
from dialeval.pictures.drawing import OTHERS, Circle, Drawing, Line, Polyline, Rect, Shape, Text
from dialeval.pictures.scale import Range, Scale, fitting_ticks
from dialeval.text import clean

BOLD = 1.1
TIP_LENGTH = 300

_WIDTHS = {  # thousandths of the font size
    **dict.fromkeys("ijl'", 280),
    **dict.fromkeys(" .,IJ", 318),
    **dict.fromkeys(":;/|\\f", 352),
    **dict.fromkeys("()[]-rt!", 411),
    **dict.fromkeys('"*_csz?', 550),
    **dict.fromkeys("abdeghknopquvxyFL", 636),
    **dict.fromkeys("0123456789${}EPSTY", 636),
    **dict.fromkeys("ABCKRVXZ", 700),
    **dict.fromkeys("DGHNOQU&", 790),
    **dict.fromkeys("wM+=<>#^~−", 863),
    **dict.fromkeys("mW%@…\ufffd", 1030),
}


@lru_cache(maxsize=4096)
def _character_width(char: str) -> int:
    if char in _WIDTHS:
        return _WIDTHS[char]
    if unicodedata.combining(char):
        return 0
    return 1100 if unicodedata.east_asian_width(char) in "WF" else 800


def text_width(text: str, size: float, bold: bool = False) -> float:
    return sum(map(_character_width, text)) * size / 1000 * (BOLD if bold else 1)


def shorten(text: str, room: float, size: float, bold: bool = False) -> str:
    """Returns the text on one line, its end replaced by an ellipsis where it is wider than
    `room`."""
    # A character with a width takes at least a quarter of the size: no need to measure a megabyte.
    start = clean(text[: int(8 * room / size) + 64])
    if len(start) >= len(text) and text_width(start, size, bold) <= room:
        return start
    room -= text_width("…", size, bold)
    used, end = 0.0, 0
    for char in start:
        used += text_width(char, size, bold)
        if used > room:
            break
        end += 1
    return start[:end].rstrip() + "…"


def wrap(text: str, room: float, size: float, lines: int, bold: bool = False) -> list[str]:
    """Breaks the text at spaces into at most this many lines; the last one is shortened."""
    words = clean(text[: lines * (int(8 * room / size) + 64)]).split()
    done: list[str] = []
    while words and len(done) < lines - 1:
        taken = 1
        while taken < len(words) and (text_width(" ".join(words[: taken + 1]), size, bold) <= room):
            taken += 1
        done.append(shorten(" ".join(words[:taken]), room, size, bold))
        words = words[taken:]
    if words:
        done.append(shorten(" ".join(words), room, size, bold))
    return done


def tip_text(text: str) -> str:
    """Returns the text for a tooltip: long enough for any name, never a whole document."""
    start = clean(text[:TIP_LENGTH])
    return start + "…" if len(text) > TIP_LENGTH else start


WIDTH = 520.0
PAD = 16.0
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 14.0, 12.0, 11.0


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the legend: a dot, or a piece of line where `line` is set."""

    label: str
    role: str
    line: bool = False
    dash: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Shapes and the y at which the next block may begin."""

    shapes: tuple[Shape, ...]
    bottom: float


@dataclass(frozen=True, slots=True)
class Plane:
    """Where a chart with two axes puts its points, and everything around them."""

    x: Scale
    y: Scale
    shapes: tuple[Shape, ...]
    height: float


def group_keys(colours: dict[str, str]) -> list[Key]:
    """Returns the legend of coloured groups; those that share the grey are counted."""
    named = [Key(group, role) for group, role in colours.items() if role != OTHERS]
    others = len(colours) - len(named)
    if not others and len(named) < 2 and not any(key.label for key in named):
        return []
    return [*named, Key(f"{others} others", OTHERS)] if others else named


def heading(title: str, keys: Sequence[Key], width: float) -> Block:
    """Returns the title, at most two lines, and under it the legend in as many rows as it needs."""
    shapes: list[Shape] = []
    y = PAD
    lines = wrap(title, width - 2 * PAD, TITLE_SIZE, 2, bold=True)
    tip = tip_text(title) if lines and lines[-1].endswith("…") else ""
    for line in lines:
        y += TITLE_SIZE
        shapes.append(Text(PAD, y, line, TITLE_SIZE, bold=True, tip=tip))
        y += 5
    x = PAD
    y += 14 if keys else 0
    for key in keys:
        swatch = 20.0 if key.line else 9.0
        label = shorten(key.label, min(180.0, width - 2 * PAD - 40), SMALL_SIZE)
        room = swatch + 5 + text_width(label, SMALL_SIZE)
        if x > PAD and x + room > width - PAD:
            x, y = PAD, y + 17
        if key.line:
            ends = ((x, y - 4), (x + swatch, y - 4))
            shapes.append(Polyline(ends, key.role, 2, dash=key.dash))
        else:
            shapes.append(Circle(x + 4.5, y - 4, 4.5, key.role))
        tip = tip_text(key.label) if label != key.label else ""
        shapes.append(Text(x + swatch + 5, y, label, SMALL_SIZE, "muted", tip=tip))
        x += room + 14
    return Block(tuple(shapes), y + (8 if keys or title else 0))


def footnote(note: str, width: float, top: float) -> Block:
    shapes = []
    y = top
    for line in wrap(note, width - 2 * PAD, SMALL_SIZE, 6):
        y += 15
        shapes.append(Text(PAD, y, line, SMALL_SIZE, "muted"))
    return Block(tuple(shapes), y + PAD)


def x_axis(scale: Scale, top: float, bottom: float, label: str) -> Block:
    """Grid lines from `top` to `bottom`, tick labels and the axis label beneath."""
    shapes: list[Shape] = []
    y = bottom + 16
    for tick, text in fitting_ticks(scale, _small_width, gap=10, about=8):
        x = scale(tick)
        shapes.append(Line(x, top, x, bottom, "grid"))
        shapes.append(Text(x, y, text, SMALL_SIZE, "muted", "middle"))
    if label:
        y += 19
        middle, room = (scale.start + scale.end) / 2, scale.end - scale.start
        shown = shorten(label, room, TEXT_SIZE)
        shapes.append(Text(middle, y, shown, TEXT_SIZE, anchor="middle", tip=_tip(label, shown)))
    return Block(tuple(shapes), y + 6)


def plane(
    x_range: Range,
    y_range: Range,
    *,
    title: str,
    x_label: str,
    y_label: str,
    note: str,
    keys: Sequence[Key],
    plot_height: float = 280.0,
    log_x: bool = False,
) -> Plane:
    """Returns two axes with grid, labels, title, legend and note, as wide as every chart."""
    head = heading(title, keys, WIDTH)
    top = head.bottom + 4
    bottom = top + plot_height
    y = Scale(*y_range, bottom, top)
    y_ticks = fitting_ticks(y, lambda _: SMALL_SIZE, gap=14, about=7)
    left = PAD + max((_small_width(text) for _, text in y_ticks), default=0) + 8
    left += 22 if y_label else 0
    shapes: list[Shape] = list(head.shapes)
    for tick, text in y_ticks:
        shapes.append(Line(left, y(tick), WIDTH - PAD, y(tick), "grid"))
        shapes.append(Text(left - 7, y(tick) + 4, text, SMALL_SIZE, "muted", "end"))
    if y_label:
        shown = shorten(y_label, plot_height, TEXT_SIZE)
        middle = (top + bottom) / 2
        tip = _tip(y_label, shown)
        shapes.append(Text(PAD + 10, middle, shown, TEXT_SIZE, anchor="middle", angle=-90, tip=tip))
    x = Scale(*x_range, left, WIDTH - PAD, log_x)
    below = x_axis(x, top, bottom, x_label)
    shapes += below.shapes
    shapes.append(Line(left, bottom, WIDTH - PAD, bottom, "axis"))
    shapes.append(Line(left, top, left, bottom, "axis"))
    foot = footnote(note, WIDTH, below.bottom)
    return Plane(x, y, (*shapes, *foot.shapes), foot.bottom)


def nothing(title: str, note: str = "") -> Drawing:
    """Draws the picture of no data: it says so."""
    head = heading(title, (), WIDTH)
    area = Rect(PAD, head.bottom + 4, WIDTH - 2 * PAD, 120, "grid", 0.5)
    words = Text(WIDTH / 2, head.bottom + 69, "no data", TITLE_SIZE, "muted", "middle")
    foot = footnote(note, WIDTH, head.bottom + 124)
    return Drawing(WIDTH, foot.bottom, (*head.shapes, area, words, *foot.shapes), title, "no data")


def sentences(*parts: str) -> str:
    return " ".join(
        part if part.endswith((".", "!", "?")) else f"{part}." for part in parts if part
    )


def _small_width(text: str) -> float:
    return text_width(text, SMALL_SIZE)


def _tip(full: str, shown: str) -> str:
    return tip_text(full) if full != shown else ""


def small_multiples(drawings: Sequence[Drawing], columns: int = 3, title: str = "") -> Drawing:
    """Returns the drawings row by row; a column is as wide as its widest, a row as high as its
    highest."""
    if columns < 1:
        raise UsageError(f"columns is {columns}, but has to be 1 or more")
    if not drawings:
        return nothing(title)
    columns = min(columns, len(drawings))
    rows = [drawings[i : i + columns] for i in range(0, len(drawings), columns)]
    widths = [max(d.width for d in drawings[i::columns]) for i in range(columns)]
    width = sum(widths)
    head = heading(title, (), width)
    shapes: list[Shape] = list(head.shapes)
    y = head.bottom if title else 0.0
    for row in rows:
        x = 0.0
        for drawing, column in zip(row, widths, strict=False):
            shapes += [shape.moved(x, y) for shape in drawing.shapes]
            x += column
        y += max(drawing.height for drawing in row)
    parts = (f"{drawing.title}: {drawing.description}" for drawing in drawings)
    return Drawing(width, y + (PAD if title else 0), tuple(shapes), title, sentences(*parts))
