"""`dialeval metrics [NAME]`: list metrics, or describe one."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dialeval.cli.arguments import Json


def metrics(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Describe this metric. Without a name, list all metrics.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the metrics, or describe one of them."""
    from dialeval.cli.terminal import print_table, say
    from dialeval.errors import UsageError
    from dialeval.registry import METRICS, describe_metric

    names = METRICS.names() if name is None else [name]
    found, broken = [], []
    for each in names:
        try:
            found.append(describe_metric(each))
        except UsageError as error:
            if name is not None:
                raise
            broken.append(f"{error}. It is left out.")
    if as_json:
        typer.echo(
            json.dumps(
                [d.to_record() for d in found] if name is None else found[0].to_record(),
                indent=2,
            )
        )
    elif name is None:
        print_table(
            ["metric", "judges", "needs", "better", "what it is"],
            [[d.name, d.levels, d.needs, d.direction, d.summary] for d in found],
        )
        say("\nDescribe one: dialeval metrics bleu", style="dim")
        for problem in broken:
            say(problem, stderr=True, style="red")
    else:
        say(found[0].text())
