"""A drawing: shapes in the order in which they are painted, and words for those who cannot see it.

Coordinates are pixels, y grows downwards. A shape names the role of its colour, not the colour, so
that a picture can follow the reader's light or dark screen: `LIGHT` and `DARK` hold the colours.

Series colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any
common colour blindness can tell apart. Their yellow is invisible on white and their black on black,
so the last series is black on light paper and yellow on dark. `high` and `low` are the ends of a
diverging scale; `bright` is text on them, `figure` text on their weaker tints.

`to_svg` writes SVG text that needs nothing else: no font, no script, no file. Colours are plain
attributes, which every program understands, and custom properties in a style sheet, which follow a
browser's light or dark mode; a page may set `--dialeval-ink` and the others on `.dialeval-picture`.
Neighbours with the same style share one group: thousands of points stay small.

`to_png` paints in light colours, with Pillow and the font inside it. Pillow's shapes have hard
edges: everything is painted larger and then reduced. The font inside Pillow is there on every
machine and gives the same pixels, but it knows little more than ASCII: accents are left out,
letters of other scripts show as boxes. In SVG they do not.
"""

from __future__ import annotations

import hashlib
import io
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dialeval.errors import UsageError
from dialeval.storage import atomic_path, write_text
from dialeval.text import clean

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont


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
    """Returns a role for each group, in order of appearance.

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
    """A straight line between two points."""

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
    """A filled rectangle; (x, y) is its upper left corner."""

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
    """A filled circle around (x, y)."""

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
        return to_svg(self)

    def png(self, scale: int = 2) -> bytes:
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


FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

_NOT_IN_XML = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")


def to_svg(drawing: Drawing, *, styled: bool = True) -> str:
    """`styled=False` leaves the style sheet to the page (`picture_rules`), for pages whose policy
    forbids styles within."""
    width, height = _number(drawing.width), _number(drawing.height)
    paper = Rect(0, 0, drawing.width, drawing.height, "paper")
    shapes = (paper, *drawing.shapes)
    body = "\n".join(
        f"<g {style}>{''.join(map(_element, group))}</g>"
        for style, group in groupby(shapes, key=_style)
    )
    title, description = _escape(drawing.title or "picture"), _escape(drawing.description)
    # Several pictures may stand in one page, where an id must be unique.
    name = hashlib.sha256(f"{title}\0{description}\0{body}".encode()).hexdigest()[:12]
    sheet = _style_sheet(shape.role for shape in shapes)
    limits, style = (' style="max-width:100%;height:auto"', f"<style>{sheet}</style>\n")
    if not styled:
        limits = style = ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dialeval-picture" role="img"'
        f' aria-labelledby="t{name}" aria-describedby="d{name}"'
        f' width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f'{limits} font-family="{FONTS}">\n'
        f'<title id="t{name}">{title}</title>\n<desc id="d{name}">{description}</desc>\n'
        f"{style}{body}\n</svg>\n"
    )


def picture_rules() -> str:
    """Returns the style sheet of all pictures of a page."""
    return _style_sheet(LIGHT) + ".dialeval-picture{max-width:100%;height:auto}"


def _style_sheet(used: Iterable[str]) -> str:
    roles = sorted(set(used))

    def properties(theme: dict[str, str]) -> str:
        return ";".join(f"--dialeval-{role}:{theme[role]}" for role in roles)

    # :where has no weight, so that a page's own rule for the properties wins.
    picture = ":where(.dialeval-picture)"
    rules = [
        f"{picture}{{{properties(LIGHT)}}}",
        f"@media (prefers-color-scheme:dark){{{picture}{{{properties(DARK)}}}}}",
    ]
    for role in roles:
        colour = f"var(--dialeval-{role})"
        rules.append(f".dialeval-picture .f-{role}{{fill:{colour}}}")
        rules.append(f".dialeval-picture .s-{role}{{stroke:{colour}}}")
    return "".join(rules)


def _style(shape: Shape) -> str:
    """Returns the attributes that a shape shares with its neighbours."""
    colour = LIGHT[shape.role]
    match shape:
        case Line() | Polyline():
            dash = getattr(shape, "dash", ())
            dashes = f' stroke-dasharray="{" ".join(map(_number, dash))}"' if dash else ""
            return (
                f'class="s-{shape.role}" stroke="{colour}" fill="none"'
                f' stroke-width="{_number(shape.thickness)}" stroke-linejoin="round"{dashes}'
            )
        case Text():
            weight = ' font-weight="600"' if shape.bold else ""
            anchor = f' text-anchor="{shape.anchor}"' if shape.anchor != "start" else ""
            # Text without a tooltip of its own lets that of the shape beneath through.
            through = "" if shape.tip else ' pointer-events="none"'
            return (
                f'class="f-{shape.role}" fill="{colour}" font-size="{_number(shape.size)}"'
                f"{weight}{anchor}{through}"
            )
        case Rect() | Circle():
            faint = f' fill-opacity="{shape.opacity:.3g}"' if shape.opacity < 1 else ""
            return f'class="f-{shape.role}" fill="{colour}"{faint}'


def _element(shape: Shape) -> str:
    n = _number
    match shape:
        case Line(x1, y1, x2, y2):
            name, text = "line", ""
            places = f'x1="{n(x1)}" y1="{n(y1)}" x2="{n(x2)}" y2="{n(y2)}"'
        case Polyline(points):
            name, text = "polyline", ""
            places = f'points="{" ".join(f"{n(x)},{n(y)}" for x, y in points)}"'
        case Rect(x, y, width, height):
            name, text = "rect", ""
            places = f'x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}"'
        case Circle(x, y, radius):
            name, text = "circle", ""
            places = f'cx="{n(x)}" cy="{n(y)}" r="{n(radius)}"'
        case Text(x, y, text):
            name = "text"
            places = f'x="{n(x)}" y="{n(y)}"'
            if shape.angle:
                places += f' transform="rotate({n(shape.angle)} {n(x)} {n(y)})"'
    inside = (f"<title>{_escape(shape.tip)}</title>" if shape.tip else "") + _escape(text)
    return f"<{name} {places}>{inside}</{name}>" if inside else f"<{name} {places}/>"


def _number(value: float) -> str:
    """A tenth of a pixel is finer than anybody sees."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _escape(text: str) -> str:
    return escape(clean(text).translate(_NOT_IN_XML))


MOST_PIXELS = 60_000_000
_IN_FONT = frozenset("©«°±´·»‘’“”…‹›⁄™")
_INSTEAD = {"−": "-", "‐": "-", "‑": "-", "–": "-", "—": "-", "×": "x", "•": "·", "\u00a0": " "}
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def to_png(drawing: Drawing, scale: int = 2) -> bytes:
    """Returns the PNG file, `scale` pixels for each pixel of the drawing."""
    if scale < 1:
        raise UsageError(f"scale is {scale}, but has to be 1 or more")
    width, height = math.ceil(drawing.width) * scale, math.ceil(drawing.height) * scale
    if width * height > MOST_PIXELS:
        raise UsageError(
            f"{width} x {height} pixels are too many for a PNG:"
            " save it as .svg or use a smaller scale"
        )
    finer = next(k for k in (4, 3, 2, 1) if width * height * k * k <= MOST_PIXELS or k == 1)
    image = _paint(drawing, width * finer, height * finer, scale * finer).reduce(finer)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _paint(drawing: Drawing, width: int, height: int, unit: int) -> Image:
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise UsageError("PNG needs Pillow: pip install pillow, or save as .svg") from None

    image = Image.new("RGB", (width, height), LIGHT["paper"])
    canvas = ImageDraw.Draw(image, "RGBA")
    for shape in drawing.shapes:
        _draw(canvas, image, shape, unit)
    return image


def _draw(canvas: ImageDraw, image: Image, shape: Shape, unit: int) -> None:
    colour = _colour(shape)
    match shape:
        case Line(x1, y1, x2, y2):
            ends = (x1 * unit, y1 * unit, x2 * unit, y2 * unit)
            canvas.line(ends, colour, max(1, round(shape.thickness * unit)))
        case Polyline(points):
            for piece in _dashes(points, shape.dash) if shape.dash else [points]:
                places = [(x * unit, y * unit) for x, y in piece]
                canvas.line(places, colour, max(1, round(shape.thickness * unit)), "curve")
        case Rect(x, y, width, height):
            # Pillow paints the last pixel too; neighbours must not overlap.
            right, bottom = round((x + width) * unit) - 1, round((y + height) * unit) - 1
            left, top = round(x * unit), round(y * unit)
            if left <= right and top <= bottom:
                canvas.rectangle((left, top, right, bottom), colour)
        case Circle(x, y, radius):
            canvas.ellipse(
                [unit * v for v in (x - radius, y - radius, x + radius, y + radius)], colour
            )
        case Text():
            _write(canvas, image, shape, unit)


def _write(canvas: ImageDraw, image: Image, text: Text, unit: int) -> None:
    from PIL import Image, ImageDraw

    font, words, anchor = _font(text.size * unit), _writable(text.text), _ANCHORS[text.anchor]
    bold = unit // 5 if text.bold else 0
    x, y, colour = text.x * unit, text.y * unit, _colour(text)
    if not text.angle:
        canvas.text((x, y), words, colour, font, anchor, stroke_width=bold)
        return
    reach = math.ceil(font.getlength(words) + 2 * text.size * unit)
    mask = Image.new("L", (2 * reach, 2 * reach))
    ImageDraw.Draw(mask).text((reach, reach), words, 255, font, anchor, stroke_width=bold)
    turned = mask.rotate(-text.angle, Image.Resampling.BICUBIC)
    image.paste(colour[:3], (round(x) - reach, round(y) - reach), turned)


def _writable(text: str) -> str:
    """Returns the text with what the font lacks replaced by the nearest that it has, where there is
    any."""
    return "".join(map(_nearest, clean(text)))


@lru_cache(maxsize=4096)
def _nearest(char: str) -> str:
    if char.isascii() or char in _IN_FONT:
        return char
    if char in _INSTEAD:
        return _INSTEAD[char]
    if unicodedata.combining(char):
        return ""
    plain = unicodedata.normalize("NFKD", char)
    letters = "".join(part for part in plain if not unicodedata.combining(part))
    return letters if letters.isascii() else char


def _colour(shape: Shape) -> tuple[int, int, int, int]:
    red, green, blue = bytes.fromhex(LIGHT[shape.role][1:])
    return red, green, blue, round(255 * getattr(shape, "opacity", 1.0))


def _dashes(points: Sequence[Point], dash: Sequence[float]) -> Iterator[list[Point]]:
    """Yields the pieces of a polyline that a pen draws which is lifted by the pattern."""
    piece, which, left = [points[0]], 0, dash[0]
    for start, end in pairwise(points):
        length = math.dist(start, end)
        done = 0.0
        while length - done > left:
            done += left
            share = done / length
            here = (
                start[0] + (end[0] - start[0]) * share,
                start[1] + (end[1] - start[1]) * share,
            )
            if which % 2 == 0:
                yield [*piece, here]
            piece, which = [here], which + 1
            left = dash[which % len(dash)]
        left -= length - done
        piece.append(end)
    if which % 2 == 0 and len(piece) > 1:
        yield piece


@lru_cache(maxsize=16)
def _font(size: float) -> FreeTypeFont:
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise UsageError("this Pillow has no FreeType, so it cannot write text: save as .svg")
    return font
