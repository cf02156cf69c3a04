"""`dialeval compare RUN...`: two runs, or the systems of one. Which is better, and is it real?"""

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
            help="Two or more runs, the old one first; or one run with several systems.",
            show_default=False,
        ),
    ],
    system: Annotated[
        list[str] | None,
        typer.Option("--system", help="Only samples of this system. Repeat.", show_default=False),
    ] = None,
    metric: Metrics = None,
    join: Annotated[
        Literal["id", "item", "context", "dialogue"] | None,
        typer.Option(
            help="What makes two samples answers to the same question. Default: id, item or"
            " context, the first that the runs share. dialogue: the turns of a dialogue count as"
            " one, with their mean; for live chats, and where few dialogues have many turns.",
            show_default=False,
        ),
    ] = None,
    worst: Annotated[
        int,
        typer.Option(
            min=0, help="Show so many samples that fell most, and so many that rose most."
        ),
    ] = 0,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Of more than two: show every pair, not only the order.")
    ] = False,
    plot: Plot = None,
    rounds: Annotated[int, typer.Option(min=99, help="Of the permutation and the bootstrap.")] = (
        9999
    ),
    level: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="Differences with a smaller p are real.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Of the resampling.")] = 0,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Which run or system is better, on which metric, and is the difference real?

    Samples are joined, and the differences tested by a paired permutation test, corrected for the
    number of tests (Holm); the intervals come from a paired bootstrap.
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
