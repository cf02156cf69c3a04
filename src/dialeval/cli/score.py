"""`dialeval score FILE... -m METRIC... [-o RUN]`: score dialogues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.arguments import (
    Columns,
    Concurrency,
    EstimateOnly,
    Files,
    Format,
    Json,
    KeyEnv,
    LargestRecord,
    Limit,
    MaxRequests,
    MaxTokens,
    PriceIn,
    PriceOut,
    Quiet,
    RatingColumns,
    Scales,
    Seed,
    SkipBad,
    SystemPrompt,
    Verbose,
    load_samples,
    option,
    servers_of,
    show_estimate,
    show_spent,
)
from dialeval.errors import UsageError
from dialeval.limits import USUAL

if TYPE_CHECKING:
    from dialeval.metric import Metric
    from dialeval.runs.run import Run


def score(
    files: Files,
    metric: Annotated[
        list[str] | None,
        option(
            "--metric",
            "-m",
            help="Score with this metric, with options after a colon: bleu:n=2 (see: dialeval"
            " metrics); or with a class in a file: ./my_metric.py:EchoRate. Repeat for several."
            " Default: judge.",
        ),
    ] = None,
    out: Annotated[
        Path | None, option("--out", "-o", help="Store the run in this directory, or at this URL.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing run.")
    ] = False,
    add: Annotated[
        list[str] | None,
        option(
            metavar="METRIC",
            help="Add this metric to a finished run, and score nothing again. Name the run in place"
            " of the files. Repeat for several.",
        ),
    ] = None,
    calibration: Annotated[
        Path | None,
        option(help="Use the scales of this earlier run, so that you can compare the scores."),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            help="Choose the models. default: the embedded ones. paper: those of the papers (see:"
            " dialeval models); if one is not public, print how to train it."
        ),
    ] = "default",
    parts: Annotated[
        bool, typer.Option("--parts", help="Show the parts of each metric, such as bleu-1.")
    ] = False,
    on: Annotated[
        str,
        typer.Option(
            metavar="[local|ray]",
            help="Choose where to score. local: in this process. ray: on several workers, on this"
            " machine or on a cluster. The run is the same.",
        ),
    ] = "local",
    ray_address: Annotated[
        str,
        option(
            help="Use this cluster for --on ray: HOST:PORT or auto. Default: $RAY_ADDRESS, else"
            " a new cluster on this machine."
        ),
    ] = "",
    workers: Annotated[
        int | None,
        option(
            min=1,
            help="Use this many workers for --on ray. Default: one for each GPU or core of the"
            " cluster.",
        ),
    ] = None,
    estimate: EstimateOnly = False,
    max_requests: MaxRequests = None,
    max_tokens: MaxTokens = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    concurrency: Concurrency = None,
    key_env: KeyEnv = None,
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
    verbose: Verbose = False,
) -> None:
    """Score dialogues with one or more metrics.

    Every answer of the assistant gets a score from every metric. The command prints a table with
    the mean scores of each system. -o stores the run; repeat the command to resume an interrupted
    run.
    """
    import dialeval
    from dialeval.cli.imports import leave_out_pandas, put_off_meta_kernels
    from dialeval.cli.show import show_warnings
    from dialeval.cli.terminal import progress_bar, say, share_done
    from dialeval.registry import DEFAULT_METRICS, make_metrics
    from dialeval.runs.table import count

    leave_out_pandas()
    if all(_is_built_in(one) for one in add or metric or DEFAULT_METRICS):
        put_off_meta_kernels()
    calibrations = dialeval.open_run(calibration).calibrations if calibration else None
    asked = (max_requests, max_tokens, price_in, price_out, concurrency, key_env)
    servers = servers_of(*asked)
    if any(one is not None for one in asked):
        _check_server_is_asked(make_metrics(add or metric or DEFAULT_METRICS, preset))
    if add:
        reading = (format, map, rating, scale, limit, seed, skip_bad, system_prompt != "leave-out")
        if metric or out or estimate or any(reading) or len(files) != 1:
            raise UsageError(
                "--add takes one finished run. Leave out -m, -o, --estimate and the options for"
                f" reading files: dialeval score --add {add[0]} RUN"
            )
        with progress_bar("scoring", quiet=quiet or as_json) as update:
            run = dialeval.add_metrics(
                files[0],
                add,
                overwrite=overwrite,
                preset=preset,
                calibrations=calibrations,
                progress=lambda done, read: update(done, None),
                on=on,
                ray_address=ray_address,
                workers=workers,
                servers=servers,
            )
        _show(run, files[0], parts, as_json, quiet)
        return
    samples = load_samples(
        files, format, map, rating, scale, limit, seed, skip_bad, system_prompt, largest_record
    )
    if estimate:
        chosen = make_metrics(metric or DEFAULT_METRICS, preset)
        show_estimate(samples, chosen, servers.budget, as_json)
        return
    with progress_bar("scoring", quiet=quiet or as_json) as update:
        run = dialeval.score(
            samples,
            metric or DEFAULT_METRICS,
            out=out,
            overwrite=overwrite,
            preset=preset,
            calibrations=calibrations,
            servers=servers,
            progress=lambda done, read: update(done, share_done(samples.fraction(), done, read)),
            on=on,
            ray_address=ray_address,
            workers=workers,
        )
    if skip_bad and not len(run):
        raise UsageError(
            f"nothing was scored: all of {count(samples.skipped, 'record')} have errors. See:"
            f" dialeval data check {' '.join(files)}"
        )
    if verbose and not quiet and not as_json:  # otherwise the notes of the table count them
        show_warnings(samples.counts, verbose)
    place = str(run.directory) if out else None
    # Without -m the parts are the sub-judgements of the judge.
    _show(run, place, parts or (not metric and not as_json), as_json, quiet)
    if out is None and not (quiet or as_json):
        say("\nThe run was not stored. Add -o runs/NAME to store it.", style="dim")


def _is_built_in(metric: str) -> bool:
    """Says whether the metric is ours. Metrics of plugins may use any part of torch."""
    from dialeval.registry import METRICS

    name = metric.strip().partition(":")[0]
    return name in METRICS.names() and not METRICS.is_plugin(name)


def _check_server_is_asked(metrics: Sequence[Metric]) -> None:
    from dialeval.models.chat_judge import is_server

    if not any(is_server(model) for metric in metrics for model in metric.models().values()):
        raise UsageError(
            "limits, prices and keys need a metric that asks a server, and none of"
            f" {', '.join(metric.label for metric in metrics)} does. Name one:"
            " -m llm-judge:model=openai:http://localhost:8000/v1#NAME"
        )


def _show(run: Run, place: str | None, parts: bool, as_json: bool, quiet: bool) -> None:
    from dialeval.cli.show import show_answers, show_score_table, show_workers
    from dialeval.cli.terminal import say

    if as_json:
        summary = {"run": place, "table": run.table(parts).to_records()}
        typer.echo(json.dumps(summary | {"manifest": run.manifest}, indent=2))
        return
    show_score_table(run.table(parts))
    if not quiet:
        last = run.history[-1] if run.history else {}
        show_answers(last.get("answers", {}))
        show_spent(last.get("servers", {}))
        show_workers(last.get("workers", {}))
        for problem in last.get("damaged", ()):
            say(f"{problem}; it was made again", stderr=True, style="yellow")
