"""`dialeval bench`: this machine, against peers, as ratios."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from dialeval.cli.arguments import Json, Quiet


def bench(
    only: Annotated[
        list[str] | None,
        typer.Argument(
            help="Contests by name, such as rouge or full. Without names all of them.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Threads of torch, for both sides. By default what torch takes.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure this machine, against other packages, as ratios. Takes about a minute.

    Both sides do the same work with the same weights and take turns. Packages and models that are
    not here are named and skipped.
    """
    from dialeval.speed.bench import measure
    from dialeval.terminal import counting_bar, print_table, say

    with counting_bar("measuring", quiet=quiet or as_json) as advance:
        found = measure(only or (), threads=threads, progress=advance)
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
        return
    print_table(
        ["what", "against", "faster", "processor", "ours", "theirs", "differs"],
        [
            [
                one.name,
                one.peer,
                f"{one.times_faster:.1f}x",
                f"{one.times_less_processor:.1f}x",
                f"{one.our_seconds:.2f} s",
                f"{one.peer_seconds:.2f} s",
                f"{one.difference:.0e}" if one.difference else "0",
            ]
            for one in found.outcomes
        ],
        right=[2, 3, 4, 5, 6],
    )
    if not quiet and any(
        one.name.startswith(("bootstrap", "permutation")) for one in found.outcomes
    ):
        say(
            "differs: the most by which a score is another; of bootstrap the widths of intervals,"
            " of permutation the p values, which hang on the lot on both sides.",
            style="dim",
        )
    for skipped in found.skipped:
        say(f"skipped: {skipped.name} against {skipped.peer}: {skipped.reason}", style="dim")
    if limits := found.limits:
        say(
            f"\n32-bit products reach {limits.matmul_gflops:,.0f} GFLOP/s here; the language model"
            f" reaches {limits.share_of_peak:.0%} of that. It read {limits.tokens_computed:,}"
            f" tokens, {limits.tokens_necessary:,} are necessary, one question at a time would"
            f" have taken {limits.tokens_one_by_one:,}."
        )
        say(f"The answer cache gives {limits.cache_hits_per_second:,.0f} answers per second.")
    machine = found.machine
    if not quiet:
        busy = f", load {machine['load']:.1f}" if machine["load"] is not None else ""
        say(f"\n{machine['processor']}, {machine['cores']} cores{busy}", style="dim")
