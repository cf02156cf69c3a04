"""The frame of all charts: axes, and title, legend and note around the plot; the empty picture.

Text must fit: how wide it is about, where to cut it, where to break it. An SVG is drawn with
whatever font the reader has. Widths here are those of DejaVu Sans, the widest of the usual sans-
serif fonts, so that what fits here fits elsewhere too.

An axis takes numbers to pixels: it has a range, round numbers to mark on it, and their labels.
Ticks follow the 1-2-5 rule: their distance is 1, 2 or 5 times a power of ten.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from dialeval.errors import UsageError
from dialeval.pictures.drawing import OTHERS, Circle, Drawing, Line, Polyline, Rect, Shape, Text
from dialeval.text import clean

LARGEST = 1e300
"""Larger numbers cannot be subtracted from each other without overflow; they count as infinite."""

Range = tuple[float, float]


def drawable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and abs(value) <= LARGEST


def drawable_on_log(value: float) -> bool:
    """Positive, and far enough from the ends of the floating point numbers for a margin."""
    return 1e-250 <= value <= 1e250


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low` to the pixel `start` and `high` to `end`, evenly or by the logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (self.end - self.start) * ((value - low) / (high - low))


def data_range(values: Iterable[float], *, margin: float = 0.04) -> Range:
    """Returns the range of the values with a margin; it is never empty, even for equal values."""
    found = [value for value in values if drawable(value)]
    if not found:
        return 0.0, 1.0
    low, high = min(found), max(found)
    size = max(abs(low), abs(high))
    if high - low <= 1e-9 * size or high - low < 1e-290:
        half = 0.1 * size if size > 1e-290 else 0.5
        return low - half, high + half
    extra = (high - low) * margin
    return low - extra, high + extra


def log_range(values: Iterable[float], *, margin: float = 0.04) -> Range:
    """Returns the same for positive values on a logarithmic axis."""
    exponents = [math.log10(value) for value in values if drawable_on_log(value)]
    if not exponents:
        return 1.0, 10.0
    low, high = min(exponents), max(exponents)
    extra = (high - low) * margin if high - low > 0.01 else 0.15
    return 10.0 ** (low - extra), 10.0 ** (high + extra)


def nice_ticks(low: float, high: float, about: int = 6) -> tuple[float, ...]:
    """Round numbers within [low, high], at most about + 1 of them and at least about / 2.5 - 1."""
    least_step = (high - low) / about
    exponent = math.floor(math.log10(least_step))
    factor = next((f for f in (1, 2, 5) if _decimal(f, exponent) >= least_step * (1 - 1e-9)), None)
    if factor is None:
        factor, exponent = 1, exponent + 1
    step = _decimal(factor, exponent)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(_decimal(i * factor, exponent) for i in range(first, last + 1))


def _decimal(count: int, exponent: int) -> float:
    """count * 10^exponent, rounded once: 3 * 10^-1 is 0.3, not 0.30000000000000004."""
    return count / 10.0**-exponent if exponent < 0 else count * 10.0**exponent


def log_ticks(low: float, high: float, about: int = 6) -> tuple[float, ...]:
    """Powers of ten, with their doubles and halves between them where there is room."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    dense = [
        tick
        for exponent in range(first, last + 1)
        for factor in (1, 2, 5)
        if low <= (tick := _decimal(factor, exponent)) <= high
    ]
    if len(dense) < 2:
        return nice_ticks(low, high, about)
    if len(dense) <= about + 1:
        return tuple(dense)
    powers = [tick for tick in dense if f"{tick:e}".startswith("1.0")]
    chosen = powers if len(powers) >= 2 else dense
    return tuple(chosen[:: math.ceil(len(chosen) / (about + 1))])


def fitting_ticks(
    scale: Scale, measure: Callable[[str], float], *, gap: float, about: int
) -> list[tuple[float, str]]:
    """Returns as many labelled ticks as fit on the axis without touching."""
    choose = log_ticks if scale.log else nice_ticks
    while True:
        ticks = choose(scale.low, scale.high, about)
        labels = [_plain(tick) for tick in ticks] if scale.log else tick_labels(ticks)
        places = [scale(tick) for tick in ticks]
        widths = [measure(label) for label in labels]
        if about <= 1 or all(
            abs(places[i + 1] - places[i]) >= (widths[i] + widths[i + 1]) / 2 + gap
            for i in range(len(ticks) - 1)
        ):
            return list(zip(ticks, labels, strict=True))
        about -= 1


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Labels of even ticks, all with the same number of decimals, different ticks different."""
    if len(ticks) < 2:
        return [_plain(tick) for tick in ticks]
    largest = _exponent(max(map(abs, ticks)))
    smallest = _exponent(min(b - a for a, b in pairwise(ticks)))
    if largest >= 6 or smallest < -5:
        digits = max(0, largest - smallest)
        return [_scientific(tick, digits) for tick in ticks]
    return [_minus(f"{tick:,.{max(0, -smallest)}f}") for tick in ticks]


def _exponent(value: float) -> int:
    """Returns the exponent of the first digit. Ticks begin with 1, 2 or 5, up to rounding, hence
    the slack."""
    return math.floor(math.log10(value) + 0.001)


def _plain(tick: float) -> str:
    """Returns the label of a tick that has no even neighbours."""
    in_full = tick == 0 or 1e-4 <= abs(tick) < 1e6
    return _minus(f"{tick:,.10g}") if in_full else _scientific(tick, 9)


def _scientific(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return _minus(f"{mantissa}e{int(exponent)}")


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def short_number(value: float) -> str:
    """Returns a number to read in passing, with four significant digits."""
    return _minus(f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.4g}")


def two_decimals(value: float) -> str:
    """Returns a number as papers print correlations."""
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else _minus(text)


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
    """A chart with two axes: the scales that place its points, and everything drawn around them."""

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
