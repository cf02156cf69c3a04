"""`dialeval holistic SYSTEM... --queries FILE -o DIR`: all four metrics of HolisticEval."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialeval.cli.arguments import Format, Json, LargestRecord, Quiet, parse_pairs
from dialeval.limits import USUAL

if TYPE_CHECKING:
    from dialeval.probe.holistic_result import HolisticResult
    from dialeval.progress import Progress


def holistic(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM",
            help="Judge these systems: openai:URL#MODEL, python:MODULE:FUNCTION, hf:MODEL,"
            " cmd:COMMAND, replay:FILE, or the name of a model (see: dialeval models).",
            show_default=False,
        ),
    ],
    queries: Annotated[
        list[str],
        typer.Option(
            "--queries",
            help="Ask the queries of this file: one query per line, dialogues, whose last user"
            " turn is asked, or a file of `dialeval augment`. Repeat for several.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Store everything in this directory.", show_default=False),
    ],
    augment: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="Find other wordings by ws, ctg, eda or random (the paper's baseline), with"
            " options after a colon. Repeat for several. Default: ws and ctg, unless the queries"
            " have variants.",
            show_default=False,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="Set options of coherence, fluency, diversity or consistency, such as"
            " consistency:model=roberta-large-mnli. Repeat for several.",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            help="Take the models of this preset: paper (those of the papers) or default.",
            show_default=False,
        ),
    ] = "",
    paraphrases: Annotated[
        int,
        typer.Option(
            min=1, help="For self-consistency, put this many variants of each augmenter again."
        ),
    ] = 1,
    calibration: Annotated[
        Path | None,
        typer.Option(
            help="Use the scale of coherence and fluency of this earlier directory.",
            show_default=False,
        ),
    ] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Set an option of every system, given as NAME=VALUE (see: dialeval probe --help)."
            " Repeat for several.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="Show the systems under these names, one for each, in their order.",
            show_default=False,
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Ask at most this many questions at once. Default: 16 for a server, an async"
            " function or a model; 1 for a command or a plain function.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.01, help="Give up an attempt after this many seconds.")
    ] = 60.0,
    retries: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="For openai, retry this many times after a temporary failure. Default: 3.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="For openai, send at most this many requests per minute.",
            show_default=False,
        ),
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(
            "--key-env",
            help="For openai, read the API key from this environment variable. Default:"
            " OPENAI_API_KEY, if it is set.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Use this seed in the augmenters.", show_default=False)
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Take at most this many queries.", show_default=False),
    ] = None,
    format: Format = None,
    system_prompt: Annotated[
        Literal["leave-out", "facts"],
        typer.Option(
            help="Leave out the system prompts of chat logs in --queries, or keep them as facts:"
            " the system then gets the prompt of the log."
        ),
    ] = "leave-out",
    largest_record: LargestRecord = USUAL,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what the directory holds.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge chatbots by coherence, fluency, diversity and self-consistency (HolisticEval).

    The command asks each system the queries, paraphrases in their place, and paraphrases after the
    answers, and scores all four metrics on these dialogues. It prints a row for each system and
    the correlations between the metrics, and draws DIR/holistic.svg. Repeat the command to resume;
    with one more system, it joins the others.
    """
    import dialeval
    from dialeval.cli.terminal import counting_bar, say

    try:
        with ExitStack() as bars:

            def stage(what: str) -> Progress:
                bars.close()
                return bars.enter_context(counting_bar(what, quiet=quiet or as_json))

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
        say(f"\nStopped. {out} holds what is done: repeat the command to resume.", stderr=True)
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
