"""`dialeval export RUN --to csv`: the scores for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.arguments import Quiet
from dialeval.errors import UsageError


def export(
    run: Annotated[Path, typer.Argument(help="A run directory.", show_default=False)],
    to: Annotated[
        str, typer.Option("--to", help="csv, jsonl, parquet, latex or markdown.")
    ] = "csv",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The file to write; standard output if left out.",
            show_default=False,
        ),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Leave text as it is: spreadsheets may run cells that begin with =, +, - or @.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write the scores of a run as CSV, JSONL, Parquet, LaTeX or Markdown."""
    import dialeval
    from dialeval.export import export as write
    from dialeval.export import export_text
    from dialeval.terminal import harmless_output, say

    opened = dialeval.open_run(run)
    if out is not None:
        write(opened, to, out, raw=raw)
        if not quiet:
            say(f"wrote {out}", stderr=True)
    elif to == "parquet":
        raise UsageError("Parquet cannot be printed: name a file with -o")
    else:
        export_text(opened, to, harmless_output(), raw=raw)
