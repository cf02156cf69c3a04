"""`dialeval agree RUN`, `dialeval raters FILE`: agreement of metrics and of raters with people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli.arguments import (
    Columns,
    Files,
    Format,
    Json,
    LargestRecord,
    Metrics,
    Plot,
    Quiet,
    RatingColumns,
    Scales,
    Workers,
    argument,
    check_picture,
    option,
    parse_pairs,
    parse_scales,
    save_picture,
    usual_workers,
)
from dialeval.errors import UsageError
from dialeval.limits import USUAL

Qualities = Annotated[
    list[str] | None, option("--quality", help="Use only this rated quality. Repeat for several.")
]


def agree(
    sources: Annotated[
        list[str],
        argument(
            metavar="RUN",
            help="Name one or more runs. With --scores, name one file of ratings or one run on"
            " rated data. If people rated runs, you can name the database of dialeval rate.",
        ),
    ],
    scores: Annotated[
        list[Path] | None,
        option(
            help="Join these scores to the ratings by id. Name a run, a file of dialeval export, or"
            " a table (CSV, TSV, JSON lines, Parquet) with a column id and one column per metric."
            " Repeat for several."
        ),
    ] = None,
    lower: Annotated[
        list[str] | None,
        option(
            "--lower-is-better",
            help="Treat this metric of --scores as lower-is-better. Repeat for several.",
        ),
    ] = None,
    quality: Qualities = None,
    metric: Metrics = None,
    by: Annotated[
        Literal["turn", "system", "within-item", "within-system"],
        typer.Option(
            help="Choose what is correlated. turn: the scores and ratings of all samples. system:"
            " the means of the systems. within-item, within-system: the samples of each item or"
            " system separately; the correlations are averaged."
        ),
    ] = "turn",
    target: Annotated[
        str,
        typer.Option(
            help="Correlate with the mean rating, with one rater (rater:NAME or rater:2), or with"
            " max-over-raters: PONE's rule, the largest correlation with any rater."
        ),
    ] = "mean",
    test: Annotated[
        Literal["williams", "perm-both"] | None,
        option(
            help="Test whether one metric is better than another. The test compares each pair on"
            " the same samples, with Holm's correction, and prints clusters."
        ),
    ] = None,
    coefficient: Annotated[
        Literal["pearson", "spearman"] | None,
        option(
            help="Use this coefficient for --test and --relations. Default: pearson for williams,"
            " else spearman."
        ),
    ] = None,
    relations: Annotated[
        bool,
        typer.Option(
            "--relations",
            help="Correlate metrics with each other, and qualities with each other, instead of"
            " metrics with qualities.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        option(
            "--out",
            "-o",
            help="Also write a table for a paper, with one row per metric and one column per"
            " quality (.tex, .md, .html), or all numbers (.csv).",
        ),
    ] = None,
    plot: Plot = None,
    rounds: Annotated[
        int | None,
        option(
            min=0,
            help="Number of resampling rounds. Default: 1000 for intervals (0 disables them), 9999"
            " for perm-both.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.")] = 0,
    workers: Workers = None,
    format: Format = None,
    map: Columns = None,
    rating: RatingColumns = None,
    scale: Scales = None,
    largest_record: LargestRecord = USUAL,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure how well each metric agrees with each quality that people rated.

    With --scores, RUN is a file of ratings: an id, and ratings in columns rating_NAME (several
    raters: rating_NAME_1, rating_NAME_2) or in columns that --rating names. It can also be a run on
    rated samples.

    --plot draws a scatter plot if there is one metric and one quality, or if you name them with
    --metric and --quality. Otherwise it draws bars with intervals. With --relations, it draws
    matrices.
    """
    import dialeval
    from dialeval.cli.show_agreement import show_agreement, show_rankings, show_relations
    from dialeval.cli.terminal import counting_bar, say

    check_picture(plot)
    check_table(out)
    silent = quiet or as_json
    with counting_bar("relating" if relations else "correlating", quiet=silent) as progress:
        found = dialeval.agree(
            *sources,
            scores=scores or (),
            lower_is_better=lower or (),
            qualities=quality or (),
            metrics=metric or (),
            by=by,
            target=target,
            test=test,
            coefficient=coefficient,
            relations=relations,
            rounds=rounds,
            seed=seed,
            workers=workers or usual_workers(),
            format=format,
            columns=parse_pairs(map, "--map"),
            ratings=rating or (),
            scales=parse_scales(scale),
            largest_record=largest_record,
            progress=progress,
        )
    _show_remarks(found.remarks, silent)
    if out:
        found.save(out)
        if not silent:
            say(f"wrote {out}", stderr=True)
    if plot:
        save_picture(found.plot(scatter=bool(metric and quality)), plot, silent)
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
    elif found.relations is not None:
        show_relations(found.relations)
    else:
        show_agreement(found.rows)
        show_rankings(found.rankings or ())


def _show_remarks(remarks: str, quiet: bool) -> None:
    from dialeval.cli.terminal import say

    if remarks and not quiet:
        say(remarks, stderr=True, style="yellow")


def check_table(path: Path | None) -> None:
    """Raises an error before the work starts if the name of the file is wrong."""
    from dialeval.tables import SUFFIXES, table_ending

    if path and path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--out {table_ending(path)}")


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
    """Measure how well the raters agree with each other.

    Ratings are in columns rating_NAME_1, rating_NAME_2 (one for each rater of the quality NAME), or
    in JSON as "ratings": {"NAME": [4, 5, 3]}. Turns and whole dialogues are reported separately.
    """
    import dialeval
    from dialeval.cli.show_agreement import show_raters

    found = dialeval.raters(
        *files,
        qualities=quality or (),
        format=format,
        columns=parse_pairs(map, "--map"),
        ratings=rating or (),
        scales=parse_scales(scale),
        largest_record=largest_record,
    )
    _show_remarks(found.remarks, quiet or as_json)
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
    else:
        show_raters(found.reports)
