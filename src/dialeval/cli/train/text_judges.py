"""`dialeval train mme-fluency`, `mme-relevance`, `mme-engagement`: judges that read text."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialeval.cli.arguments import Json, Quiet
from dialeval.cli.train.recipe import (
    Corpora,
    Epochs,
    HeldOut,
    Licence,
    Out,
    Patience,
    Seed,
    show_result,
    teller,
    this_command,
)
from dialeval.errors import UsageError

if TYPE_CHECKING:
    from dialeval.models.text_judge import TextJudgeConfig, TwinJudgeConfig
    from dialeval.training.train_text_judge import Lesson

Backbone = Annotated[
    str,
    typer.Option(
        help="The encoder to start from. The paper's: princeton-nlp/sup-simcse-bert-base-uncased."
    ),
]
Full = Annotated[
    bool, typer.Option("--full", help="Train all weights, as the paper does, not an adapter.")
]
Rank = Annotated[
    int | None, typer.Option(min=1, help="Rank of the low-rank adapter; 8 if left out.")
]
PerEpoch = Annotated[
    int | None,
    typer.Option(min=20, help="Examples per epoch, drawn by lot.", show_default=False),
]
Batch = Annotated[int, typer.Option(min=1, help="Examples per step.")]
LearningRate = Annotated[
    float | None,
    typer.Option(min=0.0, help="Highest learning rate; 1e-3 if left out, 1e-5 with --full."),
]
ResponseTokens = Annotated[int, typer.Option(min=4, help="Tokens of a response that are read.")]
ContextTokens = Annotated[int, typer.Option(min=4, help="Tokens of the turns that are read.")]


class Way(StrEnum):
    twin = "twin"
    pair = "pair"


class Negatives(StrEnum):
    middle = "middle"
    random = "random"
    weighted = "weighted"
    bm25 = "bm25"


def mme_fluency(
    data: Corpora,
    out: Out,
    backbone: Backbone = "minilm-l6",
    full: Full = False,
    rank: Rank = None,
    epochs: Epochs = 3,
    patience: Patience = 2,
    examples: PerEpoch = None,
    held_out: HeldOut = 2000,
    batch: Batch = 32,
    learning_rate: LearningRate = None,
    response_tokens: ResponseTokens = 50,
    seed: Seed = 0,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach an encoder which responses are fluent: words shuffled, dropped, repeated are not.

    The result is named in a metric: -m mme-fluency:model=DIR. A training that was interrupted goes
    on where it stopped if the same command is given again.
    """
    from dialeval.models.text_judge import TextJudgeConfig
    from dialeval.training.mme_fluency import fluency_lesson
    from dialeval.training.workplace import refuse_finished

    refuse_finished(out)
    chosen = _rank(full, rank)
    config = TextJudgeConfig(
        "mme-fluency",
        backbone,
        "response",
        "max",
        context_tokens=0,
        response_tokens=response_tokens,
        rank=chosen,
        alpha=2.0 * chosen,
    )
    lesson = fluency_lesson(data, examples=examples, held_out=held_out, seed=seed, licence=licence)
    _train(lesson, config, out, epochs, patience, learning_rate, batch, seed, as_json, quiet)


def mme_relevance(
    data: Corpora,
    out: Out,
    backbone: Backbone = "minilm-l6",
    full: Full = False,
    rank: Rank = None,
    way: Annotated[
        Way,
        typer.Option(
            help="pair: turns and response are read together, as in the paper. twin: apart, and a"
            " response is wrong for all other turns of its batch."
        ),
    ] = Way.twin,
    negatives: Annotated[
        Negatives | None,
        typer.Option(
            help="With --way pair, which wrong responses; middle, the paper's, if left out.",
            show_default=False,
        ),
    ] = None,
    vectors: Annotated[
        str, typer.Option(help="Word vectors by which responses are similar.")
    ] = "glove-50d",
    epochs: Epochs = 3,
    patience: Patience = 2,
    examples: PerEpoch = None,
    held_out: HeldOut = 2000,
    batch: Batch = 32,
    learning_rate: LearningRate = None,
    context_tokens: ContextTokens = 100,
    response_tokens: ResponseTokens = 50,
    seed: Seed = 0,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach an encoder which response was given to these turns, and which to others.

    The result is named in a metric: -m mme-relevance:model=DIR. Dialogues that a rated data set on
    this machine shares are not learned from. A training that was interrupted goes on where it
    stopped if the same command is given again.
    """
    from dialeval.models.text_judge import TextJudgeConfig, TwinJudgeConfig
    from dialeval.training.mme_relevance import relevance_lesson
    from dialeval.training.workplace import refuse_finished

    refuse_finished(out)
    if negatives and way == Way.twin:
        raise UsageError("--negatives are drawn with --way pair; twin takes those of its batch")
    chosen = _rank(full, rank)
    read: dict[str, Any] = {
        "context_tokens": context_tokens,
        "response_tokens": response_tokens,
        "rank": chosen,
        "alpha": 2.0 * chosen,
    }
    config = (
        TextJudgeConfig("mme-relevance", backbone, "pair", "max", **read)
        if way == Way.pair
        else TwinJudgeConfig("mme-relevance", backbone, **read)
    )
    lesson = relevance_lesson(
        data,
        examples=examples,
        held_out=held_out,
        seed=seed,
        licence=licence,
        vectors=vectors,
        negatives="batch" if way == Way.twin else (negatives or Negatives.middle).value,
    )
    _train(lesson, config, out, epochs, patience, learning_rate, batch, seed, as_json, quiet)


def mme_engagement(
    data: Annotated[
        list[Path],
        typer.Option(
            help="Rated conversations: topical-chat, convai2-human, engage, or a file of ConvAI"
            " 2017. Repeat.",
            show_default=False,
        ),
    ],
    out: Out,
    backbone: Backbone = "minilm-l6",
    full: Full = False,
    rank: Rank = None,
    epochs: Epochs = 2,
    patience: Patience = 2,
    per_source: Annotated[
        int, typer.Option(min=1, help="Largest number of pairs of each source in an epoch.")
    ] = 1000,
    batch: Batch = 32,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0.0, help="Highest learning rate; 3e-4 if left out, 1e-5 with --full."),
    ] = None,
    response_tokens: ResponseTokens = 50,
    seed: Seed = 0,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach an encoder which responses are engaging, from what people said about conversations.

    It learns the order of two responses of one source that are equally long, so that neither the
    source nor the length can be learned.

    The result is named in a metric: -m mme-engagement:model=DIR. Responses that a rated data set on
    this machine holds are not learned from. A training that was interrupted goes on where it
    stopped if the same command is given again.
    """
    from dialeval.models.text_judge import TextJudgeConfig
    from dialeval.training.mme_engagement import engagement_lesson
    from dialeval.training.workplace import refuse_finished

    refuse_finished(out)
    chosen = _rank(full, rank)
    config = TextJudgeConfig(
        "mme-engagement",
        backbone,
        "response",
        "mean",
        context_tokens=0,
        response_tokens=response_tokens,
        hidden=(64,),
        rank=chosen,
        alpha=2.0 * chosen,
    )
    lesson = engagement_lesson(data, per_source=per_source, seed=seed, licence=licence)
    if learning_rate is None and not full:
        learning_rate = 3e-4
    _train(lesson, config, out, epochs, patience, learning_rate, batch, seed, as_json, quiet)


def _rank(full: bool, rank: int | None) -> int:
    if full and rank:
        raise UsageError("--full trains all weights: there is no adapter to give a --rank")
    return 0 if full else rank or 8


def _train(
    lesson: Lesson,
    config: TextJudgeConfig | TwinJudgeConfig,
    out: Path,
    epochs: int,
    patience: int,
    learning_rate: float | None,
    batch: int,
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    from dialeval.cli.terminal import training_bar
    from dialeval.training.loop import Settings
    from dialeval.training.train_text_judge import train_text_judge

    tell = teller(quiet=quiet or as_json)
    for name, value in lesson.data.items():
        if name != "sha256":
            tell(f"{name}: {value}")
    usual = 1e-3 if config.rank else 1e-5
    with training_bar(quiet=quiet or as_json) as report:
        card = train_text_judge(
            lesson,
            out,
            config=config,
            settings=Settings(
                epochs=epochs,
                learning_rate=usual if learning_rate is None else learning_rate,
                patience=patience,
                seed=seed,
            ),
            batch=batch,
            command=this_command(),
            report=report,
        )
    use = f"dialeval score FILE -m {config.metric}:model={out}"
    show_result(card, out, use, as_json=as_json, quiet=quiet)
