"""Line charts: one or more series over the same axis, such as a training curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from dialeval.pictures.drawing import SERIES, Circle, Drawing, Point, Polyline, Shape
from dialeval.pictures.frame import WIDTH, Key, nothing, plane, sentences, tip_text
from dialeval.pictures.scale import data_range, drawable, drawable_on_log, log_range, short_number

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
    """Each series as a line through its points in their order, broken where a value is missing."""
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
    """Of the points in one column of pixels only the first, lowest, highest and last are seen."""
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
