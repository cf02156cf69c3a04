"""`dialeval data check|convert|formats`: files of dialogues, before anything is scored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.arguments import (
    Columns,
    Files,
    Format,
    Json,
    Limit,
    Quiet,
    RatingColumns,
    Scales,
    Seed,
    SkipBad,
    load_samples,
    parse_pairs,
    parse_scales,
)

app = typer.Typer(
    rich_markup_mode="markdown", help="Check and convert files of dialogues.", no_args_is_help=True
)


@app.command()
def check(
    files: Files,
    format: Format = None,
    map: Columns = None,
    rating: RatingColumns = None,
    scale: Scales = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read files and list every problem as FILE:LINE: FIELD: PROBLEM. Exits 2 if there is one."""
    from dialeval.cli.show import show_check_report
    from dialeval.readers import check as examine
    from dialeval.terminal import progress_bar

    with progress_bar("checking", quiet=quiet or as_json) as update:
        report = examine(
            files,
            format=format,
            columns=parse_pairs(map, "--map"),
            ratings=tuple(rating or ()),
            scales=parse_scales(scale),
            progress=update,
        )
    if as_json:
        typer.echo(json.dumps(report.to_record(), indent=2))
    else:
        show_check_report(report)
    if report.problems:
        raise typer.Exit(2)


@app.command()
def convert(
    files: Files,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The file to write: .jsonl, .jsonl.gz, .jsonl.zst or .parquet.",
            show_default=False,
        ),
    ],
    format: Format = None,
    map: Columns = None,
    rating: RatingColumns = None,
    scale: Scales = None,
    limit: Limit = None,
    seed: Seed = None,
    skip_bad: SkipBad = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write dialogues in our own form, as JSONL or Parquet."""
    from dialeval.readers import convert as write
    from dialeval.terminal import progress_bar, say

    samples = load_samples(files, format, map, rating, scale, limit, seed, skip_bad)
    with progress_bar("converting", quiet=quiet or as_json) as update:
        written = write(samples, out, progress=lambda done: update(done, samples.fraction()))
    if as_json:
        typer.echo(json.dumps({"file": str(out), "samples": written, **samples.about()}))
    elif not quiet:
        skipped = f", {samples.skipped:,} bad records skipped" if samples.skipped else ""
        say(f"wrote {written:,} samples to {out}{skipped}")


@app.command()
def formats(as_json: Json = False) -> None:
    """List the file formats that can be read."""
    from dialeval.registry import READERS
    from dialeval.terminal import print_table

    readers = [(name, READERS.get(name).summary) for name in READERS.names()]
    if as_json:
        typer.echo(json.dumps([{"name": n, "summary": s} for n, s in readers], indent=2))
    else:
        print_table(["format", "what it is"], readers)
