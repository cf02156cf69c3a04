"""`dialeval agree RUN`, `dialeval raters FILE`: metrics against people, people against people."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval.cli.arguments import Files, Format, Json, Quiet
from dialeval.errors import UsageError

if TYPE_CHECKING:
    from dialeval.agreement.rated import RatedLevel

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
            help="One or more runs, or a file of ratings together with --scores.",
            show_default=False,
        ),
    ],
    scores: Annotated[
        Path | None,
        typer.Option(
            help="A CSV of scores from anywhere: a column id, and one per metric.",
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
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """How well does each metric agree with each quality that people rated?

    --plot draws a scatter plot where one metric meets one quality or --metric and --quality are
    both given, bars with intervals otherwise, and matrices with --relations.
    """
    from dialeval.agreement.relations import relations as relate
    from dialeval.agreement.rivals import rank_metrics
    from dialeval.agreement.table import agreement_rows
    from dialeval.cli.show_agreement import show_agreement, show_rankings, show_relations
    from dialeval.terminal import counting_bar

    check_picture(plot)
    levels = _levels(sources, scores, target, quality or [], lower or [], format)
    shared: dict[str, Any] = {"metrics": metric or []}
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
    shared |= {"by": by, "seed": seed, "workers": workers or usual_workers()}
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


def _levels(
    sources: list[str],
    scores: Path | None,
    target: str,
    qualities: list[str],
    lower: list[str],
    format: str | None,
) -> list[RatedLevel]:
    import dialeval
    from dialeval.agreement.rated import rated_samples
    from dialeval.agreement.score_file import read_scores
    from dialeval.agreement.table import open_rated
    from dialeval.agreement.targets import Target

    if scores is None:
        if lower:
            raise UsageError("--lower-is-better goes with --scores: a run knows its metrics")
        return [level for source in sources for level in open_rated(source, target, qualities)]
    if len(sources) > 1:
        raise UsageError("--scores takes one file of ratings; name the scores of each in turn")
    return rated_samples(
        dialeval.load(*sources, format=format),
        read_scores(scores),
        Target.parse(target),
        qualities,
        dataset=sources[0],
        lower_is_better=lower,
    )


def usual_workers() -> int:
    return min(4, os.cpu_count() or 1)


def check_picture(path: Path | None) -> None:
    """Before the work, not after it."""
    if path and path.suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"--plot {path}: a picture ends in .svg or .png")


def save_picture(drawing: Any, path: Path, quiet: bool) -> None:
    from dialeval.pictures import save
    from dialeval.terminal import say

    save(drawing, path)
    if not quiet:
        say(f"picture: {path}", stderr=True, style="dim")


def raters(
    files: Files,
    quality: Qualities = None,
    format: Format = None,
    as_json: Json = False,
) -> None:
    """Do the raters agree with each other?"""
    import dialeval
    from dialeval.agreement.rated import ratings_table
    from dialeval.agreement.raters import summarise_raters
    from dialeval.cli.show_agreement import show_raters

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
