"""A drawing as SVG text that needs nothing else: no font, no script, no file.

Colours are plain attributes, which every program understands, and custom properties in a style
sheet, which follow a browser's light or dark mode; a page may set `--dialeval-ink` and the others
on `.dialeval-picture`. Neighbours with the same style share one group: thousands of points stay
small.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from html import escape
from itertools import groupby

from dialeval.pictures.drawing import (
    DARK,
    LIGHT,
    Circle,
    Drawing,
    Line,
    Polyline,
    Rect,
    Shape,
    Text,
)
from dialeval.safe_text import clean

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
    """The style sheet of all pictures of a page."""
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
    """The attributes that a shape shares with its neighbours."""
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
