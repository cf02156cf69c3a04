"""Reads a drawing back: the boxes of its texts, and its SVG as XML."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

from PIL import ImageFont

from dialeval.pictures import Drawing
from dialeval.pictures.drawing import Circle, Line, Polyline, Rect, Text

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    '<script>alert("1")</script>',
    "line\nbreak\r\n\ttab",
    "\x00\x1b[31mred\x07",
    "שלום עולם",
    "مرحبا",
    "👩‍👩‍👧 party 🎉",
    "中文系统名称" * 20,
    "e\u0301\u0301 \u202eoverride",
    "\ufffe\uffff\ud800",
    "&amp; ]]> ' \" --> <!--",
    "W" * 5000,
    "",
]


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        return (
            min(self.right, other.right) - max(self.left, other.left) > 0.5
            and min(self.bottom, other.bottom) - max(self.top, other.top) > 0.5
        )


def text_box(text: Text) -> Box:
    """Where a text stands, by a font that the layout knows nothing about."""
    font = ImageFont.load_default(text.size)
    left, top, right, bottom = font.getbbox(text.text, anchor="ls")
    shift = {"start": 0.0, "middle": -right / 2, "end": -right}[text.anchor]
    turn = math.radians(text.angle)
    corners = [
        (
            text.x + (x + shift) * math.cos(turn) - y * math.sin(turn),
            text.y + (x + shift) * math.sin(turn) + y * math.cos(turn),
        )
        for x in (left, right)
        for y in (top, bottom)
    ]
    xs, ys = zip(*corners, strict=True)
    return Box(min(xs), min(ys), max(xs), max(ys))


def texts(drawing: Drawing) -> list[Text]:
    return [shape for shape in drawing.shapes if isinstance(shape, Text)]


def coordinates(drawing: Drawing) -> list[tuple[float, float]]:
    """Corners and ends of everything that is drawn; of text, the anchor."""
    found: list[tuple[float, float]] = []
    for shape in drawing.shapes:
        match shape:
            case Line(x1, y1, x2, y2):
                found += [(x1, y1), (x2, y2)]
            case Polyline(points):
                found += points
            case Rect(x, y, width, height):
                found += [(x, y), (x + width, y + height)]
            case Circle(x, y) | Text(x, y):
                found.append((x, y))
    return found


def assert_inside(drawing: Drawing) -> None:
    for x, y in coordinates(drawing):
        assert -0.01 <= x <= drawing.width + 0.01
        assert -0.01 <= y <= drawing.height + 0.01


def assert_texts_apart(drawing: Drawing) -> None:
    """No text leaves the frame or touches another; turned text is only held to the frame."""
    boxes = [(text, text_box(text)) for text in texts(drawing)]
    for _, box in boxes:
        assert box.left >= 0
        assert box.top >= 0
        assert box.right <= drawing.width
        assert box.bottom <= drawing.height
    level = [(text, box) for text, box in boxes if text.angle in (0, -90)]
    for i, (text, box) in enumerate(level):
        for other, other_box in level[:i]:
            assert not box.overlaps(other_box), (text.text, other.text)


def parsed(drawing: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(drawing.svg().encode())
