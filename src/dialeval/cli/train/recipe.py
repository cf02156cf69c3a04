"""What every recipe has: options, the command for the card, remarks, the result."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dialeval.training.card import Card

Corpora = Annotated[
    list[Path],
    typer.Option(
        "--data",
        help="A DailyDialog folder, a file that `dialeval data formats` lists, or a data set by"
        " name. Repeat.",
        show_default=False,
    ),
]
Corpus = Annotated[
    Path,
    typer.Option(
        "--data",
        help="A DailyDialog folder, a file that `dialeval data formats` lists, or a data set by"
        " name.",
        show_default=False,
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", help="Directory for the result.", show_default=False)
]
Epochs = Annotated[int, typer.Option(min=1, help="Passes over the data.")]
Patience = Annotated[
    int, typer.Option(min=0, help="Stop after so many epochs without a gain; 0: never.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Licence = Annotated[
    str | None,
    typer.Option(
        help="Licence of the data, for the card; that of a data set by name is known.",
        show_default=False,
    ),
]
HeldOut = Annotated[int, typer.Option(min=10, help="Examples to validate on, and to test on.")]


def this_command() -> str:
    """As it was typed, for the card."""
    return "dialeval " + shlex.join(sys.argv[1:])


def teller(*, quiet: bool) -> Callable[[str], None]:
    """Remarks on the way, beside the result."""
    from dialeval.cli.terminal import say

    return (lambda line: None) if quiet else (lambda line: say(line, stderr=True))


def show_result(card: Card, out: Path, use: str, *, as_json: bool, quiet: bool) -> None:
    """What was measured, and the command that uses what was learned."""
    from dialeval.cli.terminal import say
    from dialeval.training.card import shown_score

    if as_json:
        typer.echo(json.dumps({"model": str(out), "scores": card.scores}, indent=2))
    elif not quiet:
        for name, value in card.scores.items():
            say(f"{name.replace('_', ' ')}: {shown_score(value)}")
        say(f"Use it: {use}")
