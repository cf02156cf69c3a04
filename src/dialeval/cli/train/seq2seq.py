"""`dialeval train seq2seq` and `dialeval train generator`: models that say the next turn."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.cli.arguments import Format, Json, Quiet
from dialeval.cli.train.recipe import Corpus, Licence, Out, Seed, show_result, teller, this_command

if TYPE_CHECKING:
    from dialeval.training.train_seq2seq import Plan


class Preset(StrEnum):
    small = "small"
    paper = "paper"


PresetOption = Annotated[
    Preset,
    typer.Option(
        "--preset", help="small: minutes on a laptop. paper: the published sizes, hours to days."
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option(min=1, help="Passes over the data, instead of the preset's.", show_default=False),
]
Pairs = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Learn from so many turns and what was said before each; all if left out.",
        show_default=False,
    ),
]
Units = Annotated[
    int | None,
    typer.Option(min=8, help="Width of the network, instead of the preset's.", show_default=False),
]
Vocabulary = Annotated[
    int | None,
    typer.Option(
        min=300, help="Most tokens in the vocabulary, instead of the preset's.", show_default=False
    ),
]
EvaluateOn = Annotated[
    int, typer.Option(min=1, help="Dialogues of validation and of test to measure on.")
]


def seq2seq(
    data: Corpus,
    out: Out,
    preset: PresetOption = Preset.small,
    epochs: Epochs = None,
    pairs: Pairs = None,
    units: Units = None,
    vocabulary: Vocabulary = None,
    evaluate_on: EvaluateOn = 200,
    seed: Seed = 0,
    licence: Licence = None,
    format: Format = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the chatbot that the papers tested: an LSTM with attention that answers.

    Probe it as hf:DIR, with --set method=sample and --set top_k=1, 10 or 100 for answers that are
    ever less alike. A training that was interrupted goes on where it stopped if the same command is
    given again.
    """
    from dialeval.training.train_seq2seq import LSTM_PAPER, LSTM_SMALL, changed

    plan = LSTM_PAPER if preset is Preset.paper else LSTM_SMALL
    plan = changed(plan, epochs=epochs, pairs=pairs, units=units, vocabulary=vocabulary, seed=seed)
    use = (
        f"dialeval probe hf:{shlex.quote(str(out))} --queries FILE -o PROBE"
        " --set method=sample --set top_k=10"
    )
    _train(plan, data, out, use, evaluate_on, licence, format, as_json, quiet)


def generator(
    data: Corpus,
    out: Out,
    preset: PresetOption = Preset.small,
    epochs: Epochs = None,
    pairs: Pairs = None,
    units: Units = None,
    vocabulary: Vocabulary = None,
    evaluate_on: EvaluateOn = 200,
    seed: Seed = 0,
    licence: Licence = None,
    format: Format = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a Transformer that proposes other queries: the generator of HolisticEval's CTG.

    The result is named in an augmenter: --with ctg:model=DIR. A training that was interrupted goes
    on where it stopped if the same command is given again.
    """
    from dialeval.training.train_seq2seq import TRANSFORMER_PAPER, TRANSFORMER_SMALL, changed

    plan = TRANSFORMER_PAPER if preset is Preset.paper else TRANSFORMER_SMALL
    plan = changed(plan, epochs=epochs, pairs=pairs, units=units, vocabulary=vocabulary, seed=seed)
    use = f"dialeval augment FILE --with ctg:model={shlex.quote(str(out))}"
    _train(plan, data, out, use, evaluate_on, licence, format, as_json, quiet)


def _train(
    plan: Plan,
    data: Path,
    out: Path,
    use: str,
    evaluate_on: int,
    licence: str | None,
    format: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    from dialeval.cli.terminal import training_bar
    from dialeval.training.train_seq2seq import train_seq2seq

    silent = quiet or as_json
    with training_bar(quiet=silent) as report:
        card = train_seq2seq(
            data,
            out,
            plan,
            licence=licence,
            command=this_command(),
            evaluate_on=evaluate_on,
            format=format,
            say=teller(quiet=silent),
            report=report,
        )
    show_result(card, out, use, as_json=as_json, quiet=quiet)
