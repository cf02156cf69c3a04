"""Text that fits: how wide it is about, where to cut it, where to break it.

An SVG is drawn with whatever font the reader has. Widths here are those of DejaVu Sans, the widest
of the usual sans-serif fonts, so that what fits here fits elsewhere too.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from dialeval.safe_text import clean

BOLD = 1.1
TIP_LENGTH = 300

_WIDTHS = {  # thousandths of the font size
    **dict.fromkeys("ijl'", 280),
    **dict.fromkeys(" .,IJ", 318),
    **dict.fromkeys(":;/|\\f", 352),
    **dict.fromkeys("()[]-rt!", 411),
    **dict.fromkeys('"*_csz?', 550),
    **dict.fromkeys("abdeghknopquvxyFL", 636),
    **dict.fromkeys("0123456789${}EPSTY", 636),
    **dict.fromkeys("ABCKRVXZ", 700),
    **dict.fromkeys("DGHNOQU&", 790),
    **dict.fromkeys("wM+=<>#^~−", 863),
    **dict.fromkeys("mW%@…\ufffd", 1030),
}


@lru_cache(maxsize=4096)
def _character_width(char: str) -> int:
    if char in _WIDTHS:
        return _WIDTHS[char]
    if unicodedata.combining(char):
        return 0
    return 1100 if unicodedata.east_asian_width(char) in "WF" else 800


def text_width(text: str, size: float, bold: bool = False) -> float:
    return sum(map(_character_width, text)) * size / 1000 * (BOLD if bold else 1)


def shorten(text: str, room: float, size: float, bold: bool = False) -> str:
    """The text on one line, its end replaced by an ellipsis where it is wider than `room`."""
    # A character with a width takes at least a quarter of the size: no need to measure a megabyte.
    start = clean(text[: int(8 * room / size) + 64])
    if len(start) >= len(text) and text_width(start, size, bold) <= room:
        return start
    room -= text_width("…", size, bold)
    used, end = 0.0, 0
    for char in start:
        used += text_width(char, size, bold)
        if used > room:
            break
        end += 1
    return start[:end].rstrip() + "…"


def wrap(text: str, room: float, size: float, lines: int, bold: bool = False) -> list[str]:
    """The text broken at spaces into at most so many lines; the last one is shortened."""
    words = clean(text[: lines * (int(8 * room / size) + 64)]).split()
    done: list[str] = []
    while words and len(done) < lines - 1:
        taken = 1
        while taken < len(words) and (text_width(" ".join(words[: taken + 1]), size, bold) <= room):
            taken += 1
        done.append(shorten(" ".join(words[:taken]), room, size, bold))
        words = words[taken:]
    if words:
        done.append(shorten(" ".join(words), room, size, bold))
    return done


def tip_text(text: str) -> str:
    """Text for a tooltip: long enough for any name, never a whole document."""
    start = clean(text[:TIP_LENGTH])
    return start + "…" if len(text) > TIP_LENGTH else start
