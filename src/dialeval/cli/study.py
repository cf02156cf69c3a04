"""`dialeval study [NAME]`: repeat a paper's table, published | ours | difference."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialeval.cli.arguments import Json, PriceIn, PriceOut, Quiet, check_picture
from dialeval.errors import JobError, UsageError

if TYPE_CHECKING:
    from dialeval.studies.result import StudyResult


def study(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Run this study. Without a name, list all studies.",
            show_default=False,
        ),
    ] = None,
    more_systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SYSTEM]...",
            help="Also ask these chatbots after --systems, as in --systems bots/*.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="Ask this model instead of the embedded one (see: dialeval models). Repeat for"
            " several.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="Score with this metric instead of the study's own, if the study accepts any."
            " Repeat for several.",
            show_default=False,
        ),
    ] = None,
    rated: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Use only this rated set or rated file, if the study accepts any. Repeat for"
            " several.",
            show_default=False,
        ),
    ] = None,
    positives: Annotated[
        list[str] | None,
        typer.Option(
            "--positives",
            help="Also train with right responses from this generator, if the study trains scorers:"
            " ctg:model=DIR samples, ctg:model=DIR,method=beam takes beams. Repeat for several.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        int,
        typer.Option(
            min=0,
            help="Train scorers with this many pairs, if the study trains scorers.",
            show_default=False,
        ),
    ] = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=0,
            help="Train each scorer with this many seeds, if the study trains scorers.",
            show_default=False,
        ),
    ] = 0,
    corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Train scorers on these dialogues instead of the study's own, if the study trains"
            " scorers. Chatbots answer the test queries of these dialogues.",
            show_default=False,
        ),
    ] = None,
    systems: Annotated[
        list[str] | None,
        typer.Option(
            "--systems",
            help="Ask this chatbot (an address, as for `dialeval probe`), if the study asks any."
            " Repeat for several.",
            show_default=False,
        ),
    ] = None,
    raters: Annotated[
        list[str] | None,
        typer.Option(
            "--raters",
            help="Read the ratings of the answers from this file: ratings.db of `dialeval rate`, or"
            " any rated file. Repeat for several.",
            show_default=False,
        ),
    ] = None,
    sweep: Annotated[
        bool,
        typer.Option(
            "--sweep",
            help="Also train scorers with other values of t and k, and add tables and, with -o,"
            " pictures (study pone).",
        ),
    ] = False,
    limit: Annotated[
        int,
        typer.Option(
            min=0,
            help="Select this many answers of each set at random, if the study accepts a limit.",
            show_default=False,
        ),
    ] = 0,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Look for data sets in this directory. Default: $DIALEVAL_DATA, else where `data"
            " get` stores them.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Also save the result as .json, .csv, .tex (LaTeX), or else as Markdown. For study"
            " pone: save all formats and pictures in this folder.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Draw the study's picture, if it has one, into this .svg or .png file, or each"
            " figure into this directory.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown instead of a table.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Repeat a paper's experiment, and compare the published numbers with ours.

    Without a name, the command lists the studies with what they need, and every table of the papers
    with the command that repeats it, whether it is complete, and what is missing. With a name, it
    exits with 1 if a number that must match does not.
    """
    if as_json and as_markdown:
        raise UsageError("use --json or --markdown, not both")
    if plot is not None and plot.suffix:
        check_picture(plot)
    if name is None:
        from dialeval.verbs import data_directory

        with data_directory(data):
            given = (model, metric, rated, positives, pairs, seeds, corpus, systems, raters)
            prices = price_in is not None or price_out is not None
            if any((*given, sweep, limit, prices, out, plot)):
                raise UsageError(
                    "name a study for --model, --metric, --set, --positives, --pairs, --seeds,"
                    " --corpus, --systems, --raters, --sweep, --limit, prices, --out and --plot."
                    " See: dialeval study"
                )
            _list(as_json, as_markdown)
        return
    if more_systems and not systems:
        raise UsageError(f"unexpected {more_systems[0]!r}: name one study at a time")
    asked: dict[str, Any] = {
        "models": model or [],
        "metrics": metric or [],
        "sets": rated or [],
        "positives": positives or [],
        "systems": [*(systems or []), *(more_systems or [])],
        "raters": raters or [],
        "pairs": pairs,
        "seeds": seeds,
        "corpus": corpus,
        "sweep": sweep,
        "limit": limit,
        "price_in": price_in,
        "price_out": price_out,
    }
    _run(name, asked, data, out, plot, as_json, as_markdown, quiet)


def _list(as_json: bool, as_markdown: bool) -> None:
    from dialeval.cli.terminal import print_table, say
    from dialeval.studies.coverage import table_cells, tables_here
    from dialeval.studies.result import list_cells, list_records, markdown_table
    from dialeval.studies.study import find_missing, list_studies

    found = [
        (study, find_missing(study.needs, (*study.models, *study.asks))) for study in list_studies()
    ]
    tables = tables_here()
    if as_json:
        typer.echo(json.dumps(list_records(found, tables), indent=2))
        return
    if as_markdown:
        typer.echo(markdown_table(*list_cells(found)))
        typer.echo()
        typer.echo(markdown_table(*table_cells(tables)))
        return
    print_table(*list_cells(found))
    say("\nThe tables of the papers")
    print_table(*table_cells(tables))
    say()
    for study, missing in found:
        for lack in missing:
            say(f"{study.name}: {lack}", style="yellow")
        for lack in find_missing(study.may_use, ()):
            say(f"{study.name} can do more: {lack}", style="dim")
    say("Run one: dialeval study NAME. Answers of models are cached.", style="dim")


def _run(
    name: str,
    asked: Mapping[str, Any],
    data: Path | None,
    out: Path | None,
    plot: Path | None,
    as_json: bool,
    as_markdown: bool,
    quiet: bool,
) -> None:
    import dialeval
    from dialeval.cli.terminal import counting_bar, say
    from dialeval.studies.result import failure_lines, result_markdown

    with counting_bar(name, quiet=quiet or as_json) as progress:
        result = dialeval.study(name, data=data, out=out, plot=plot, progress=progress, **asked)
    if plot is not None and not (quiet or as_json):
        say(f"picture: {plot}", stderr=True, style="dim")
    if as_json:
        typer.echo(json.dumps(result.to_record(), indent=2))
    elif as_markdown:
        typer.echo(result_markdown(result), nl=False)
    else:
        _show(result, quiet)
    if result.failures:
        raise JobError("\n".join(failure_lines(result)))


def _show(result: StudyResult, quiet: bool) -> None:
    from dialeval.cli.terminal import print_table, say
    from dialeval.studies.result import (
        NUMBERS,
        result_cells,
        rows_for_people,
        table_cells,
        tables_for_people,
        verdict_line,
    )

    say(result.study.repeats)
    say(result.study.paper, style="dim")
    say()
    if result.rows:
        header, rows = result_cells(rows_for_people(result))
        numbers = [i for i, title in enumerate(header) if title in NUMBERS]
        print_table(header, rows, right=numbers)
        say(f"\n{verdict_line(result)}")
    for table in tables_for_people(result):
        say(f"\n{table.title}")
        header, rows = table_cells(table)
        texts = sum(isinstance(cell, str) for cell in table.rows[0]) if table.rows else 0
        print_table(header, rows, right=range(texts, len(header)))
    if quiet:
        return
    say()
    for note in result.notes:
        say(note, style="dim")
    for difference in result.study.differs:
        say(f"Known to differ: {difference}", style="dim")
