"""`dialeval data`: public data sets by name, and files of dialogues before anything is scored."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.arguments import (
    Columns,
    Files,
    Format,
    Json,
    LargestRecord,
    Limit,
    Quiet,
    RatingColumns,
    Scales,
    Seed,
    SkipBad,
    SystemPrompt,
    argument,
    load_samples,
    option,
    parse_pairs,
    parse_scales,
)
from dialeval.limits import USUAL

if TYPE_CHECKING:
    from dialeval.datasets.fetch import Fetched

app = typer.Typer(
    rich_markup_mode="markdown", help="List and fetch public data sets; check and convert files."
)

Name = Annotated[
    str,
    argument(
        metavar="NAME",
        help="Name a data set, such as fed, or a part of one, such as holistic/coherence.",
    ),
]


@app.callback(invoke_without_command=True)
def data(context: typer.Context, as_json: Json = False) -> None:
    """List public data sets and whether they are installed; fetch, check and convert dialogues."""
    if context.invoked_subcommand is not None:
        return
    from dialeval.cli.terminal import print_table, say
    from dialeval.datasets.locate import list_datasets, quality_words
    from dialeval.storage import data_directory

    listed = list_datasets()
    if as_json:
        typer.echo(json.dumps([one.to_record() for one in listed], indent=2))
        return
    header = ["data set", "items", "rated", "raters", "source", "licence", "here"]
    rows = [
        [d.name, d.items, quality_words(d) or "-", d.raters or "-", d.citation, d.licence, state]
        for d, state in ((one.dataset, one.state) for one in listed)
    ]
    print_table(header, rows)
    say(f"\ndialeval looks for data sets in {data_directory()} (DIALEVAL_DATA).")
    say("Describe one: dialeval data show NAME. Fetch one: dialeval data get NAME.")


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show one data set: source, licence, qualities, parts, files."""
    from dialeval.cli.terminal import print_table, say
    from dialeval.datasets.entries import find_entry
    from dialeval.datasets.locate import inspect_dataset, scale_words

    dataset, _ = find_entry(name)
    found = inspect_dataset(dataset)
    if as_json:
        typer.echo(json.dumps(found.to_record(), indent=2))
        return
    say(f"{dataset.name}: {dataset.summary}")
    rated = [
        f"{quality} ({' or '.join(map(scale_words, scales))})"
        for quality, scales in dataset.qualities.items()
    ]
    about = {
        "items": dataset.items,
        "rated": ", ".join(rated),
        "raters": dataset.raters,
        "cite": dataset.citation,
        "source": dataset.source,
        "licence": dataset.licence,
        "size": f"{dataset.size / 1e6:.1f} MB",
        "here": f"{found.state}: {found.folder}" if found.folder else found.state,
    }
    for key, value in about.items():
        if value:
            say(f"  {key + ':':9} {value}")
    if len(dataset.parts) > 1:
        say()
        parts = [[f"{dataset.name}/{p.name}", f"{p.items:,}", p.format] for p in dataset.parts]
        print_table(["part", "items", "format"], parts, right=[1])
    say()
    files = [
        [f.name, f"{f.size:,}", "no" if f.name in found.missing else "yes", f.url or "by hand"]
        for f in dataset.files
    ]
    print_table(["file", "bytes", "here", "public address"], files, right=[1])


@app.command()
def get(
    name: Name,
    source: Annotated[
        Path | None,
        option("--from", help="Copy the data set from this folder or file; download nothing."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Download without asking.")] = False,
    accept_changed: Annotated[
        bool,
        typer.Option(
            "--accept-changed", help="Keep a file even if its sha256 differs from the known one."
        ),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fetch a data set from its public source, or copy one that you have.

    Repeat the command to resume an interrupted download.
    """
    from dialeval.cli.terminal import fetch_bar, say
    from dialeval.datasets.entries import find_entry
    from dialeval.datasets.fetch import absent_files, copy_from, fetch, hosts

    dataset, part = find_entry(name)
    absent = absent_files(dataset, part)
    with_address = [file for file in absent if file.url]
    if with_address and source is None:
        size = sum(file.size for file in with_address) / 1e6
        count = f"{len(with_address)} file" + ("s" if len(with_address) > 1 else "")
        if not quiet:
            say(
                f"{dataset.name}: {count}, {size:.1f} MB, from {', '.join(hosts(with_address))}\n"
                f"licence: {dataset.licence} ({dataset.citation}; {dataset.source})",
                stderr=True,
            )
        if not yes and sys.stdin.isatty():
            typer.confirm("Fetch it?", abort=True, err=True)
        elif not yes and not quiet:
            say("not asking, because standard input is not a terminal", stderr=True)
    with fetch_bar(quiet=quiet or as_json) as progress:
        if source is not None:
            done = copy_from(dataset, source, part, progress=progress)
        else:
            done = fetch(dataset, part, accept_changed=accept_changed, progress=progress)
    if as_json:
        typer.echo(json.dumps(done.to_record(), indent=2))
    elif not quiet:
        _tell(name, done)


def _tell(name: str, done: Fetched) -> None:
    from dialeval.cli.terminal import say
    from dialeval.datasets.entries import find_entry
    from dialeval.datasets.fetch import by_hand_advice

    say(f"{name}: {done.folder}" + ("" if done.added else " (already installed)"))
    for changed in done.changed:
        say(f"differs from the file that dialeval knows: {changed}", stderr=True, style="yellow")
    if done.absent:
        advice = by_hand_advice(find_entry(name)[0], done.absent)
        say(f"still missing: {advice}", stderr=True, style="yellow")


@app.command()
def check(
    files: Files,
    format: Format = None,
    map: Columns = None,
    rating: RatingColumns = None,
    scale: Scales = None,
    every: Annotated[bool, typer.Option("--all", help="List similar problems one by one.")] = False,
    largest_record: LargestRecord = USUAL,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the problems of files as FILE:LINE: FIELD: PROBLEM, and exit with 2 if there is one.

    The command prints similar problems on one line, with their number. --json lists each problem.
    """
    from dialeval.cli.show import show_check_report
    from dialeval.cli.terminal import progress_bar
    from dialeval.readers import check as examine

    with progress_bar("checking", quiet=quiet or as_json) as update:
        report = examine(
            files,
            format=format,
            columns=parse_pairs(map, "--map"),
            ratings=tuple(rating or ()),
            scales=parse_scales(scale),
            largest_record=largest_record,
            progress=update,
        )
    if as_json:
        typer.echo(json.dumps(report.to_record(), indent=2))
    else:
        show_check_report(report, every)
    if report.problems:
        raise typer.Exit(2)


@app.command()
def convert(
    files: Files,
    out: Annotated[
        Path,
        option(
            "--out", "-o", help="Write to this file: .jsonl, .jsonl.gz, .jsonl.zst or .parquet."
        ),
    ],
    format: Format = None,
    map: Columns = None,
    rating: RatingColumns = None,
    scale: Scales = None,
    limit: Limit = None,
    seed: Seed = None,
    skip_bad: SkipBad = False,
    system_prompt: SystemPrompt = "leave-out",
    largest_record: LargestRecord = USUAL,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write dialogues in dialeval's own form, as JSONL or Parquet."""
    from dialeval.cli.terminal import progress_bar, say
    from dialeval.readers import convert as write

    samples = load_samples(
        files, format, map, rating, scale, limit, seed, skip_bad, system_prompt, largest_record
    )
    with progress_bar("converting", quiet=quiet or as_json) as update:
        written = write(samples, out, progress=lambda done, _: update(done, samples.fraction()))
    if as_json:
        typer.echo(json.dumps({"file": str(out), "samples": written, **samples.about()}))
    elif not quiet:
        skipped = f", {samples.skipped:,} bad records skipped" if samples.skipped else ""
        say(f"wrote {written:,} samples to {out}{skipped}")


@app.command()
def formats(as_json: Json = False) -> None:
    """List the file formats that can be read."""
    from dialeval.cli.terminal import print_table
    from dialeval.registry import READERS

    readers = [(name, READERS.get(name).summary) for name in READERS.working()]
    if as_json:
        typer.echo(json.dumps([{"name": n, "summary": s} for n, s in readers], indent=2))
    else:
        print_table(["format", "what it is"], readers)
