"""What every recipe does with its words: the command for the card, remarks, the result."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from dialeval.training.card import Card


def this_command() -> str:
    """As it was typed, for the card."""
    return "dialeval " + shlex.join(sys.argv[1:])


def teller(*, quiet: bool) -> Callable[[str], None]:
    """Remarks on the way, beside the result."""
    from dialeval.terminal import say

    return (lambda line: None) if quiet else (lambda line: say(line, stderr=True))


def show_result(card: Card, out: Path, use: str, *, as_json: bool, quiet: bool) -> None:
    """What was measured, and the command that uses what was learned."""
    from dialeval.terminal import say

    if as_json:
        typer.echo(json.dumps({"model": str(out), "scores": card.scores}, indent=2))
    elif not quiet:
        for name, value in card.scores.items():
            say(f"{name.replace('_', ' ')}: {value:.4g}")
        say(f"Use it: {use}")
