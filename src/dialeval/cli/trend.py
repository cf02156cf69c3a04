"""`dialeval trend RUN...`: a metric over runs, and an alarm if the last one is worse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.arguments import Json, Plot, Quiet, argument, check_picture, option, save_picture

if TYPE_CHECKING:
    from dialeval.agreement.trend import Trend


def trend(
    runs: Annotated[
        list[str],
        argument(
            metavar="RUN",
            help="Show these runs, the oldest first, or the runs in this directory, such as that of"
            " dialeval watch.",
        ),
    ],
    metric: Annotated[
        str | None,
        option(
            "--metric",
            "-m",
            help="Show this metric. Default: judge, or the only metric of the runs.",
        ),
    ] = None,
    system: Annotated[str | None, option(help="Use only samples of this system.")] = None,
    alarm: Annotated[
        bool,
        typer.Option("--alarm", help="Exit with 1 if the last run is worse than the earlier runs."),
    ] = False,
    alpha: Annotated[
        float,
        typer.Option(
            min=0.0001, max=0.5, help="Chance of a false alarm in the whole series of runs."
        ),
    ] = 0.05,
    plot: Plot = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the mean of a metric over runs, and whether the last run is worse than the earlier ones.

    The test is corrected for repeated looks: the chance of a false alarm in the whole series is at
    most --alpha, for any number of runs.
    """
    from dialeval.agreement.trend import trend as find

    check_picture(plot)
    found = find(*runs, metric=metric, system=system, alpha=alpha)
    if plot:
        save_picture(found.plot(), plot, quiet or as_json)
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
    else:
        _show(found)
    if alarm and found.alarm:
        raise typer.Exit(1)


def _show(found: Trend) -> None:
    from dialeval.agreement.text_tables import ARROWS, number_text, p_text
    from dialeval.cli.terminal import print_table, say

    for warning in found.warnings:
        say(warning, stderr=True, style="yellow")
    rows = [
        [
            one.name,
            f"{one.n:,}",
            number_text(one.mean, ".4g"),
            "-" if one.low is None else f"[{one.low:.4g}, {one.high:.4g}]",
            number_text(one.before, ".4g"),
            p_text(one.p),
            number_text(one.level, ".2g"),
            "ALARM" if one.alarm else one.reason,
        ]
        for one in found.points
    ]
    mean = found.metric + ARROWS[found.direction]
    header = ["run", "dialogues", mean, "95 % interval", "before", "p", "alpha", ""]
    print_table(header, rows, right=range(1, 7))
    say()
    say(found.sentence(), style="bold red" if found.alarm else "bold")
