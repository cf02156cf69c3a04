"""`dialeval train lm`: a language model learns how dialogues go on."""

from __future__ import annotations

from typing import Annotated

import typer

from dialeval.cli.arguments import Format, Json, Quiet
from dialeval.cli.train.recipe import (
    Corpus,
    Epochs,
    Licence,
    Out,
    Seed,
    show_result,
    teller,
    this_command,
)


def lm(
    data: Corpus,
    out: Out,
    model: Annotated[str, typer.Option(help="The model to start from.")] = "smollm2-135m",
    epochs: Epochs = 1,
    tokens: Annotated[
        int | None,
        typer.Option(
            min=1000, help="Use at most this many tokens of the data.", show_default=False
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Train all weights instead of a LoRA adapter.")
    ] = False,
    rank: Annotated[
        int | None, typer.Option(min=1, help="Rank of the LoRA adapter; 8 if left out.")
    ] = None,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Highest learning rate.")] = 5e-4,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Tokens per step.")] = 2048,
    block: Annotated[int, typer.Option(min=8, help="Tokens of a dialogue that are read.")] = 256,
    evaluate_on: Annotated[
        int, typer.Option(min=1, help="Dialogues of validation and of test to measure on.")
    ] = 200,
    seed: Seed = 0,
    licence: Licence = None,
    format: Format = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach a language model how dialogues go on, for coherence and fluency.

    The result is named in a metric: -m coherence:model=DIR. A training that was interrupted goes
    on where it stopped if the same command is given again.
    """
    from dialeval.cli.terminal import training_bar
    from dialeval.errors import UsageError
    from dialeval.training.learners.language_model import LanguageModelOptions
    from dialeval.training.settings import Settings
    from dialeval.training.train_lm import train_language_model

    if full and rank:
        raise UsageError("--full trains all weights: there is no adapter to give a --rank")
    adapter_rank = 0 if full else rank or 8
    with training_bar(quiet=quiet or as_json) as report:
        card = train_language_model(
            data,
            out,
            base=model,
            settings=Settings(epochs=epochs, learning_rate=learning_rate, seed=seed),
            options=LanguageModelOptions(
                rank=adapter_rank,
                alpha=2 * adapter_rank,
                batch_tokens=batch_tokens,
                block=block,
                tokens=tokens,
            ),
            licence=licence,
            command=this_command(),
            evaluate_on=evaluate_on,
            format=format,
            say=teller(quiet=quiet or as_json),
            report=report,
        )
    use = f"dialeval score FILE -m coherence:model={out}"
    show_result(card, out, use, as_json=as_json, quiet=quiet)
