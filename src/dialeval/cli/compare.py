"""`dialeval compare RUN...`: compare runs, or the systems of one run; fail if one is worse.

With `--judge MODEL` a language model says which answers it prefers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import typer.core

from dialeval.cli.arguments import (
    Concurrency,
    CountedReplies,
    Json,
    KeyEnv,
    MaxRequests,
    MaxTokens,
    Metrics,
    Plot,
    PriceIn,
    PriceOut,
    Quiet,
    Workers,
    argument,
    check_picture,
    option,
    save_picture,
    show_spent,
    usual_workers,
)
from dialeval.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dialeval.agreement.comparison import Comparison
    from dialeval.preferences import JoinBy, Preferences


WITHOUT_VALUE = {"--fail-if-worse": "judge", "--github-summary": ""}
"""Options that may stand without a value, and the value that they get."""


class Compare(typer.core.TyperCommand):
    """Allows `--fail-if-worse` and `--github-summary` without a value: before another option, at
    the end, or before a run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = []
        for word, after in zip(args, [*args[1:], None], strict=True):
            left_out = after is None or after.startswith("-") or Path(after).is_dir()
            given.append(
                f"{word}={WITHOUT_VALUE[word]}" if word in WITHOUT_VALUE and left_out else word
            )
        return super().parse_args(ctx, given)


def compare(
    runs: Annotated[
        list[str],
        argument(
            metavar="RUN",
            help="Name two or more runs, the old one first; or one run with several systems.",
        ),
    ],
    system: Annotated[
        list[str] | None, option(help="Use only samples of this system. Repeat for several.")
    ] = None,
    metric: Metrics = None,
    join: Annotated[
        Literal["id", "item", "context", "dialogue"] | None,
        option(
            help="Join samples by this key. Default: the first of id, item and context that the"
            " runs share. dialogue: average the turns of each dialogue; use it for live chats, or"
            " if a few dialogues have many turns."
        ),
    ] = None,
    worst: Annotated[
        int,
        typer.Option(
            min=0, help="Show the N samples whose score dropped most, and the N that rose most."
        ),
    ] = 0,
    fail_if_worse: Annotated[
        list[str] | None,
        option(
            metavar="[METRIC]",
            help="Exit with 1 if a later run is worse than the first on this metric: significantly,"
            " and by more than --margin. Without a name: judge. Repeat for several.",
        ),
    ] = None,
    margin: Annotated[
        list[str] | None,
        option(
            metavar="[METRIC=]DROP",
            help="Let --fail-if-worse accept a drop of the mean up to this size, in the unit of the"
            " metric. Default: 0.",
        ),
    ] = None,
    fail_if_unsure: Annotated[
        bool,
        typer.Option(
            "--fail-if-unsure",
            help="Let --fail-if-worse also exit with 1 if the data cannot show that the drop is"
            " within the margin.",
        ),
    ] = False,
    junit: Annotated[
        Path | None,
        option(help="Write the decisions of --fail-if-worse to this file as JUnit XML."),
    ] = None,
    github_summary: Annotated[
        str | None,
        option(
            metavar="[FILE]",
            help="Append a summary in Markdown to this file. Without a name: to"
            " $GITHUB_STEP_SUMMARY.",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        option(
            metavar="MODEL",
            help="Ask this language model which answer is better, in both orders, instead of"
            " comparing scores.",
        ),
    ] = None,
    samples: CountedReplies = None,
    max_requests: MaxRequests = None,
    max_tokens: MaxTokens = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    concurrency: Concurrency = None,
    key_env: KeyEnv = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Show every pair of more than two runs or systems.")
    ] = False,
    plot: Plot = None,
    rounds: Annotated[int, typer.Option(min=99, help="Number of resampling rounds.")] = (9999),
    alpha: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="Significance level after Holm's correction.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
    workers: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare runs or systems: which is better on which metric, and is it significant?

    The command joins the samples of the runs. p comes from a paired permutation test, with Holm's
    correction for the number of tests; the intervals come from a paired bootstrap. With
    --fail-if-worse, the command prints a decision in one sentence, and exits with 1 if the new
    version is worse.
    """
    from dialeval.agreement.comparison import compare as compare_runs
    from dialeval.cli.show_agreement import show_comparison
    from dialeval.cli.terminal import counting_bar

    asked = {
        "samples": samples,
        "max_requests": max_requests,
        "max_tokens": max_tokens,
        "price_in": price_in,
        "price_out": price_out,
        "concurrency": concurrency,
        "key_env": key_env,
    }
    if judge is not None:
        decided = fail_if_worse or margin or fail_if_unsure or junit or github_summary is not None
        if metric or worst or decided or plot or pairs or join == "dialogue":
            raise UsageError(
                "--judge compares answers, not scores: leave out --metric, --worst,"
                " --fail-if-worse and its options, --plot, --pairs and --join dialogue"
            )
        _compare_with_judge(runs, judge, join, system or (), asked, as_json, quiet)
        return
    if any(one is not None for one in asked.values()):
        raise UsageError(
            "--samples, limits, prices and keys of servers need --judge: add --judge MODEL"
        )
    check_picture(plot)
    if junit and not fail_if_worse:
        raise UsageError("--junit writes the decisions of --fail-if-worse: add --fail-if-worse")
    summary = None if github_summary is None else _summary_file(github_summary)
    with counting_bar("comparing", quiet=quiet or as_json) as progress:
        found = compare_runs(
            *runs,
            systems=system or (),
            metrics=metric or (),
            join_by=join,
            rounds=rounds,
            seed=seed,
            alpha=alpha,
            worst=worst,
            fail_if_worse=fail_if_worse or (),
            margin=_margin(margin),
            fail_if_unsure=fail_if_unsure,
            workers=workers or usual_workers(),
            progress=progress,
        )
    if plot:
        save_picture(found.plot(), plot, quiet or as_json)
    _write_reports(found, junit, summary)
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
    else:
        show_comparison(found, pairs)
    if found.failed:
        raise typer.Exit(1)


def _margin(given: list[str] | None) -> float | Mapping[str, float]:
    """`0.1`, or `judge=0.1` for one of several metrics."""
    margins: dict[str, float] = {}
    for text in given or ():
        metric, _, number = text.rpartition("=")
        try:
            margins[metric] = float(number)
        except ValueError as error:
            raise UsageError(f"--margin {text}: expected a number, or METRIC=NUMBER") from error
    if "" not in margins:
        return margins or 0.0
    if len(given or ()) > 1:
        raise UsageError("--margin: with several margins, name the metric of each: METRIC=NUMBER")
    return margins[""]


def _summary_file(given: str) -> Path:
    name = given or os.environ.get("GITHUB_STEP_SUMMARY", "")
    if not name:
        raise UsageError(
            "--github-summary: $GITHUB_STEP_SUMMARY is not set here. Name a file:"
            " --github-summary summary.md"
        )
    return Path(name)


def _write_reports(found: Comparison, junit: Path | None, summary: Path | None) -> None:
    from dialeval.storage import write_text

    if junit:
        junit.parent.mkdir(parents=True, exist_ok=True)
        write_text(junit, found.to_junit())
    if summary:
        summary.parent.mkdir(parents=True, exist_ok=True)
        with summary.open("a", encoding="utf-8") as file:
            file.write(found.to_markdown())


def _compare_with_judge(
    runs: Sequence[str],
    judge: str,
    join: JoinBy | None,
    systems: Sequence[str],
    asked: Mapping[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """`--judge MODEL`: has a language model choose between the answers."""
    from dialeval.cli.terminal import counting_bar
    from dialeval.preferences import prefer

    with counting_bar("asking", quiet=quiet or as_json) as progress:
        given = {name: value for name, value in asked.items() if value is not None}
        found = prefer(
            *runs, judge=judge, join_by=join, systems=systems, progress=progress, **given
        )
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
    else:
        _show_preferences(found)


def _show_preferences(found: Preferences) -> None:
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
    answered = found.asked - found.unanswered
    if found.unanswered:
        say(
            f"left out: {found.unanswered} of {found.asked} pairs, because the model replied with"
            " neither 1 nor 2"
        )
    say(
        f"position bias: in {found.bias:.0%} of {answered} pairs the two orders disagree and"
        f" count as a tie; in {found.prefers_first} of them the model prefers the first answer"
    )
    show_spent(found.spent)
