"""Several pictures side by side, as one."""

from __future__ import annotations

from collections.abc import Sequence

from dialeval.errors import UsageError
from dialeval.pictures.drawing import Drawing, Shape
from dialeval.pictures.frame import PAD, heading, nothing, sentences


def small_multiples(drawings: Sequence[Drawing], columns: int = 3, title: str = "") -> Drawing:
    """The drawings row by row; a column is as wide as its widest, a row as high as its highest."""
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
