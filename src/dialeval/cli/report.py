"""`dialeval report RUN... -o FILE.html`: a page to look at."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.agree import Metrics, Workers, usual_workers
from dialeval.cli.arguments import Quiet

if TYPE_CHECKING:
    from dialeval.progress import Progress


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="A run, or several to see side by side, the old one first.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    metric: Metrics = None,
    title: Annotated[
        str,
        typer.Option(help="The heading. Default: the names of the runs.", show_default=False),
    ] = "",
    open_page: Annotated[
        bool, typer.Option("--open", help="Open it in the browser when it is done.")
    ] = False,
    sample: Annotated[
        int,
        typer.Option(
            min=1,
            help="Show at most so many dialogues: the best, the worst and a random part. Tables and"
            " plots are of all.",
        ),
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the random part and of all tests.")] = 0,
    rounds: Annotated[int, typer.Option(min=99, help="Of the permutations and bootstraps.")] = 1999,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the file that is there.")
    ] = False,
    workers: Workers = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was written as JSON.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page: scores, tests, plots and every dialogue with what stands
    behind its scores.

    It opens anywhere, offline, in light or dark. Several runs are shown side by side: what changed,
    on which dialogues most, and whether it is significant.
    """
    from dialeval.cli.terminal import counting_bar, say
    from dialeval.report.build import write_report
    from dialeval.runs.table import count

    with ExitStack() as bars:

        def stage(what: str) -> Progress:
            bars.close()
            return bars.enter_context(counting_bar(what, quiet=quiet or as_json))

        written = write_report(
            runs,
            out,
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
