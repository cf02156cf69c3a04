"""A drawing: shapes in the order in which they are painted, and words for those who cannot see it.

Coordinates are pixels, y grows downwards. A shape names the role of its colour, not the colour, so
that a picture can follow the reader's light or dark screen (see `palette.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float
    role: str = "ink"
    thickness: float = 1.0
    tip: str = ""

    def moved(self, dx: float, dy: float) -> Line:
        return replace(self, x1=self.x1 + dx, y1=self.y1 + dy, x2=self.x2 + dx, y2=self.y2 + dy)


@dataclass(frozen=True, slots=True)
class Polyline:
    """Points joined by straight lines; `dash` alternates lengths drawn and left out."""

    points: tuple[Point, ...]
    role: str = "ink"
    thickness: float = 1.0
    dash: tuple[float, ...] = ()
    tip: str = ""

    def moved(self, dx: float, dy: float) -> Polyline:
        return replace(self, points=tuple((x + dx, y + dy) for x, y in self.points))


@dataclass(frozen=True, slots=True)
class Rect:
    x: float
    y: float
    width: float
    height: float
    role: str = "ink"
    opacity: float = 1.0
    tip: str = ""

    def moved(self, dx: float, dy: float) -> Rect:
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True, slots=True)
class Circle:
    x: float
    y: float
    radius: float
    role: str = "ink"
    opacity: float = 1.0
    tip: str = ""

    def moved(self, dx: float, dy: float) -> Circle:
        return replace(self, x=self.x + dx, y=self.y + dy)


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text; (x, y) is its anchor on the baseline, `angle` turns it clockwise there."""

    x: float
    y: float
    text: str
    size: float
    role: str = "ink"
    anchor: Anchor = "start"
    angle: float = 0.0
    bold: bool = False
    tip: str = ""

    def moved(self, dx: float, dy: float) -> Text:
        return replace(self, x=self.x + dx, y=self.y + dy)


Shape = Line | Polyline | Rect | Circle | Text


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished picture. `title` and `description` are what a screen reader says."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    title: str = ""
    description: str = ""

    def svg(self) -> str:
        from dialeval.pictures.svg import to_svg

        return to_svg(self)

    def png(self, scale: int = 2) -> bytes:
        from dialeval.pictures.png import to_png

        return to_png(self, scale)
