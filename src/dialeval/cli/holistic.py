"""`dialeval holistic SYSTEM... --queries FILE -o DIR`: all four metrics of HolisticEval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.arguments import (
    AskedAtOnce,
    AugmenterSeed,
    Format,
    Json,
    LargestRecord,
    Queries,
    QueryLimit,
    QuerySystemPrompt,
    Quiet,
    Rate,
    Retries,
    SystemKeyEnv,
    Timeout,
    argument,
    option,
    parse_pairs,
)
from dialeval.limits import USUAL

if TYPE_CHECKING:
    from dialeval.probe.holistic_result import HolisticResult


def holistic(
    systems: Annotated[
        list[str],
        argument(
            metavar="SYSTEM",
            help="Judge these systems: openai:URL#MODEL, python:MODULE:FUNCTION, hf:MODEL,"
            " cmd:COMMAND, replay:FILE, or the name of a model (see: dialeval models).",
        ),
    ],
    queries: Queries,
    out: Annotated[
        Path, option("--out", "-o", help="Store answers, scores and picture in this directory.")
    ],
    augment: Annotated[
        list[str] | None,
        option(
            "--with",
            help="Make variants by ws, ctg, eda or random (the paper's baseline), with"
            " options after a colon. Repeat for several. Default: ws and ctg, unless the queries"
            " have variants.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric",
            "-m",
            help="Set options of coherence, fluency, diversity or consistency, such as"
            " consistency:model=roberta-large-mnli. Repeat for several.",
        ),
    ] = None,
    preset: Annotated[
        str, option(help="Use the models of this preset: paper (those of the papers) or default.")
    ] = "",
    paraphrases: Annotated[
        int,
        typer.Option(
            min=1,
            help="For self-consistency, ask this many variants of each augmenter after the first"
            " answer.",
        ),
    ] = 1,
    calibration: Annotated[
        Path | None,
        option(
            help="Use the scales of coherence and fluency from this directory of an earlier"
            " command."
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        option(
            help="Set an option of every system, given as NAME=VALUE (see: dialeval probe --help)."
            " Repeat for several."
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        option(
            help="Show a system under this name in tables. Repeat the option once for each system,"
            " in their order."
        ),
    ] = None,
    concurrency: AskedAtOnce = None,
    timeout: Timeout = 60.0,
    retries: Retries = None,
    rate: Rate = None,
    key_env: SystemKeyEnv = None,
    seed: AugmenterSeed = None,
    limit: QueryLimit = None,
    format: Format = None,
    system_prompt: QuerySystemPrompt = "leave-out",
    largest_record: LargestRecord = USUAL,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what the directory holds.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge chatbots by coherence, fluency, diversity and self-consistency (HolisticEval).

    The command asks each system the queries, then variants in place of the queries, and variants
    after the first answers. It computes all four metrics on these dialogues, prints a row for each
    system and the correlations between the metrics, and draws DIR/holistic.svg. Repeat the command
    to resume it, or with one more system to add this system.
    """
    import dialeval
    from dialeval.cli.terminal import say, stage_bars

    try:
        with stage_bars(quiet=quiet or as_json) as stage:
            result = dialeval.holistic(
                *systems,
                queries=queries,
                out=out,
                with_=augment,
                metrics=metric or (),
                preset=preset,
                paraphrases=paraphrases,
                calibration=calibration,
                set=parse_pairs(set, "--set"),
                names=name or (),
                concurrency=concurrency,
                timeout=timeout,
                retries=retries,
                rate=rate,
                key_env=key_env,
                seed=seed,
                limit=limit,
                format=format,
                system_prompt=system_prompt,
                largest_record=largest_record,
                overwrite=overwrite,
                stage=stage,
            )
    except KeyboardInterrupt:
        say(f"\nStopped. {out} holds the results: repeat the command to resume.", stderr=True)
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(result.to_record(), indent=2))
    else:
        _show(result, quiet)
    if result.failed:
        raise typer.Exit(1)


def _show(result: HolisticResult, quiet: bool) -> None:
    from dialeval.cli.probe_screen import show_failures
    from dialeval.cli.terminal import say, show_table
    from dialeval.probe.holistic import ANSWERS, PICTURE, VARIANTS

    for probe in result.probes:
        show_failures(probe)
    for table in result.tables():
        if table.title:
            say(f"\n{table.title}")
        show_table(table)
        if not quiet:
            for note in (*table.notes, *table.code):
                say(note, style="dim")
    if quiet:
        return
    there = result.directory
    say(f"\npicture: {there / PICTURE}. Look closer:")
    say(f"    dialeval worst {there / ANSWERS} -m coherence")
    if (there / VARIANTS).is_dir():
        say(f"    dialeval show {there / VARIANTS}")
    if len(result.systems) > 1:
        say(f"    dialeval compare {there / ANSWERS}")
