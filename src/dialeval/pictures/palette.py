"""Colours by role, for light and dark screens.

Series colours are those of Okabe and Ito (Color Universal Design, 2008), which people with any
common colour blindness can tell apart. Their yellow is invisible on white and their black on black,
so the last series is black on light paper and yellow on dark. `high` and `low` are the ends of a
diverging scale; `bright` is text on them, `figure` text on their weaker tints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

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
