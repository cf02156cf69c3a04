"""`dialeval metrics [NAME]`: list metrics, or describe one."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dialeval.cli.arguments import Json, argument


def metrics(
    name: Annotated[
        str | None,
        argument(
            metavar="NAME",
            help="Describe this metric, which may be in a file: ./my_metric.py:EchoRate. Without a"
            " name, list all metrics.",
        ),
    ] = None,
    cite: Annotated[
        bool, typer.Option("--cite", help="Print what to cite for the metric, as BibTeX.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the metrics, or describe one of them."""
    from dialeval.cli.terminal import print_table, say
    from dialeval.errors import UsageError
    from dialeval.metric_description import bibtex, describe_metric
    from dialeval.registry import METRICS

    if cite and name is None:
        raise UsageError("--cite needs the name of a metric: dialeval metrics bleu --cite")
    names = METRICS.names() if name is None else [name]
    found, broken = [], []
    for each in names:
        try:
            found.append(describe_metric(each))
        except UsageError as error:
            if name is not None:
                raise
            broken.append(f"{error}. It is left out.")
    if cite:
        typer.echo(bibtex(found[0].citation))
    elif as_json:
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
