"""How scores are spread: a row of bars for each side, all on one axis, with a tick at the mean."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dialeval.agreement.ranks import Floats
from dialeval.pictures.drawing import OTHERS, Drawing, Line, Rect, Shape, Text, colour_groups
from dialeval.pictures.frame import (
    PAD,
    SMALL_SIZE,
    TEXT_SIZE,
    heading,
    nothing,
    sentences,
    shorten,
    text_width,
    tip_text,
    x_axis,
)
from dialeval.pictures.scale import Scale, data_range, short_number

BINS = 28
WIDTH, ROW, GAP = 440.0, 44.0, 10.0
LABEL_ROOM = 110.0
MOST_ROWS = 8


def histogram(title: str, sides: Mapping[str, Floats], note: str = "") -> Drawing:
    """Bars of equal width; their height is the share of the side's scores, on one scale for all."""
    there = {name: column[~np.isnan(column)] for name, column in sides.items()}
    there = {name: column for name, column in there.items() if len(column)}
    if not there:
        return nothing(title, note)
    hidden = len(there) - MOST_ROWS
    if hidden > 0:
        there = dict(list(there.items())[:MOST_ROWS])
        note = sentences(note, f"{hidden} more are not drawn")
    everything = np.concatenate(list(there.values()))
    low, high = data_range((float(everything.min()), float(everything.max())), margin=0.0)
    edges = np.linspace(low, high, BINS + 1)
    shares = {name: np.histogram(column, edges)[0] / len(column) for name, column in there.items()}
    tallest = max(float(share.max()) for share in shares.values())

    head = heading(title, (), WIDTH)
    several = len(there) > 1 or "" not in there
    labels = {name: shorten(name or "(unnamed)", LABEL_ROOM, TEXT_SIZE) for name in there}
    left = PAD + (max(text_width(text, TEXT_SIZE) for text in labels.values()) + 10) * several
    top = head.bottom + 6
    bottom = top + len(there) * (ROW + GAP)
    scale = Scale(low, high, left, WIDTH - PAD)
    below = x_axis(scale, top, bottom, "")
    colours = colour_groups(list(there))
    shapes: list[Shape] = [*head.shapes, *below.shapes]
    said = []
    y = top
    for name, share in shares.items():
        base = y + ROW
        role = colours[name] if several else "series1"
        shapes += _bars(share, edges, scale, base, tallest, role, len(there[name]))
        mean = float(there[name].mean())
        tip = f"mean {short_number(mean)}"
        shapes.append(Line(left, base, WIDTH - PAD, base, "axis"))
        shapes.append(Line(scale(mean), base - ROW, scale(mean), base + 4, "ink", 1.6, tip))
        if several:
            full = tip_text(name) if labels[name] != name else ""
            shapes.append(
                Text(left - 10, base - 4, labels[name], TEXT_SIZE, anchor="end", tip=full)
            )
        said.append(f"{name or 'all'}: n = {len(there[name]):,}, {tip}")
        y += ROW + GAP
    height = below.bottom + 4
    if note:
        height += SMALL_SIZE + 6
        shapes.append(Text(PAD, height - 6, note, SMALL_SIZE, "muted"))
    return Drawing(
        WIDTH, height, tuple(shapes), title, sentences("Histogram. " + "; ".join(said), note)
    )


def _bars(
    share: Floats, edges: Floats, scale: Scale, base: float, tallest: float, role: str, n: int
) -> list[Shape]:
    shapes: list[Shape] = []
    for place, part in enumerate(share.tolist()):
        if not part:
            continue
        start, end = scale(float(edges[place])), scale(float(edges[place + 1]))
        height = max(1.0, (ROW - 4) * part / tallest)
        span = f"{short_number(float(edges[place]))} to {short_number(float(edges[place + 1]))}"
        tip = f"{span}: {round(part * n):,} ({part:.0%})"
        opacity = 0.55 if role == OTHERS else 0.8
        width = max(0.8, end - start - 1)
        shapes.append(Rect(start + 0.5, base - height, width, height, role, opacity, tip))
    return shapes
