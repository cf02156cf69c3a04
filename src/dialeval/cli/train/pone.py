"""`dialeval train pone`: a scorer learns which responses fit, from a corpus of dialogues."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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

if TYPE_CHECKING:
    from dialeval.training.card import Card
    from dialeval.training.fit_pair_scorer import PairScorerOptions

Encoder = Annotated[str, typer.Option("--model", help="The frozen encoder that reads the texts.")]
Context = Annotated[
    Literal["last", "sum", "weighted"],
    typer.Option(
        help="What the query is. last: the turn before the response. sum: the vectors of all turns"
        " before it, added up. weighted: their mean, each counting half as much as the one after.",
    ),
]
Pairs = Annotated[
    int, typer.Option(min=0, help="Learn from at most this many pairs, drawn by lot; 0: from all.")
]
MatrixStart = Annotated[
    Literal["identity", "uniform"],
    typer.Option(
        help="The matrix of the scorer before training. uniform: random numbers between 0 and 1, as"
        " in the released code."
    ),
]
Seeds = Annotated[
    int,
    typer.Option(min=1, help="Train with this many seeds and keep the best on held-out pairs."),
]
Beside = Annotated[
    Path | None,
    typer.Option(
        help="Another trained scorer, such as BERT-RUBER, to draw in boundary.svg for comparison.",
        show_default=False,
    ),
]


def pone(
    data: Corpora,
    out: Out,
    model: Encoder = "minilm-l6",
    context: Context = "weighted",
    pairs: Pairs = 45_000,
    sampler: Annotated[
        Literal["weighted", "random", "middle", "bm25"],
        typer.Option(
            help="Where wrong responses come from. weighted: near the true one (PONE). middle: the"
            " middle of ten by similarity (MME-CRS). bm25: words in common with the true one."
        ),
    ] = "weighted",
    candidates: Annotated[
        int, typer.Option("--candidates", min=1, help="weighted: h, how many are drawn.")
    ] = 200,
    temperature: Annotated[
        float,
        typer.Option("--temperature", min=0.001, help="weighted: t of softmax(cosine / t)."),
    ] = 0.05,
    random_every: Annotated[
        int,
        typer.Option(
            min=0, help="Draw random wrong responses in every N-th epoch, as released; 0: never."
        ),
    ] = 2,
    edit_negatives: Annotated[
        bool,
        typer.Option(help="Edit wrong responses as often as right ones."),
    ] = True,
    positives: Annotated[
        str,
        typer.Option(
            help="More right responses: eda (changed words), ctg (beams of a generator, slow; also"
            " ctg:model=DIR) or none."
        ),
    ] = "eda",
    variants: Annotated[
        int, typer.Option("--variants", min=1, help="k, how many per response.")
    ] = 5,
    filter: Annotated[
        Literal["paper", "released", "none"],
        typer.Option(
            help="Labels of these. paper: the scorer labels all of them until no label changes."
            " released: on a schedule, with dropout active and tiny steps. none: all are right."
        ),
    ] = "paper",
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.5,
            help="Keep labels whose score is nearer to 0 or 1 than this; 0.5 keeps all. Default:"
            " 0.5 with --filter paper, 0.05 with --filter released.",
            show_default=False,
        ),
    ] = None,
    doubtful: Annotated[
        Literal["drop", "change"],
        typer.Option(
            help="Variants whose label is not kept. drop: not learned from. change: right after"
            " all, as the released code can have it."
        ),
    ] = "drop",
    rounds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop the label filter after this many rounds. Default: 100, and 75 epochs of"
            " them with --filter released.",
            show_default=False,
        ),
    ] = None,
    matrix: MatrixStart = "identity",
    epochs: Epochs = 100,
    patience: Patience = 10,
    seed: Seed = 0,
    seeds: Seeds = 1,
    beside: Beside = None,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach PONE which responses fit a query: valuable negatives, augmented positives, filtered
    labels.

    The vectors of a corpus are computed once and kept in the cache. The result is named in a
    metric: -m pone:model=DIR. A training that was interrupted goes on where it stopped if the same
    command is given again.
    """
    from dialeval.training.examples.negatives import SamplerOptions
    from dialeval.training.fit_pair_scorer import PairScorerOptions
    from dialeval.training.learners.label_filter import FilterOptions, released_filter

    filtering = (
        released_filter(positives, threshold, rounds, doubtful)
        if filter == "released"
        else FilterOptions(
            filter, 0.5 if threshold is None else threshold, doubtful, rounds=rounds or 100
        )
    )
    options = PairScorerOptions(
        metric="pone",
        encoder=model,
        context=context,
        pairs=pairs or None,
        sampler=SamplerOptions(sampler, candidates, temperature),
        random_every=random_every,
        edit_negatives=edit_negatives,
        positives=positives,
        variants=variants,
        filter=filtering,
        matrix=matrix,
    )
    card = run_training(
        data, out, options, epochs, patience, seed, seeds, beside, licence, quiet or as_json
    )
    use = f"dialeval score FILE -m pone:model={out}"
    show_result(card, out, use, as_json=as_json, quiet=quiet)


def run_training(
    data: list[Path],
    out: Path,
    options: PairScorerOptions,
    epochs: int,
    patience: int,
    seed: int,
    seeds: int,
    beside: Path | None,
    licence: str | None,
    quiet: bool,
) -> Card:
    from dialeval.cli.terminal import counting_bar, training_bar
    from dialeval.training.train_pair_scorer import scorer_settings, train_pair_scorer

    return train_pair_scorer(
        data,
        out,
        options=options,
        settings=scorer_settings(epochs, patience, seed),
        seeds=seeds,
        beside=beside,
        licence=licence,
        command=this_command(),
        say=teller(quiet=quiet),
        vectors_bar=lambda: counting_bar("vectors", quiet=quiet),
        training_bar=lambda: training_bar(quiet=quiet),
    )
