"""Scatter plots: one number against another, as the papers show a metric against people.

Ratings are whole numbers, so many points fall on each other. Tied values are moved a little, by
less than a third of the way to the next value; the fitted line belongs to the values as they are.
Up to `MOST_POINTS` points are drawn one by one, more than that as counts in small squares.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dialeval.errors import UsageError
from dialeval.pictures.drawing import (
    OTHERS,
    SERIES,
    Circle,
    Drawing,
    Line,
    Rect,
    Shape,
    colour_groups,
)
from dialeval.pictures.frame import (
    LARGEST,
    WIDTH,
    Plane,
    Range,
    Scale,
    data_range,
    group_keys,
    nothing,
    plane,
    sentences,
    short_number,
    tip_text,
)

MOST_POINTS, MOST_TIPS = 4000, 500
SQUARE = 4.0
SHADES = 8
JITTER_SEED = 20


@dataclass(frozen=True, slots=True)
class Fit:
    """The line y = intercept + slope * x with the least squared distances in y."""

    slope: float
    intercept: float

    def __str__(self) -> str:
        slope, intercept = short_number(self.slope), short_number(self.intercept)
        return f"fitted line: slope {slope}, intercept {intercept}"


def scatter_plot(
    x: Sequence[float],
    y: Sequence[float],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    groups: Sequence[str] = (),
    note: str = "",
    jitter: bool = True,
    line: bool = True,
    x_range: Range | None = None,
    y_range: Range | None = None,
    y_noise: float = 0.0,
) -> Drawing:
    """Points coloured by group; those without two finite numbers are counted in the note.

    x_range, y_range  ends that an axis has at least, wherever the points lie
    y_noise  standard deviation of normal noise on the y that are drawn (HolisticEval, Figure 1),
             in place of the usual jitter; the fitted line belongs to the values as they are
    """
    if len(x) != len(y) or (len(groups) and len(groups) != len(x)):
        raise UsageError(
            f"a scatter plot needs as many x as y and groups:"
            f" there are {len(x)}, {len(y)} and {len(groups)}"
        )
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    finite = (np.abs(xs) <= LARGEST) & (np.abs(ys) <= LARGEST)
    left_out = int(len(xs) - finite.sum())
    if left_out:
        note = sentences(note, f"{left_out:,} of {len(xs):,} points have no finite value")
    names = [groups[i] if len(groups) else "" for i in np.flatnonzero(finite).tolist()]
    xs, ys = xs[finite], ys[finite]
    if not len(xs):
        return nothing(title, note)

    random = np.random.default_rng(JITTER_SEED)
    shown_x, shown_y = xs, ys
    if y_noise:
        shown_y = ys + random.normal(0.0, y_noise, len(ys))
        note = sentences(note, f"Noise of standard deviation {short_number(y_noise)} on y")
    elif jitter:
        shown_x, shown_y = spread_ties(xs, random), spread_ties(ys, random)
    ends = (ys if y_noise == 0 else np.concatenate([ys, shown_y])).tolist()
    colours = colour_groups(names)
    dense = len(xs) > MOST_POINTS
    if dense:
        note = sentences(note, f"{len(xs):,} points, counted in squares: the stronger, the more")
    frame = plane(
        data_range((xs.min(), xs.max(), *(x_range or ()))),
        data_range((min(ends), max(ends), *(y_range or ()))),
        title=title,
        x_label=x_label,
        y_label=y_label,
        note=note,
        keys=group_keys(colours),
    )
    roles = [colours[name] for name in names]
    shapes: list[Shape] = list(frame.shapes)
    if dense:
        shapes += _squares(shown_x, shown_y, roles, frame)
    else:
        tips = _tips(xs, ys, names) if len(xs) <= MOST_TIPS else [""] * len(xs)
        shapes += _points(shown_x, shown_y, roles, tips, frame)
    spans = [
        f"{label or axis} from {short_number(values.min())} to {short_number(values.max())}"
        for axis, label, values in (("x", x_label, xs), ("y", y_label, ys))
    ]
    if line and (fit := fit_line(xs, ys)):
        shapes += _fitted_line(fit, xs, frame)
        spans.append(str(fit))
    description = sentences(f"Scatter plot of {len(xs):,} points", *spans, note)
    return Drawing(WIDTH, frame.height, tuple(shapes), title, description)


def fit_line(x: np.ndarray, y: np.ndarray) -> Fit | None:
    """None where no line is defined: fewer than two different x."""
    scale_x, scale_y = float(np.abs(x).max()) or 1.0, float(np.abs(y).max()) or 1.0
    across, up = x / scale_x, y / scale_y
    dx, dy = across - across.mean(), up - up.mean()
    if np.ptp(across) <= 1e-9:
        return None
    slope = float(dx @ dy / (dx @ dx))
    intercept = float(up.mean() - slope * across.mean())
    fit = Fit(slope * scale_y / scale_x, intercept * scale_y)
    return fit if math.isfinite(fit.slope) and math.isfinite(fit.intercept) else None


def spread_ties(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Values that occur more than once, moved by under a third of the least gap and 2 % overall."""
    span = float(np.ptp(values))
    offsets = random.uniform(-1, 1, len(values))
    if not span:
        return values
    # Means of ratings differ in their last bits; they are ties all the same.
    rounded = np.round((values - values.min()) / span, 9)
    levels, which, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    reach = min(float(np.diff(levels).min()) * 0.3, 0.02) * span
    return np.where(counts[which] > 1, values + reach * offsets, values)


def _points(
    x: np.ndarray, y: np.ndarray, roles: Sequence[str], tips: Sequence[str], frame: Plane
) -> list[Shape]:
    """Smaller and fainter the more there are, so that a crowd is darker than a few."""
    radius = 4.0 if len(x) <= 60 else 3.2 if len(x) <= 600 else 2.4
    opacity = max(0.22, min(0.85, 0.85 * (80 / len(x)) ** 0.3))
    points = [
        Circle(frame.x(float(a)), frame.y(float(b)), radius, role, opacity, tip)
        for a, b, role, tip in zip(x, y, roles, tips, strict=True)
    ]
    # Neighbours of one colour make a small file; sorting all would hide one group under another.
    blocks = (points[i : i + 200] for i in range(0, len(points), 200))
    return [point for block in blocks for point in sorted(block, key=lambda point: point.role)]


def _tips(x: np.ndarray, y: np.ndarray, names: Sequence[str]) -> list[str]:
    return [
        tip_text(f"{name}: " if name else "") + f"({short_number(a)}, {short_number(b)})"
        for a, b, name in zip(x, y, names, strict=True)
    ]


def _squares(x: np.ndarray, y: np.ndarray, roles: Sequence[str], frame: Plane) -> list[Shape]:
    """Counts in squares, in a few shades by the logarithm of the count."""
    order = {role: i for i, role in enumerate((*SERIES, OTHERS))}
    number = np.array([order[role] for role in roles])
    columns = (_pixels(x, frame.x) - frame.x.start) // SQUARE
    rows = (_pixels(y, frame.y) - frame.y.end) // SQUARE
    counts = Counter(zip(number.tolist(), columns.tolist(), rows.tolist(), strict=True))
    most = math.log1p(max(counts.values()))
    shaded = sorted(
        (which, math.ceil(SHADES * math.log1p(count) / most), column, row)
        for (which, column, row), count in counts.items()
    )
    names = list(order)
    return [
        Rect(
            frame.x.start + column * SQUARE,
            frame.y.end + row * SQUARE,
            SQUARE,
            SQUARE,
            names[which],
            0.9 * shade / SHADES,
        )
        for which, shade, column, row in shaded
    ]


def _pixels(values: np.ndarray, scale: Scale) -> np.ndarray:
    share = (values - scale.low) / (scale.high - scale.low)
    return scale.start + (scale.end - scale.start) * share


def _fitted_line(fit: Fit, x: np.ndarray, frame: Plane) -> list[Shape]:
    """Returns the line over the range of the data, as far as it lies within the plot."""
    low, high = float(x.min()), float(x.max())
    if fit.slope:
        crossings = sorted(
            (edge - fit.intercept) / fit.slope for edge in (frame.y.low, frame.y.high)
        )
        low, high = max(low, crossings[0]), min(high, crossings[1])
    if not low < high:
        return []
    ends = [(frame.x(at), frame.y(fit.intercept + fit.slope * at)) for at in (low, high)]
    (x1, y1), (x2, y2) = ends
    return [Line(x1, y1, x2, y2, "paper", 3.2), Line(x1, y1, x2, y2, "ink", 1.8, str(fit))]
