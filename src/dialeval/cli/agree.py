"""`dialeval agree RUN`, `dialeval raters FILE`: metrics against people, people against people."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval.cli.arguments import (
    Columns,
    Files,
    Format,
    Json,
    LargestRecord,
    Quiet,
    RatingColumns,
    Scales,
    parse_pairs,
    parse_scales,
)
from dialeval.errors import UsageError
from dialeval.limits import USUAL

if TYPE_CHECKING:
    from dialeval.agreement.rated import RatedLevel
    from dialeval.readers import Samples

Qualities = Annotated[
    list[str] | None,
    typer.Option("--quality", help="Only this rated quality. Repeat.", show_default=False),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", "-m", help="Only this metric. Repeat.", show_default=False),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", help="Draw it into this file, .svg or .png.", show_default=False),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        help="Threads for resampling; the result is the same for any number. Default: one per"
        " core, four at most.",
        show_default=False,
    ),
]


def agree(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="One or more runs; or, with --scores, a file of ratings or a run on rated data;"
            " or the database of dialeval rate, if runs were rated.",
            show_default=False,
        ),
    ],
    scores: Annotated[
        list[Path] | None,
        typer.Option(
            help="Join these scores to the ratings by id: a run, what dialeval export writes, or a"
            " table from anywhere (CSV, TSV, JSON lines, Parquet) with a column id and one per"
            " metric. Repeat.",
            show_default=False,
        ),
    ] = None,
    lower: Annotated[
        list[str] | None,
        typer.Option(
            "--lower-is-better",
            help="With --scores: a metric that is better the lower it is. Repeat.",
            show_default=False,
        ),
    ] = None,
    quality: Qualities = None,
    metric: Metrics = None,
    by: Annotated[
        Literal["turn", "system", "within-item", "within-system"],
        typer.Option(
            help="turn: all samples together. system: means of systems. within-item,"
            " within-system: correlations among the answers to one item or of one system, averaged."
        ),
    ] = "turn",
    target: Annotated[
        str,
        typer.Option(
            help="mean rating, rater:NAME (or rater:2), or max-over-raters: PONE's rule, the"
            " largest correlation with any rater."
        ),
    ] = "mean",
    test: Annotated[
        Literal["williams", "perm-both"] | None,
        typer.Option(
            help="Is one metric better than another? Tests each pair on the same samples, with"
            " Holm's correction, and draws clusters.",
            show_default=False,
        ),
    ] = None,
    coefficient: Annotated[
        Literal["pearson", "spearman"] | None,
        typer.Option(
            help="Of --test and --relations. Default: pearson for williams, else spearman.",
            show_default=False,
        ),
    ] = None,
    relations: Annotated[
        bool,
        typer.Option(
            "--relations", help="Instead: metrics among themselves, qualities among themselves."
        ),
    ] = False,
    plot: Plot = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of resampling. Default: 1000 for intervals (0: none), 9999 for perm-both.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the resampling.")] = 0,
    workers: Workers = None,
    format: Format = None,
    map: Columns = None,
    rating: RatingColumns = None,
    scale: Scales = None,
    largest_record: LargestRecord = USUAL,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How well does each metric agree with each quality that people rated?

    With --scores, RUN is a file of ratings: an id, and ratings in columns rating_NAME (several
    raters: rating_NAME_1, rating_NAME_2) or in columns that --rating names. It may be a run, too,
    whose samples were rated.

    --plot draws a scatter plot where one metric meets one quality or --metric and --quality are
    both given, bars with intervals otherwise, and matrices with --relations.
    """
    from dialeval.agreement.metric_ranking import rank_metrics
    from dialeval.agreement.relations import relations as relate
    from dialeval.agreement.table import agreement_rows
    from dialeval.cli.show_agreement import show_agreement, show_rankings, show_relations
    from dialeval.cli.terminal import counting_bar

    check_picture(plot)
    if not scores:
        unfit = {
            "--lower-is-better": lower,
            "--format": format,
            "--map": map,
            "--rating": rating,
            "--scale": scale,
            "--largest-record": largest_record != USUAL,
        }
        levels = _levels_of_runs(sources, target, quality or [], unfit)
    else:
        if len(sources) > 1:
            raise UsageError("--scores takes one file of ratings; name the scores of each in turn")
        ratings = _load_ratings(sources, format, map, rating, scale, largest_record)
        levels = _levels_of_scores(
            ratings, scores, target, quality or [], lower or [], largest_record
        )
        _tell_remarks(ratings, quiet or as_json)
    shared: dict[str, Any] = {"metrics": metric or [], "by": by}
    if relations:
        with counting_bar("relating", quiet=quiet or as_json) as progress:
            related = relate(levels, coefficient or "spearman", progress=progress, **shared)
        if plot:
            from dialeval.agreement.drawings import draw_relations

            save_picture(draw_relations(related), plot, quiet or as_json)
        if as_json:
            typer.echo(json.dumps([one.to_record() for one in related], indent=2))
        else:
            show_relations(related)
        return
    shared |= {"seed": seed, "workers": workers or usual_workers()}
    with counting_bar("correlating", quiet=quiet or as_json) as progress:
        rows = agreement_rows(
            levels, rounds=1000 if rounds is None else rounds, progress=progress, **shared
        )
    rankings = []
    if test:
        with counting_bar("testing", quiet=quiet or as_json) as progress:
            rankings = rank_metrics(
                levels,
                test,
                coefficient=coefficient,
                rounds=rounds or 9999,
                progress=progress,
                **shared,
            )
    if plot:
        from dialeval.agreement.drawings import draw_agreement

        scatter = bool(metric and quality)
        drawing = draw_agreement(levels, rows, metric or [], scatter)
        save_picture(drawing, plot, quiet or as_json)
    if as_json:
        records = [row.to_record() for row in rows]
        tests = [ranking.to_record() for ranking in rankings]
        typer.echo(json.dumps({"rows": records, "tests": tests} if test else records, indent=2))
    else:
        show_agreement(rows)
        show_rankings(rankings)


def _levels_of_runs(
    runs: list[str], target: str, qualities: list[str], unfit: dict[str, Any]
) -> list[RatedLevel]:
    from dialeval.agreement.table import open_rated
    from dialeval.readers.source import is_database

    for option, given in unfit.items():
        if given:
            raise UsageError(
                f"{option} goes with --scores: a run knows its metrics and ratings as they were"
                " given to dialeval score"
            )
    return [
        level
        for run in runs
        for level in (
            _levels_of_database(run, target, qualities)
            if is_database(run)
            else open_rated(run, target, qualities)
        )
    ]


def _levels_of_database(path: str, target: str, qualities: list[str]) -> list[RatedLevel]:
    from dialeval.agreement.rated import Target, rated_samples
    from dialeval.rating.results import judged_samples

    judged = judged_samples(path)
    return rated_samples(
        judged.samples,
        judged.scores,
        Target.parse(target),
        qualities,
        dataset=path,
        directions=judged.directions,
    )


def _levels_of_scores(
    ratings: Samples,
    scores: list[Path],
    target: str,
    qualities: list[str],
    lower: list[str],
    largest_record: int,
) -> list[RatedLevel]:
    from dialeval.agreement.rated import Target, rated_samples
    from dialeval.agreement.sources import known_directions, read_all_scores, some_rated

    return rated_samples(
        some_rated(ratings),
        read_all_scores(scores, largest_record),
        Target.parse(target),
        qualities,
        dataset=", ".join(ratings.formats),
        directions={**known_directions(scores), **dict.fromkeys(lower, "lower")},
    )


def _load_ratings(
    files: list[str],
    format: str | None,
    columns: list[str] | None,
    ratings: list[str] | None,
    scales: list[str] | None,
    largest_record: int,
) -> Samples:
    from dialeval.agreement.sources import load_ratings

    return load_ratings(
        files,
        format=format,
        columns=parse_pairs(columns, "--map"),
        ratings=tuple(ratings or ()),
        scales=parse_scales(scales),
        largest_record=largest_record,
    )


def _tell_remarks(ratings: Samples, quiet: bool) -> None:
    from dialeval.agreement.sources import remarks
    from dialeval.cli.terminal import say

    if not quiet and (found := remarks(ratings)):
        say(found, stderr=True, style="yellow")


def usual_workers() -> int:
    return min(4, os.cpu_count() or 1)


def check_picture(path: Path | None) -> None:
    """Before the work, not after it."""
    if path and path.suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"--plot {path}: a picture ends in .svg or .png")


def save_picture(drawing: Any, path: Path, quiet: bool) -> None:
    from dialeval.cli.terminal import say
    from dialeval.pictures import save

    save(drawing, path)
    if not quiet:
        say(f"picture: {path}", stderr=True, style="dim")


def raters(
    files: Files,
    quality: Qualities = None,
    format: Format = None,
    map: Columns = None,
    rating: RatingColumns = None,
    scale: Scales = None,
    largest_record: LargestRecord = USUAL,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Do the raters agree with each other?

    Ratings stand in columns rating_NAME_1, rating_NAME_2 (one for each rater of the quality NAME),
    or in JSON as "ratings": {"NAME": [4, 5, 3]}. Turns and whole dialogues are kept apart.
    """
    from dialeval.agreement.raters import rater_reports
    from dialeval.agreement.sources import some_rated
    from dialeval.cli.show_agreement import show_raters

    ratings = _load_ratings(files, format, map, rating, scale, largest_record)
    reports = rater_reports(some_rated(ratings), quality or [])
    _tell_remarks(ratings, quiet or as_json)
    if as_json:
        typer.echo(json.dumps([one.to_record() for one in reports], indent=2))
    else:
        show_raters(reports)
