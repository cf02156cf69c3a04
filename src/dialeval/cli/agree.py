"""`dialeval agree RUN`, `dialeval raters FILE`: metrics against people, people against people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli.arguments import Files, Format, Json, Quiet

Qualities = Annotated[
    list[str] | None,
    typer.Option("--quality", help="Only this rated quality. Repeat.", show_default=False),
]


def agree(
    source: Annotated[
        str,
        typer.Argument(
            help="A run, or a file of ratings together with --scores.", show_default=False
        ),
    ],
    scores: Annotated[
        Path | None,
        typer.Option(
            help="A CSV of scores from anywhere: a column id, and one per metric.",
            show_default=False,
        ),
    ] = None,
    quality: Qualities = None,
    by: Annotated[
        Literal["turn", "system"], typer.Option(help="Compare samples, or means of systems.")
    ] = "turn",
    rounds: Annotated[
        int, typer.Option(min=0, help="Bootstrap rounds of the intervals; 0: none.")
    ] = 1000,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    format: Format = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How well does each metric agree with each quality that people rated?"""
    import dialeval
    from dialeval.agreement.table import agree as compare
    from dialeval.agreement.table import agree_run, read_scores
    from dialeval.cli.show import show_agreement
    from dialeval.terminal import counting_bar

    with counting_bar("correlating", quiet=quiet or as_json) as progress:
        options = {
            "qualities": quality or (),
            "by": by,
            "rounds": rounds,
            "seed": seed,
            "progress": progress,
        }
        if scores is None:
            rows = agree_run(dialeval.open_run(source), **options)
        else:
            samples = dialeval.load(source, format=format)
            rows = compare(samples, read_scores(scores), dataset=source, **options)  # type: ignore[arg-type]
    if as_json:
        typer.echo(json.dumps([row.to_record() for row in rows], indent=2))
    else:
        show_agreement(rows)


def raters(
    files: Files,
    quality: Qualities = None,
    format: Format = None,
    as_json: Json = False,
) -> None:
    """Do the raters agree with each other?"""
    import dialeval
    from dialeval.agreement.raters import summarise_raters
    from dialeval.agreement.table import ratings_table
    from dialeval.cli.show import show_raters
    from dialeval.errors import UsageError

    samples = list(dialeval.load(*files, format=format))
    rated = dict.fromkeys(q for sample in samples for q in sample.ratings)
    wanted = [q for q in rated if not quality or q in quality]
    if not wanted:
        raise UsageError(f"no ratings of {', '.join(quality) if quality else 'any quality'} here")
    reports = {q: summarise_raters(*ratings_table(samples, q)) for q in wanted}
    if as_json:
        typer.echo(json.dumps({q: r.to_record() for q, r in reports.items()}, indent=2))
    else:
        show_raters(reports)
