"""A drawing: shapes in the order in which they are painted, and words for those who cannot see it.

Coordinates are pixels, y grows downwards. A shape names the role of its colour, not the colour, so
that a picture can follow the reader's light or dark screen: `LIGHT` and `DARK` hold the colours.

Series colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any
common colour blindness can tell apart. Their yellow is invisible on white and their black on black,
so the last series is black on light paper and yellow on dark. `high` and `low` are the ends of a
diverging scale; `bright` is text on them, `figure` text on their weaker tints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dialeval.errors import UsageError
from dialeval.storage import atomic_path, write_text

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1f2328",
    "muted": "#59636e",
    "grid": "#e3e6ea",
    "axis": "#8b949e",
    "void": "#d5d9de",
    "figure": "#000000",
    "bright": "#ffffff",
    "high": "#2166ac",
    "low": "#b2182b",
    "series1": "#0072b2",
    "series2": "#d55e00",
    "series3": "#009e73",
    "series4": "#e69f00",
    "series5": "#cc79a7",
    "series6": "#56b4e9",
    "series7": "#000000",
}
DARK = {
    "paper": "#15181c",
    "ink": "#e6e9ed",
    "muted": "#a3acb6",
    "grid": "#2c3138",
    "axis": "#69727d",
    "void": "#3a4048",
    "figure": "#ffffff",
    "bright": "#ffffff",
    "high": "#2f74bd",
    "low": "#c43545",
    "series1": "#3391d1",
    "series2": "#e8742a",
    "series3": "#1fb58a",
    "series4": "#f0b030",
    "series5": "#d98fb8",
    "series6": "#8ccbf2",
    "series7": "#f0e442",
}
SERIES = tuple(role for role in LIGHT if role.startswith("series"))
OTHERS = "axis"


def colour_groups(groups: Sequence[str]) -> dict[str, str]:
    """A role for each group, in order of appearance.

    Nobody can tell more than a handful of colours apart: where there are more groups than colours,
    the largest have their own and the rest share a grey.
    """
    counts = Counter(groups)
    chosen = counts if len(counts) <= len(SERIES) else dict(counts.most_common(len(SERIES)))
    colours = iter(SERIES)
    return {group: next(colours) if group in chosen else OTHERS for group in counts}


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

    def save(self, path: str | Path) -> None:
        """Writes `.svg` or `.png`; the file appears whole or not at all."""
        save(self, path)

    def _repr_svg_(self) -> str:
        return self.svg()


def save(drawing: Drawing, path: str | Path) -> None:
    """Writes `.svg` or `.png`; the file appears whole or not at all."""
    path = Path(path)
    match path.suffix.lower():
        case ".svg":
            write_text(path, drawing.svg())
        case ".png":
            data = drawing.png()
            with atomic_path(path) as temporary:
                temporary.write_bytes(data)
        case other:
            found = f"not {other!r}" if other else "but it has no suffix"
            raise UsageError(f"{path}: a picture's name ends in .svg or .png, {found}")
