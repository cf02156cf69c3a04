"""`dialeval worst RUN`, `dialeval best RUN`: the answers at one end of a metric, with reasons."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialeval.cli.arguments import Json, argument, option
from dialeval.errors import UsageError

if TYPE_CHECKING:
    from dialeval.report.answers import RankedAnswer, RankedAnswers

RunDirectory = Annotated[str, argument(metavar="RUN", help="Name the run to read.")]
Metric = Annotated[
    str | None,
    option(
        "--metric", "-m", help="Rank by this metric. Default: judge, or the only metric of the run."
    ),
]
By = Annotated[
    Literal["system"] | None,
    option("--by", help="Show -n answers of each system, not -n answers of all systems together."),
]
Number = Annotated[int, typer.Option("-n", min=1, help="Show this many answers.")]
Page = Annotated[Path | None, option("--page", help="Write the answers as one HTML file.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the page that is already there.")
]


def _verb(end: Literal["worst", "best"]) -> Callable[..., None]:
    """Returns the verb that shows one end of the ranking; the two verbs do not differ otherwise."""

    def show(
        run: RunDirectory,
        metric: Metric = None,
        by: By = None,
        n: Number = 10,
        page: Page = None,
        overwrite: Overwrite = False,
        as_json: Json = False,
    ) -> None:
        import dialeval

        find = dialeval.worst if end == "worst" else dialeval.best
        _show(find(run, metric, by=by, n=n), page, overwrite, as_json)

    show.__doc__ = f"Show the {end} answers of a run, each with the reason for its score."
    return show


worst, best = _verb("worst"), _verb("best")


def _show(found: RankedAnswers, page: Path | None, overwrite: bool, as_json: bool) -> None:
    from dialeval.cli.terminal import say

    if overwrite and not page:
        raise UsageError("--overwrite replaces a page: add --page FILE")
    if page:
        found.save(page, overwrite=overwrite)
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
        return
    say(f"{found.title}: {len(found):,} of {found.scored:,} in {found.run}", style="bold")
    for name, group in found.groups.items():
        if len(found.groups) > 1:
            say()
            say(name or "(unnamed)", style="bold")
        for one in group:
            _show_answer(one, with_system=len(found.groups) == 1)
    if page:
        say(f"wrote {page}", stderr=True)


def _show_answer(one: RankedAnswer, with_system: bool) -> None:
    from dialeval.cli.terminal import passage, say

    say()
    say(
        f"{one.rank:>3}. {one.score:.3g}  {one.id}"
        + f" ({one.system})" * bool(with_system and one.system)
    )
    before = one.context if one.response is not None else one.context[:-1]
    if before:
        say(f"     before: {passage(before[-1])}", style="dim")
    said = one.response if one.response is not None else one.context[-1] if one.context else ""
    say(f"     answer: {passage(said)}")
    if one.reason:
        say(f"     reason: {one.reason}", style="yellow")
