"""`dialeval compose fit|show|apply`: several metrics as one, weighted by their agreement."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval.cli.arguments import Json, Plot, Quiet, argument, check_picture, option, save_picture
from dialeval.errors import UsageError

if TYPE_CHECKING:
    from dialeval.compose.leave_one_out import LeaveOneOut
    from dialeval.compose.tables import Lines
    from dialeval.metrics.composition import Composition

app = typer.Typer(
    rich_markup_mode="markdown",
    help="Compose metrics with weights from rated runs (MME-CRS).",
    no_args_is_help=True,
)

Weights = Annotated[
    str,
    argument(
        metavar="WEIGHTS",
        help="Name a file of dialeval compose fit, or weights that come with dialeval.",
    ),
]


@app.callback()
def compose() -> None:
    """Compose metrics with weights from rated runs (MME-CRS)."""


@app.command()
def fit(
    runs: Annotated[
        list[Path],
        argument(metavar="RUN", help="Name runs on data that people rated, one for each data set."),
    ],
    out: Annotated[
        Path | None, option("--out", "-o", help="Write the weights into this JSON file.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric",
            "-m",
            help="Compose this metric. Repeat for several. Default: all that every run has. With"
            " --leave-one-out, the other metrics are compared with the composition.",
        ),
    ] = None,
    power: Annotated[
        Literal["1", "2", "3", "adaptive"],
        typer.Option(
            help="Raise correlations to this power. A higher power gives more weight to the best"
            " metrics. adaptive: choose a power so that the largest weight is between 1/3 and 1/2."
        ),
    ] = "2",
    sample: Annotated[
        int, typer.Option(min=3, help="Correlate this many random samples of each data set.")
    ] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random samples.")] = 0,
    map: Annotated[
        str,
        typer.Option(
            help="Choose the names of qualities. literal: as in the data. common: join different"
            " names of the same quality (see: dialeval compose names). FILE: read the names from"
            " this JSON file."
        ),
    ] = "literal",
    prior: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Shrink the weights of a quality towards the mean over all qualities, as if N more"
            " data sets had shown that mean. 0 disables it.",
            show_default="4",
        ),
    ] = None,
    even: Annotated[
        bool | None,
        typer.Option(
            "--even/--no-even",
            help="Divide weights by the standard deviation of their terms, so that a weight is the"
            " influence of a term.",
            show_default="even",
        ),
    ] = None,
    scale: Annotated[
        Literal["quartile", "percentile", "minmax", "best"] | None,
        typer.Option(
            help="Scale metrics that do not range from 0 to 1. quartile: from the 25th to the 75th"
            " percentile. percentile: from the 1st to the 99th. minmax: from the smallest to the"
            " largest value. best: choose a scale by leaving out each data set in turn.",
            show_default="minmax",
        ),
    ] = None,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="Fit as the paper does: --prior 0 --no-even --scale quartile."
        ),
    ] = False,
    leave_one_out: Annotated[
        bool,
        typer.Option(
            "--leave-one-out",
            help="Also leave out each data set once: fit on the others, and test on it.",
        ),
    ] = False,
    card: Annotated[
        Path | None, option(help="Write a card of the weights as Markdown; needs --leave-one-out.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit the weights of a composition on rated runs, for each quality.

    A sub-metric that agrees with people on a quality gets a high weight for this quality; `dialeval
    compose show` prints the weights. To score with them, use `dialeval score FILE -m
    mme-crs:weights=crs.json,quality=QUALITY`. QUALITY is a name in the data, or with --map common
    also a common name such as relevance.
    """
    from dialeval import compose as library
    from dialeval.cli.terminal import counting_bar, say
    from dialeval.compose.tables import card_text
    from dialeval.storage import write_text

    if card and not leave_one_out:
        raise UsageError("--card needs the numbers of --leave-one-out: add --leave-one-out")
    with counting_bar("leaving out", quiet=quiet or as_json) as progress:
        found = library.fit(
            runs,
            metrics=metric or (),
            power="adaptive" if power == "adaptive" else float(power),
            sample=sample,
            seed=seed,
            map=map,
            prior=prior,
            even=even,
            scale=scale,
            paper=paper,
            leave_one_out=leave_one_out,
            progress=progress,
        )
    composition, trials = found.composition, found.trials
    if out:
        library.save(composition, out)
    if card and trials:
        command = shlex.join(["dialeval", *sys.argv[1:]])
        write_text(card, card_text(card.stem, command, composition, trials))
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
        return
    _show(composition, list(composition.weights))
    if trials:
        _show_trials(trials)
    if quiet:
        return
    for warning in found.warnings:
        say(warning, stderr=True, style="yellow")
    for path in (out, card):
        if path:
            say(f"wrote {path}", stderr=True)
    if not out:
        say("nothing was written: name a file with -o", stderr=True, style="yellow")


@app.command()
def show(
    weights: Weights,
    quality: Annotated[
        list[str] | None, option(help="Show only this quality. Repeat for several.")
    ] = None,
    correlations: Annotated[
        bool, typer.Option("--correlations", help="Also show the correlations behind the weights.")
    ] = False,
    plot: Plot = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the weights of a composition, and what they were fitted on."""
    from dialeval.cli.terminal import say
    from dialeval.compose.tables import correlation_lines, draw_weights, source_lines, term_lines
    from dialeval.metrics.composition import FORMAT, find_composition

    check_picture(plot)
    composition = find_composition(weights)
    wanted = [composition.weights_for(one).quality for one in quality or ()]
    chosen = [one for one in wanted if one in composition.weights] or list(composition.weights)
    if plot:
        save_picture(draw_weights(composition, chosen), plot, quiet or as_json)
    if as_json:
        record: dict[str, Any] = {"format": FORMAT, **composition.to_record()}
        record["weights"] = {one: record["weights"][one] for one in chosen}
        typer.echo(json.dumps(record, indent=2))
        return
    _show(composition, chosen)
    if correlations:
        _print(correlation_lines(composition, chosen), texts=2)
        if not quiet:
            say(
                "Spearman of each scaled metric, on the samples that were drawn. Scales are"
                " clipped at their ends, so dialeval agree may print different numbers.",
                style="dim",
            )
    if not quiet:
        _print(term_lines(composition), texts=4)
        _print(source_lines(composition), texts=4)


@app.command()
def apply(
    weights: Weights,
    run: Annotated[Path, argument(metavar="RUN", help="Name a run that holds the sub-metrics.")],
    out: Annotated[
        Path | None,
        option("--out", "-o", help="Write into this CSV file. Default: standard output."),
    ] = None,
    quality: Annotated[str, typer.Option(help="Use the weights of this quality.")] = "overall",
    quiet: Quiet = False,
) -> None:
    """Compose the scores of an existing run, without asking any model.

    The command writes a table of scores by id. Compare the scores with people by `dialeval agree
    RUN --scores FILE.csv`.
    """
    from dialeval.cli.terminal import harmless_output, say
    from dialeval.compose.evidence import apply_composition, scores_table
    from dialeval.metrics.composition import find_composition
    from dialeval.runs.run import open_run
    from dialeval.storage import write_text

    opened = open_run(run)
    scores = apply_composition(find_composition(weights), opened, quality)
    text = scores_table(opened, "mme-crs", scores)
    if out is None:
        harmless_output().write(text)
    else:
        write_text(out, text)
    if not quiet:
        there = sum(score is not None for score in scores)
        say(f"{there:,} of {len(scores):,} samples have a score", stderr=True)
        if out is not None:
            command = shlex.join(["dialeval", "agree", str(run), "--scores", str(out)])
            say(f"wrote {out}. If people rated these samples: {command}", stderr=True)


@app.command()
def names(as_json: Json = False) -> None:
    """List the names of qualities that `--map common` joins."""
    from dialeval.compose.fitting import COMMON_GROUPS

    if as_json:
        typer.echo(json.dumps(COMMON_GROUPS, indent=2))
        return
    rows = [[joined, ", ".join(found)] for joined, found in COMMON_GROUPS.items()]
    _print((["quality", "names in data sets"], rows), texts=2)


def _show(composition: Composition, qualities: list[str]) -> None:
    from dialeval.compose.tables import weight_lines

    _print(weight_lines(composition, qualities), texts=1)


def _show_trials(trials: LeaveOneOut) -> None:
    from dialeval.cli.terminal import say
    from dialeval.compose.tables import method_lines, trial_lines, verdict

    say("Each data set left out once: Spearman with the mean rating")
    _print(trial_lines(trials), texts=3)
    _print(method_lines(trials), texts=1)
    say(verdict(trials))


def _print(lines: Lines, texts: int) -> None:
    """The first `texts` columns are words, the others numbers."""
    from dialeval.cli.terminal import print_table, say

    header, rows = lines
    print_table(header, rows, right=range(texts, len(header)))
    say()
