"""`dialeval report RUN... -o FILE.html`: a page to look at."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.arguments import Metrics, Quiet, Workers, argument, option, usual_workers


def report(
    runs: Annotated[
        list[str],
        argument(
            metavar="RUN",
            help="Show this run, or several runs side by side, the old one first.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Write the page to this HTML file.")
    ] = Path("report.html"),
    metric: Metrics = None,
    title: Annotated[str, option(help="Use this heading. Default: the names of the runs.")] = "",
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    sample: Annotated[
        int,
        typer.Option(
            min=1,
            help="Show at most this many dialogues: the best, the worst and a random selection."
            " Tables and plots use all dialogues.",
        ),
    ] = 1000,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the random selection and of all tests.")
    ] = 0,
    rounds: Annotated[
        int, typer.Option(min=99, help="Number of rounds of the permutation tests and bootstraps.")
    ] = 1999,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing file.")
    ] = False,
    workers: Workers = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the name and size of the file as JSON.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write one HTML page: scores, tests, plots, and each dialogue with reasons for its scores.

    The page is self-contained and opens offline. It shows several runs side by side: what changed,
    on which dialogues most, and whether the change is significant.
    """
    import dialeval
    from dialeval.cli.terminal import say, stage_bars
    from dialeval.runs.table import count

    with stage_bars(quiet=quiet or as_json) as stage:
        written = dialeval.report(
            *runs,
            out=out,
            metrics=metric or (),
            title=title,
            sample=sample,
            seed=seed,
            rounds=rounds,
            overwrite=overwrite,
            workers=workers or usual_workers(),
            stage=stage,
        )
    if as_json:
        typer.echo(json.dumps(asdict(written), indent=2))
    elif not quiet:
        shown = f"{written.shown:,} of " if written.sampled else ""
        total = count(written.dialogues if written.sampled else written.shown, "dialogue")
        size = f"{written.bytes / 1e6:.1f} MB"
        say(f"wrote {written.path} ({size}, {shown}{total})", stderr=True)
    if open_page:
        import webbrowser

        webbrowser.open(out.resolve().as_uri())
