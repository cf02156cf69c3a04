"""`dialeval probe SYSTEM --queries FILE -o DIR`: talk to a chatbot; `dialeval show`: read it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli.arguments import (
    Format,
    Json,
    LargestRecord,
    Quiet,
    parse_pairs,
)
from dialeval.limits import USUAL


def probe(
    system: Annotated[
        str,
        typer.Argument(
            help="openai:URL#MODEL, python:MODULE:FUNCTION, hf:MODEL, cmd:COMMAND, replay:FILE, or"
            " the name of a model (dialeval models).",
            show_default=False,
        ),
    ],
    queries: Annotated[
        list[str],
        typer.Option(
            "--queries",
            help="Ask the queries of this file: one of `dialeval augment`, a query per line, or"
            " dialogues, whose last user turn is asked. Repeat for several.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Directory for the probe.", show_default=False)
    ],
    augment: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="How to find other wordings: ws, eda or ctg, with options if need be. Left out:"
            " ws, unless the queries have variants.",
            show_default=False,
        ),
    ] = None,
    protocol: Annotated[
        Literal["diversity", "consistency", "both"],
        typer.Option(
            help="diversity: each variant instead of the query. consistency: a variant after the"
            " query and its answer."
        ),
    ] = "both",
    paraphrases: Annotated[
        int, typer.Option(min=1, help="For consistency: put so many variants of a query again.")
    ] = 1,
    set: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE: an option of the system. openai: temperature, top_p, max_tokens,"
            " seed, system_prompt. Models: method (greedy, beam, sample), beams, top_k, top_p,"
            " temperature, max_new_tokens, seed. python: takes (messages, texts). Repeat.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Call the system this in tables.", show_default=False)
    ] = "",
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Questions under way at once. Left out: 16 for a server, an async function or a"
            " model; 1 for a command or a plain function.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.01, help="Seconds until an attempt is given up.")
    ] = 60.0,
    retries: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="For openai: further attempts after a failure that may pass. Left out: 3.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=0.01, help="For openai: requests a minute at most.", show_default=False),
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(
            "--key-env",
            help="For openai: the environment variable that holds the API key. Left out:"
            " OPENAI_API_KEY, if it is set.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Use this seed in the augmenters.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Take only this many queries.", show_default=False),
    ] = None,
    format: Format = None,
    system_prompt: Annotated[
        Literal["leave-out", "facts"],
        typer.Option(
            help="What becomes of the system prompts of chat logs in --queries. facts: the system"
            " is told what the assistant of the log was told."
        ),
    ] = "leave-out",
    largest_record: LargestRecord = USUAL,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the probe that is there.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask a chatbot the same things in other words, and keep its answers.

    Every exchange is kept at once: a probe that was interrupted goes on with the same command, and
    what failed is asked again. Then: dialeval score DIR -m diversity -m consistency -o RUN, and
    dialeval show RUN.

    A cmd: gets a line {"messages": [{"role": "user", "content": "Hi!"}]} on its standard input for
    each question, and answers with one line {"reply": "Hello!"}; all else it writes to standard
    error. A replay: file has lines {"messages": [...], "reply": "..."}. More in docs/probing.md,
    section Systems.
    """
    from dialeval.augment.queries import read_queries
    from dialeval.cli.probe_screen import asking_bar, show_summary
    from dialeval.cli.terminal import say
    from dialeval.probe import probe as ask
    from dialeval.systems import Asking, open_system

    wanted = list(
        read_queries(
            *queries,
            format=format,
            system_prompt=system_prompt,
            largest_record=largest_record,
            limit=limit,
        )
    )
    asking = Asking(concurrency, timeout, retries, rate, key_env, seed or 0, largest_record)
    opened = open_system(system, parse_pairs(set, "--set"), asking)
    try:
        with asking_bar(quiet=quiet or as_json) as watch:
            summary = ask(
                opened,
                wanted,
                out,
                protocol=protocol,
                paraphrases=paraphrases,
                augment=augment,
                seed=seed,
                name=name,
                overwrite=overwrite,
                watch=watch,
            )
    except KeyboardInterrupt:
        say(f"\nStopped. {out} keeps what was answered: the same command goes on.", stderr=True)
        raise typer.Exit(130) from None
    finally:
        opened.close()
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
        typer.Argument(
            help="A run of `dialeval score PROBE -m diversity -m consistency -o RUN`; or a probe"
            " that was not scored.",
            show_default=False,
        ),
    ],
    top: Annotated[int, typer.Option(min=1, help="Show only so many queries.")] = 10,
    order: Annotated[
        Literal["worst", "diversity", "consistency", "file"],
        typer.Option(
            "--order",
            help="worst: contradictions first, then the answers that vary least. diversity,"
            " consistency: lowest first. file: as they were asked. How much answers vary is"
            " their dispersion, or else their normalised entropy.",
        ),
    ] = "worst",
    full: Annotated[
        bool, typer.Option("--full", help="Show long answers whole, not their beginning.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a probe query by query: wordings, answers, what contradicts what. Worst first."""
    from dialeval.cli.probe_screen import show_queries
    from dialeval.probe.report import probe_report

    queries = probe_report(run, order)
    if as_json:
        records = [query.to_record() for query in queries[:top]]
        typer.echo(json.dumps({"queries": len(queries), "shown": records}, indent=2))
    else:
        show_queries(queries, top, full)
