"""`dialeval train mme-specificity`: an encoder learns to guess hidden words of responses."""

from __future__ import annotations

from typing import Annotated

import typer

from dialeval.cli.arguments import Json, Quiet
from dialeval.cli.train.recipe import (
    Corpora,
    Epochs,
    HeldOut,
    Licence,
    Out,
    Seed,
    show_result,
    teller,
    this_command,
)


def mme_specificity(
    data: Corpora,
    out: Out,
    backbone: Annotated[
        str, typer.Option(help="The encoder that learns to guess, by name or path.")
    ] = "minilm-l6",
    epochs: Epochs = 2,
    responses: Annotated[
        int | None,
        typer.Option(min=20, help="Learn from at most this many responses.", show_default=False),
    ] = None,
    held_out: HeldOut = 500,
    full: Annotated[
        bool, typer.Option("--full", help="Train all weights instead of a low-rank adapter.")
    ] = False,
    rank: Annotated[
        int | None, typer.Option(min=1, help="Rank of the adapter; 12 if left out.")
    ] = None,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0.0, help="Highest learning rate; 2e-3 if left out, 1e-4 with --full."),
    ] = None,
    tokens: Annotated[
        int, typer.Option(min=4, help="Word-pieces of a response that are read.")
    ] = 25,
    batch: Annotated[int, typer.Option(min=1, help="Responses per step.")] = 64,
    seed: Seed = 0,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach an encoder which words to expect in a response, for specificity.

    The result is named in a metric: -m mme-specificity:model=DIR. Dialogues that share an exchange
    with a rated data set are not learned from. A training that was interrupted goes on where it
    stopped if the same command is given again.
    """
    from dialeval.cli.terminal import counting_bar, training_bar
    from dialeval.errors import UsageError
    from dialeval.training.learners.masked_lm import MaskedLMOptions
    from dialeval.training.settings import Settings
    from dialeval.training.train_masked_lm import train_masked_lm

    if full and rank:
        raise UsageError("--full trains all weights: there is no adapter to give a --rank")
    adapter_rank = 0 if full else rank or 12
    usual = 1e-4 if full else 2e-3
    silent = quiet or as_json
    card = train_masked_lm(
        data,
        out,
        base=backbone,
        settings=Settings(
            epochs=epochs,
            learning_rate=usual if learning_rate is None else learning_rate,
            seed=seed,
        ),
        options=MaskedLMOptions(
            rank=adapter_rank,
            alpha=2.0 * adapter_rank,
            batch=batch,
            tokens=tokens,
            responses=responses,
        ),
        evaluate_on=held_out,
        licence=licence,
        command=this_command(),
        say=teller(quiet=silent),
        training_bar=lambda: training_bar(quiet=silent),
        measuring_bar=lambda what: counting_bar(what, quiet=silent),
    )
    use = f"dialeval score FILE -m mme-specificity:model={out}"
    show_result(card, out, use, as_json=as_json, quiet=quiet)
