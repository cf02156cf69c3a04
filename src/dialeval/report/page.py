"""The page itself: style sheet, script, the policy that allows these two, and as many dialogues as
there is room for."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.pictures.svg import to_svg
from dialeval.report.look import STATIC, environment, stylesheet

if TYPE_CHECKING:
    from dialeval.pictures.drawing import Drawing
    from dialeval.report.cards import Card
    from dialeval.report.selection import Selection

LARGEST = 4_900_000
"""Bytes of a report: under 5 MB."""

Key = tuple[int, int]


def render_page(
    values: Mapping[str, Any], every: Sequence[Card], selection: Selection, several: bool
) -> tuple[str, int, int]:
    """The page, how many dialogues it shows, and how many of them without their evidence."""
    from markupsafe import Markup

    made = environment()
    template, card_template = made.get_template("report.html"), made.get_template("card.html")
    frame = {**_fixed(), **values}
    empty = template.render(frame, cards=[], shown=len(every), brief=selection.size)
    room = LARGEST - len(empty.encode("utf-8"))

    def render(card: Card, brief: bool) -> str:
        return card_template.render(
            card=card, brief=brief, several=several, shows_system=values["shows_system"]
        )

    texts, n_brief = _within(every, selection, room, render)
    kept = [Markup(texts[card.key]) for card in every if card.key in texts]
    page = template.render(frame, cards=kept, shown=len(kept), brief=n_brief)
    return page, len(kept), n_brief


def _within(
    every: Sequence[Card],
    selection: Selection,
    room: int,
    render: Callable[[Card, bool], str],
) -> tuple[dict[Key, str], int]:
    """As many dialogues as there is room for, those that matter most first: with all that stands
    behind their scores while a short form of the others still fits."""
    by_key = {card.key: card for card in every}
    first = [key for key in selection.first if key in by_key]
    order = [*first, *(key for key in by_key if key not in set(first))]
    short = {key: render(by_key[key], True) for key in order}
    sizes = {key: len(text.encode("utf-8")) for key, text in short.items()}
    kept: dict[Key, str] = {}
    used = 0
    for key in order:
        if used + sizes[key] <= room:
            kept[key] = short[key]
            used += sizes[key]
    n_brief = len(kept)
    for key in kept:
        full = render(by_key[key], False)
        extra = len(full.encode("utf-8")) - sizes[key]
        if used + extra <= room:
            kept[key] = full
            used += extra
            n_brief -= 1
    return kept, n_brief


def _fixed() -> dict[str, Any]:
    """Style sheet, script, and the policy that allows these two and nothing else."""
    from markupsafe import Markup

    style = stylesheet("report.css")
    script = (STATIC / "report.js").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)};"
        " base-uri 'none'; form-action 'none'"
    )
    return {"style": Markup(style), "script": Markup(script), "policy": policy}


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def inline_svg(drawing: Drawing) -> Any:
    """Pictures escape their own texts (`pictures/svg.py`)."""
    from markupsafe import Markup

    return Markup(to_svg(drawing, styled=False))
