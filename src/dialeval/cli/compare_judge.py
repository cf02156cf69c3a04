"""`dialeval compare RUN... --judge MODEL`: which answers does a language model prefer?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from dialeval.models.chat_judge import Servers
    from dialeval.preferences import JoinBy, Preferences


def compare_with_judge(
    runs: Sequence[str],
    model: str,
    join: JoinBy | None,
    systems: Sequence[str],
    servers: Servers,
    as_json: bool,
    quiet: bool,
) -> None:
    from dialeval.cli.terminal import counting_bar
    from dialeval.preferences import prefer

    with counting_bar("asking", quiet=quiet or as_json) as progress:
        found = prefer(
            *runs,
            model=model,
            join_by=join,
            systems=systems,
            servers=servers,
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
    else:
        _show(found)


def _show(found: Preferences) -> None:
    from dialeval.cli.servers import show_spent
    from dialeval.cli.terminal import print_table, say

    print_table(
        ["first", "second", "pairs", "first wins", "second wins", "ties", "share of first"],
        [
            [
                one.first,
                one.second,
                str(one.pairs),
                str(one.wins),
                str(one.losses),
                str(one.ties),
                f"{one.share:.3f} [{one.low:.3f}, {one.high:.3f}]",
            ]
            for one in found.preferences
        ],
        right=[2, 3, 4, 5],
    )
    if found.ranking.reason:
        say(f"no Bradley-Terry strengths: {found.ranking.reason}")
    else:
        print_table(
            ["side", "strength", "interval", "beats average"],
            [
                [
                    one.system,
                    f"{one.strength:+.3f}",
                    f"[{one.low:+.3f}, {one.high:+.3f}]",
                    f"{one.beats_average:.3f}",
                ]
                for one in found.ranking.strengths
            ],
            right=[1, 3],
        )
    say(
        f"position bias: in {found.bias:.0%} of {found.asked} pairs the two orders disagree and"
        f" count as a tie; {found.prefers_first} of them favour what stands first"
    )
    show_spent(found.spent)
