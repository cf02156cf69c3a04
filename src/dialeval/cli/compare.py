"""`dialeval compare RUN...`: compare runs, or the systems of one run."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from dialeval.cli.agree import Metrics, Plot, Workers, check_picture, save_picture, usual_workers
from dialeval.cli.arguments import Json, Quiet


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Name two or more runs, the old one first; or one run with several systems.",
            show_default=False,
        ),
    ],
    system: Annotated[
        list[str] | None,
        typer.Option(
            "--system",
            help="Use only samples of this system. Repeat for several.",
            show_default=False,
        ),
    ] = None,
    metric: Metrics = None,
    join: Annotated[
        Literal["id", "item", "context", "dialogue"] | None,
        typer.Option(
            help="Join samples by this key. Default: the first of id, item and context that the"
            " runs share. dialogue: the turns of a dialogue count as one, with their mean; use it"
            " for live chats, and if few dialogues have many turns.",
            show_default=False,
        ),
    ] = None,
    worst: Annotated[
        int,
        typer.Option(
            min=0, help="Show the N samples whose score dropped most, and the N that rose most."
        ),
    ] = 0,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="With more than two sides, show every pair.")
    ] = False,
    plot: Plot = None,
    rounds: Annotated[int, typer.Option(min=99, help="Number of resampling rounds.")] = (9999),
    level: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="Significance level after Holm's correction.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare runs or systems: which is better on which metric, and is it significant?

    Samples are joined. A paired permutation test with Holm's correction for the number of tests
    gives p, and a paired bootstrap gives the intervals.
    """
    from dialeval.agreement.comparison import compare as compare_runs
    from dialeval.cli.show_comparison import show_comparison
    from dialeval.cli.terminal import counting_bar

    check_picture(plot)
    with counting_bar("comparing", quiet=quiet or as_json) as progress:
        found = compare_runs(
            *runs,
            systems=system or (),
            metrics=metric or (),
            join_by=join,
            rounds=rounds,
            seed=seed,
            alpha=level,
            worst=worst,
            workers=workers or usual_workers(),
            progress=progress,
        )
    if plot:
        from dialeval.agreement.drawings import draw_comparison

        save_picture(draw_comparison(found), plot, quiet or as_json)
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
    else:
        show_comparison(found, pairs)
