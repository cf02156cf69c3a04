"""`dialeval export RUN --to csv`: scores or ratings for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.arguments import Quiet, argument, option


def export(
    run: Annotated[
        str,
        argument(
            metavar="RUN",
            help="Export this run, or these ratings: the file or URL of dialeval rate --db.",
        ),
    ],
    to: Annotated[
        str | None,
        option(
            help="Choose the format: csv, jsonl or parquet. For a run also: latex, markdown, dstc10"
            " (dialogue_id and one score), langfuse, argilla, mlflow or wandb. For ratings also:"
            " answers (one row per answer). Default: by the name of the file, else csv."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "--out",
            "-o",
            help="Write to this file; for mlflow and wandb, to this folder. Default: standard"
            " output.",
        ),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Leave text unchanged. Spreadsheets may then run cells that begin with =, +, - or"
            " @.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write the scores of a run, or collected ratings, for other programs.

    The command writes ratings as samples with one number per rater, without attention checks and
    repeated dialogues. dialeval raters, agree --scores and score read this form.
    """
    import dialeval
    from dialeval.cli.terminal import harmless_output, say

    for problem in dialeval.export(run, to=to, out=out, raw=raw, file=harmless_output()):
        say(problem, stderr=True, style="yellow")
    if out is not None and not quiet:
        say(f"wrote {out}", stderr=True)
