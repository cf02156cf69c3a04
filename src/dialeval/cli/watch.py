"""`dialeval watch FOLDER -o RUNS`: score new files, with one run per day."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialeval.cli.arguments import (
    Columns,
    Format,
    Quiet,
    SkipBad,
    SystemPrompt,
    argument,
    option,
    parse_pairs,
)

if TYPE_CHECKING:
    from dialeval.watching import DayScored, Failed


def watch(
    folder: Annotated[
        Path, argument(metavar="FOLDER", help="Score the files that are written to this folder.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Store the runs in this directory, one per day.")
    ] = Path("runs/live"),
    metric: Annotated[
        list[str] | None,
        option(
            "--metric", "-m", help="Score with this metric. Repeat for several. Default: judge."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Look for new files once and exit (for cron).")
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.1, help="Look for new files at this interval, in seconds.")
    ] = 10.0,
    format: Format = None,
    map: Columns = None,
    skip_bad: SkipBad = False,
    system_prompt: SystemPrompt = "leave-out",
    quiet: Quiet = False,
) -> None:
    """Score new files in a folder, and store one run per day.

    Ctrl-C stops the command; repeat it to resume. With --once, the exit code is 1 if a file could
    not be read. `dialeval trend` shows the runs of the days.
    """
    from dialeval.cli.terminal import say
    from dialeval.registry import DEFAULT_METRICS
    from dialeval.watching import Failed
    from dialeval.watching import watch as start

    reading: dict[str, Any] = {
        "format": format,
        "columns": parse_pairs(map, "--map"),
        "bad": "skip" if skip_bad else "raise",
        "system_prompt": system_prompt,
    }

    def tell(found: DayScored | Failed) -> None:
        if isinstance(found, Failed):
            say(found.problem, stderr=True, style="red")
        elif not quiet:
            files = f"{len(found.files):,} file" + "s" * (len(found.files) != 1)
            say(f"{found.run.directory}: {files}, {len(found.run):,} samples now")

    if not once and not quiet:
        say(f"watching {folder}; Ctrl-C ends it", stderr=True, style="dim")
    found = start(
        folder, out, metric or DEFAULT_METRICS, once=once, every=every, tell=tell, reading=reading
    )
    if any(isinstance(one, Failed) for one in found):
        raise typer.Exit(1)
