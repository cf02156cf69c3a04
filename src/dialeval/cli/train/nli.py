"""`dialeval train nli`: an encoder learns to see contradictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.arguments import Json, Quiet
from dialeval.cli.train.recipe import Epochs, Licence, Out, Seed, show_result, teller, this_command
from dialeval.errors import UsageError


def nli(
    data: Annotated[
        Path,
        typer.Option(
            help="A folder of public sets (MNLI, SNLI, ...), or a table with the columns premise,"
            " hypothesis and label.",
            show_default=False,
        ),
    ],
    out: Out,
    model: Annotated[str, typer.Option(help="The encoder to start from.")] = "minilm-l6",
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Only this set of the folder: mnli, snli, ... Repeat.", show_default=False
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Go on from adapters that were trained before, with their rank.",
            show_default=False,
        ),
    ] = None,
    epochs: Epochs = 3,
    pairs: Annotated[
        int | None,
        typer.Option(min=1, help="Learn from at most this many pairs.", show_default=False),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Train all weights instead of a LoRA adapter. With --rank, what they changed is"
            " kept as an adapter of this rank.",
        ),
    ] = False,
    rank: Annotated[
        int | None,
        typer.Option(min=1, help="Rank of the LoRA adapter; 32 if left out.", show_default=False),
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0.0, help="Highest learning rate; 1e-3 if left out, 1e-4 with --full."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Pairs per step.")] = 32,
    length: Annotated[int, typer.Option(min=8, help="Tokens of a pair that are read.")] = 96,
    evaluate_on: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Pairs of validation and of each test set to measure on; all if left out.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach an encoder which sentences contradict each other, for consistency.

    The result is named in a metric: -m consistency:model=DIR. A training that was interrupted goes
    on where it stopped if the same command is given again.
    """
    from dialeval.cli.terminal import training_bar
    from dialeval.training.learners.inference import InferenceModelOptions
    from dialeval.training.settings import Settings
    from dialeval.training.train_nli import train_inference_model

    if start and rank:
        raise UsageError("--from goes on with the rank of the adapters: leave --rank out")
    adapter_rank = 0 if full else rank or 32
    usual = 1e-4 if full else 1e-3
    with training_bar(quiet=quiet or as_json) as report:
        card = train_inference_model(
            data,
            out,
            base=model,
            settings=Settings(
                epochs=epochs,
                learning_rate=usual if learning_rate is None else learning_rate,
                seed=seed,
            ),
            options=InferenceModelOptions(
                rank=adapter_rank, alpha=2 * adapter_rank, batch=batch, length=length, pairs=pairs
            ),
            sources=sources or (),
            start=start,
            keep_rank=(rank or 0) if full else 0,
            evaluate_on=evaluate_on,
            licence=licence,
            command=this_command(),
            say=teller(quiet=quiet or as_json),
            report=report,
        )
    use = f"dialeval score FILE -m consistency:model={out}"
    show_result(card, out, use, as_json=as_json, quiet=quiet)
