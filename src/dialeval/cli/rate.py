"""`dialeval rate FILE...`: people judge dialogues in the browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.arguments import (
    Columns,
    Format,
    HostNames,
    LargestRecord,
    Port,
    Quiet,
    SkipBad,
    SystemPrompt,
    Verbose,
    argument,
    option,
    parse_pairs,
)
from dialeval.limits import USUAL
from dialeval.rating.job import DEFAULT_QUALITIES, DEFAULT_SHARE

if TYPE_CHECKING:
    from dialeval.rating.opening import Started
    from dialeval.verbs import RatingPages

MOST_PRINTED = 20


def rate(
    files: Annotated[
        list[str] | None,
        argument(
            metavar="FILE",
            help="Rate these files or folders of dialogues, data sets, or runs. Without a name,"
            " resume the job in --db.",
        ),
    ] = None,
    qualities: Annotated[
        str | None,
        option(
            help="Rate these qualities, each on its scale: overall:1-5,natural:1-3. The default"
            f" scale is 1-5. Default: {DEFAULT_QUALITIES}; with --compare, only which answer is"
            " better."
        ),
    ] = None,
    describe: Annotated[
        list[str] | None, option(help="Ask this about a quality: QUALITY=TEXT. Repeat for several.")
    ] = None,
    raters: Annotated[
        int | None,
        option(
            min=1,
            max=10_000,
            help="Number of raters; each gets a link. Repeat the command with a larger number to"
            " add raters. Default: 3.",
        ),
    ] = None,
    per_item: Annotated[
        int, typer.Option(min=0, help="Number of raters of each dialogue; 0: all of them.")
    ] = 0,
    db: Annotated[
        str,
        typer.Option(
            help="Store ratings in this file, or in postgresql+psycopg://USER:PASSWORD@HOST/NAME."
        ),
    ] = "ratings.db",
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Show two answers to the same item and ask which is better. The answers come from"
            " two or more files or runs, or from the systems in one.",
        ),
    ] = False,
    checks: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Number of attention checks (nonsense), as a share of the number of dialogues.",
        ),
    ] = DEFAULT_SHARE,
    duplicates: Annotated[
        float,
        typer.Option(
            min=0, max=0.5, help="Share of the dialogues that each rater sees a second time."
        ),
    ] = DEFAULT_SHARE,
    title: Annotated[str | None, option(help="Title of the pages.")] = None,
    instructions: Annotated[
        Path | None,
        option(
            help="Show this text file to raters before they begin.", exists=True, dir_okay=False
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Listen on this address. Other machines can reach any address but loopback."
        ),
    ] = "127.0.0.1",
    port: Port = 8000,
    name: HostNames = None,
    token: Annotated[
        str,
        option(
            help="Use this code in the organiser's link, 16 characters or more. Default: random."
        ),
    ] = "",
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the organiser's page in the browser.")
    ] = False,
    format: Format = None,
    map: Columns = None,
    limit: Annotated[
        int | None,
        option(
            min=1,
            help="Select this many dialogues of each file or run at random; with --compare, this"
            " many pairs.",
        ),
    ] = None,
    spread: Annotated[
        str,
        option(
            metavar="METRIC",
            help="Select the dialogues of --limit evenly over the range of this metric of the run,"
            " from its lowest to its highest score.",
        ),
    ] = "",
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Seed of the orders, the attention checks and the selection of --limit."
        ),
    ] = 0,
    skip_bad: SkipBad = False,
    system_prompt: SystemPrompt = "leave-out",
    largest_record: LargestRecord = USUAL,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the links as one line of JSON.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Let people rate dialogues, or choose the better of two answers, in their browsers.

    The command prints a link for each rater and one for the organiser. The organiser sees progress,
    attention and agreement. Every answer is on the disk before the page says "saved". Ctrl-C stops
    the server; repeat the command to resume the job. Afterwards use dialeval raters ratings.db,
    dialeval agree ratings.db --scores RUN, or dialeval export ratings.db -o ratings.jsonl.
    """
    import dialeval
    from dialeval.cli.show import show_warnings
    from dialeval.cli.terminal import counting_bar

    with counting_bar("making the job", quiet=quiet or as_json) as progress:
        pages = dialeval.rate(
            *files or (),
            qualities=qualities,
            describe=parse_pairs(describe, "--describe"),
            raters=raters,
            per_item=per_item,
            db=db,
            compare=compare,
            checks=checks,
            duplicates=duplicates,
            title=title,
            instructions=instructions,
            host=host,
            port=port,
            names=name or (),
            token=token,
            format=format,
            columns=parse_pairs(map, "--map"),
            limit=limit,
            spread=spread,
            seed=seed,
            bad="skip" if skip_bad else "raise",
            system_prompt=system_prompt,
            largest_record=largest_record,
            progress=progress,
        )
    for source in pages.material if not quiet else ():
        if source.problems:
            show_warnings(source.problems, verbose)

    def tell(pages: RatingPages) -> None:
        found = pages.links
        if as_json:
            port = pages.serving.port
            record = {"organiser": found.organiser, "raters": found.raters, "port": port}
            typer.echo(json.dumps(record))
        else:
            _tell(pages.started, found.organiser, found.raters, quiet)
        if open_browser:
            typer.launch(found.organiser)

    pages.run(tell)


def _tell(started: Started, organiser: str, raters: dict[str, str], quiet: bool) -> None:
    from dialeval.cli.terminal import say
    from dialeval.runs.table import count

    if not quiet:
        for remark in started.remarks:
            say(remark, stderr=True, style="yellow")
        done = "New job" if started.is_new else "Resumed the job"
        say(f"{done} in {started.store.address.shown}. Organiser:\n\n    {organiser}\n")
        say("Raters, one link each:\n")
    for name, link in list(raters.items())[:MOST_PRINTED]:
        say(f"    {name:<10}{link}")
    if len(raters) > MOST_PRINTED:
        more = count(len(raters) - MOST_PRINTED, "further link")
        say(f"    and {more} on the organiser's page")
    if not quiet:
        say("\nCtrl-C stops the server; repeat the command to resume.")
