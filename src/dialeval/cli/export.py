"""`dialeval export RUN --to csv`: scores or ratings for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.arguments import Quiet
from dialeval.errors import UsageError

SUFFIXES = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
    ".tex": "latex",
}


def export(
    run: Annotated[
        str,
        typer.Argument(
            help="Export this run, or these ratings: the file or URL of dialeval rate --db.",
            show_default=False,
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="Choose the format: csv, jsonl or parquet; for a run also latex, markdown or"
            " dstc10 (dialogue_id and one score), for ratings also answers (one row per answer)."
            " Default: by the name of the file, else csv.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write to this file. Default: standard output.",
            show_default=False,
        ),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Leave text unchanged, although spreadsheets may run cells that begin with =, +,"
            " - or @.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write the scores of a run, or collected ratings, for other programs.

    Ratings are written as samples with one number per rater, without attention checks and second
    showings. dialeval raters, agree --scores and score read this form.
    """
    from dialeval.cli.terminal import harmless_output, say
    from dialeval.readers.source import is_database

    if to is None and out is not None and out.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"{out}: cannot tell what to write from the name. Name it --to csv, jsonl, parquet,"
            f" latex, markdown or dstc10, or let it end in {', '.join(SUFFIXES)}"
        )
    to = to or ("csv" if out is None else SUFFIXES[out.suffix.lower()])
    if to == "parquet" and out is None:
        raise UsageError("Parquet cannot be printed: name a file with -o")
    if "://" in run or is_database(run):
        _export_ratings(run, to, out, raw)
    else:
        import dialeval
        from dialeval.runs.export import export as write
        from dialeval.runs.export import export_text

        opened = dialeval.open_run(run)
        if out is not None:
            write(opened, to, out, raw=raw)
        else:
            export_text(opened, to, harmless_output(), raw=raw)
    if out is not None and not quiet:
        say(f"wrote {out}", stderr=True)


def _export_ratings(place: str, to: str, out: Path | None, raw: bool) -> None:
    from dialeval.cli.rate import needs_web
    from dialeval.cli.terminal import harmless_output, say

    needs_web()
    from dialeval.rating.database import parse_address
    from dialeval.rating.opening import open_store
    from dialeval.rating.results import export_ratings, export_text

    store = open_store(place, read_only=True)
    if store is None:
        raise UsageError(f"{parse_address(place).shown}: holds no ratings")
    if out is not None:
        export_ratings(store, to, out, raw=raw)
    else:
        export_text(store, to, harmless_output(), raw=raw)
    for problem in store.damaged:
        say(problem, stderr=True, style="yellow")
    store.close()
