"""A drawing as PNG, in light colours, with Pillow and the font inside it.

Pillow's shapes have hard edges: everything is painted larger and then reduced. The font inside
Pillow is there on every machine and gives the same pixels, but it knows little more than ASCII:
accents are left out, letters of other scripts show as boxes. In SVG they do not.
"""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from dialeval.errors import UsageError
from dialeval.pictures.drawing import (
    LIGHT,
    Circle,
    Drawing,
    Line,
    Point,
    Polyline,
    Rect,
    Shape,
    Text,
)
from dialeval.text import clean

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

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
