"""Text in CSV that a spreadsheet shows and does not run.

A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@` as a formula, and dialogue text is
written by strangers. So such text gets a leading apostrophe, which spreadsheets hide. Names join
tables: what reads them takes the apostrophe off again.
"""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def neutralise(text: str) -> str:
    """The text as a cell that is shown and never run; `restored` takes it back."""
    return "'" + text if text.lstrip("'").startswith(FORMULA_STARTS) else text


def restored(cell: str) -> str:
    """The name that `neutralise` made this cell of."""
    is_protected = cell.startswith("'") and cell.lstrip("'").startswith(FORMULA_STARTS)
    return cell[1:] if is_protected else cell
