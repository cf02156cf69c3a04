"""Dialogue text is written by strangers: what a terminal and a spreadsheet must not run.

A terminal obeys control characters, so `clean` replaces them. A spreadsheet runs a cell that begins
with `=`, `+`, `-` or `@` as a formula, so `neutralise` writes a leading apostrophe, which
spreadsheets hide. Names join tables: `restored` takes the apostrophe off again.
"""

from __future__ import annotations

import unicodedata

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def neutralise(text: str) -> str:
    """Returns the text as a cell that is shown and never run; `restored` undoes it."""
    return "'" + text if text.lstrip("'").startswith(FORMULA_STARTS) else text


def restored(cell: str) -> str:
    """Returns the name that `neutralise` made this cell of."""
    is_protected = cell.startswith("'") and cell.lstrip("'").startswith(FORMULA_STARTS)
    return cell[1:] if is_protected else cell


def clean(text: str) -> str:
    """Returns the text without anything that could move the cursor, hide or reorder what is shown.

    Control characters and invisible format characters (bidi marks, zero-width joins, tags) become
    U+FFFD, so that people see that something was there. Line breaks become spaces.
    """
    return "".join(
        " " if char in "\n\r\t" else "\ufffd" if _is_unsafe(char) else char for char in text
    )


def _is_unsafe(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
