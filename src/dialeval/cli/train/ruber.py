"""`dialeval train ruber`: a scorer on word vectors learns which response fits."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dialeval.cli.arguments import Json, Quiet
from dialeval.cli.train.recipe import (
    Corpora,
    Epochs,
    Licence,
    Out,
    Patience,
    Seed,
    show_result,
    teller,
    this_command,
)


class Loss(StrEnum):
    margin = "margin"
    cross_entropy = "cross-entropy"


def ruber(
    data: Corpora,
    out: Out,
    model: Annotated[str, typer.Option(help="The word vectors, which stay as they are.")] = (
        "glove-50d"
    ),
    loss: Annotated[
        Loss, typer.Option(help="cross-entropy: that of PONE's code. margin: the paper's.")
    ] = Loss.cross_entropy,
    epochs: Epochs = 8,
    patience: Patience = 3,
    pairs: Annotated[
        int | None,
        typer.Option(min=20, help="Learn from at most this many pairs.", show_default=False),
    ] = None,
    units: Annotated[int, typer.Option(min=1, help="Width of the network.")] = 96,
    words: Annotated[int, typer.Option(min=1, help="Words of a text that are read.")] = 40,
    batch: Annotated[int, typer.Option(min=2, help="Pairs per step.")] = 256,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Highest learning rate.")] = 2e-3,
    seed: Seed = 0,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach RUBER's scorer which response fits which query.

    The result is named in a metric: -m ruber:model=DIR. Dialogues that a rated data set on this
    machine shares are not learned from. A training that was interrupted goes on where it stopped if
    the same command is given again.
    """
    from dialeval.cli.terminal import training_bar
    from dialeval.training.learners.ruber import RuberOptions
    from dialeval.training.settings import Settings
    from dialeval.training.train_ruber import train_ruber

    with training_bar(quiet=quiet or as_json) as report:
        card = train_ruber(
            data,
            out,
            vectors=model,
            settings=Settings(
                epochs=epochs, learning_rate=learning_rate, patience=patience, seed=seed
            ),
            options=RuberOptions(loss=loss.value, batch=batch),
            units=units,
            words=words,
            pairs=pairs,
            licence=licence,
            command=this_command(),
            say=teller(quiet=quiet or as_json),
            report=report,
        )
    use = f"dialeval score FILE -m ruber:model={out}"
    show_result(card, out, use, as_json=as_json, quiet=quiet)
