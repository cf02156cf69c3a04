"""The look of pages: templates that escape everything, and one style sheet.

Dialogue text is written by strangers. Three things keep it text, whatever it holds:

    autoescape    every value that a template prints is escaped; nothing marks dialogue text as safe
    `visible`     every value that a template prints first loses what steers or hides: control
                  characters, bidirectional overrides, lone surrogates become U+FFFD
    no `style`    the width of a bar is a class, so that a page's policy can forbid all inline
                  styles and scripts but those with a known hash or nonce
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.agreement.findings import format_p
from dialeval.errors import UsageError
from dialeval.pictures.drawing import picture_rules
from dialeval.pictures.frame import two_decimals
from dialeval.runs.table import count, format_column

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
STATIC = HERE / "static"
TEMPLATES = (HERE / "templates", HERE.parent / "web" / "templates")

_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters but tab and line ends
    "\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"  # bidi marks, zero width, invisible
    "\u2028\u2029\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"  # line ends, surrogates
    "\U000e0000-\U000e007f]"  # tags
)
"""Joiners stay: scripts and emoji need them."""


def visible(text: str) -> str:
    """Returns the text with U+FFFD, one for one, in place of what steers, hides or cannot be
    stored."""
    return _UNSAFE.sub("\ufffd", text).replace("\r", " ")


def number(value: float | None, largest: float = 0.0) -> str:
    """Formats one number, with as many decimals as the `largest` of its group."""
    if value is None or not largest:
        return aligned([value])[0]
    return format_column([value, largest])[0].replace("-", "\N{MINUS SIGN}")


def aligned(values: Sequence[float | None]) -> list[str]:
    """Numbers that stand together, with the same decimals: three below 10, fewer above, none where
    they count something (all whole, not all 0 and 1). A dash for what is missing; a true minus."""
    there = [value for value in values if value is not None]
    whole = all(float(value).is_integer() for value in there) and any(abs(v) > 1 for v in there)
    texts = [f"{value or 0.0:,.0f}" for value in values] if whole else format_column(values)
    return [
        "–" if value is None else text.replace("-", "\N{MINUS SIGN}")
        for text, value in zip(texts, values, strict=True)
    ]


def signed(value: float | None) -> str:
    text = number(value)
    return f"+{text}" if value is not None and value > 0 else text


def rating(value: float | None) -> str:
    """Formats a rating as people gave it: 4 and not 4.000."""
    return "–" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def correlation(value: float | None) -> str:
    """Formats a number with two decimals, as papers print it."""
    return "–" if value is None else two_decimals(value)


def p_value(value: float | None) -> str:
    return "–" if value is None else format_p(value)


def _finalize(value: Any) -> Any:
    """Jinja calls it on everything that is printed; markup made by our own templates passes."""
    return visible(value) if type(value) is str else value


@cache
def environment() -> Environment:
    """Returns the templates of reports and pages."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ModuleNotFoundError as error:
        raise UsageError(
            "pages need jinja2, which is not installed: pip install 'dialeval[web]'"
        ) from error

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "signed": signed, "p_value": p_value, "counted": count}
    made.filters |= {"thousands": "{:,}".format, "rating": rating, "correlation": correlation}
    return made


@cache
def stylesheet(*names: str) -> str:
    """`dialeval.css`, further sheets from `static/` by name, widths of bars, colours of pictures.

    The last two are generated, so a page needs this function and not only the file."""
    sheets = ["dialeval.css", *names]
    texts = [(STATIC / sheet).read_text(encoding="utf-8") for sheet in sheets]
    percent = range(101)
    widths = "".join(f".w{i}{{width:{i}%}}.m{i}{{margin-left:{i}%}}" for i in percent)
    return "\n".join([*texts, widths, picture_rules()])
