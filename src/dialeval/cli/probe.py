"""`dialeval probe SYSTEM --queries FILE -o DIR`: talk to a chatbot; `dialeval show`: read it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

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


def probe(
    system: Annotated[
        str,
        argument(
            metavar="SYSTEM",
            help="Ask this system: openai:URL#MODEL, python:MODULE:FUNCTION, hf:MODEL,"
            " cmd:COMMAND, replay:FILE, or the name of a model (see: dialeval models).",
        ),
    ],
    queries: Queries,
    out: Annotated[Path, option("--out", "-o", help="Store the probe in this directory.")],
    augment: Annotated[
        list[str] | None,
        option(
            "--with",
            help="Make variants by ws, eda, ctg or random (other queries of the file), with options"
            " after a colon (see: dialeval augment --help). Repeat for several. Default: ws, unless"
            " the queries have variants.",
        ),
    ] = None,
    protocol: Annotated[
        Literal["diversity", "consistency", "both", "holistic"],
        typer.Option(
            help="Choose what to ask. diversity: each variant in place of the query. consistency: a"
            " variant after the query and its answer. both: diversity and consistency. holistic:"
            " both, separately for each augmenter, with the first answers as samples (see: dialeval"
            " holistic)."
        ),
    ] = "both",
    paraphrases: Annotated[
        int,
        typer.Option(
            min=1, help="For consistency, ask this many variants of each query after its answer."
        ),
    ] = 1,
    set: Annotated[
        list[str] | None,
        option(
            help="Set an option of the system, given as NAME=VALUE. openai: temperature, top_p,"
            " max_tokens, seed, system_prompt. Models: method (greedy, beam, sample), beams,"
            " top_k, top_p, temperature, max_new_tokens, seed. python: takes (messages, texts)."
            " Repeat for several."
        ),
    ] = None,
    name: Annotated[str, option(help="Show the system under this name in tables.")] = "",
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
        bool, typer.Option("--overwrite", help="Replace an existing probe.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask a chatbot the same things in other words, and store its answers.

    The command stores every exchange immediately. Repeat it to resume an interrupted probe, and to
    ask failed questions again. Afterwards use dialeval score DIR -m diversity -m consistency -o
    RUN, and dialeval show RUN.

    For each question, a cmd: command gets one line {"messages": [{"role": "user", "content":
    "Hi!"}]} on its standard input. It answers with one line {"reply": "Hello!"}, and writes
    everything else to standard error. A replay: file has lines {"messages": [...], "reply": "..."}.
    See docs/probing.md, section Systems.
    """
    import dialeval
    from dialeval.cli.probe_screen import asking_bar, show_summary
    from dialeval.cli.terminal import say

    try:
        with asking_bar(quiet=quiet or as_json) as watch:
            summary = dialeval.probe(
                system,
                queries,
                out,
                with_=augment,
                protocol=protocol,
                paraphrases=paraphrases,
                set=parse_pairs(set, "--set"),
                name=name,
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
                watch=watch,
            )
    except KeyboardInterrupt:
        say(f"\nStopped. {out} holds the answers: repeat the command to resume.", stderr=True)
        raise typer.Exit(130) from None
    if as_json:
        record = {**asdict(summary), "directory": str(summary.directory)}
        typer.echo(json.dumps(record, indent=2))
    else:
        show_summary(summary, quiet)
    if not summary.scorable:
        raise typer.Exit(1)


def show(
    run: Annotated[
        Path,
        argument(
            metavar="RUN",
            help="Show this run of `dialeval score PROBE -m diversity -m consistency -o RUN`, or"
            " this probe without scores.",
        ),
    ],
    top: Annotated[int, typer.Option(min=1, help="Show at most this many queries.")] = 10,
    order: Annotated[
        Literal["worst", "diversity", "consistency", "file"],
        typer.Option(
            help="Choose the order. worst: contradictions first, then the answers that vary least."
            " diversity, consistency: lowest score first. file: the order of the questions."
            " Variation is measured by dispersion, or else by normalised entropy."
        ),
    ] = "worst",
    full: Annotated[bool, typer.Option("--full", help="Show long answers in full.")] = False,
    as_json: Json = False,
) -> None:
    """Show a probe query by query, worst first: variants, answers and contradictions."""
    import dialeval
    from dialeval.cli.probe_screen import show_queries

    queries = dialeval.show(run, order=order)
    if as_json:
        records = [query.to_record() for query in queries[:top]]
        typer.echo(json.dumps({"queries": len(queries), "shown": records}, indent=2))
    else:
        show_queries(queries, top, full)
