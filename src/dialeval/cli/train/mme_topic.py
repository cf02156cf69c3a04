"""`dialeval train mme-topic`: a graph network learns which topics follow which."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
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


class Negatives(StrEnum):
    mixed = "mixed"
    random = "random"
    hard = "hard"


class Edges(StrEnum):
    hops = "hops"
    idf = "idf"


def mme_topic(
    data: Corpora,
    out: Out,
    vectors: Annotated[str, typer.Option(help="The word vectors, which stay as they are.")] = (
        "glove-50d"
    ),
    tagger: Annotated[
        str,
        typer.Option(
            help="What tells nouns, verbs and adjectives: lexicon (WordNet, nothing to fetch), or a"
            " spaCy pipeline such as spacy-en-sm."
        ),
    ] = "lexicon",
    graph: Annotated[
        Path | None,
        typer.Option(
            help="Another graph of concepts, made by scripts/build_conceptnet.py.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        Loss, typer.Option(help="cross-entropy: right or wrong. margin: GRADE's.")
    ] = Loss.margin,
    negatives: Annotated[
        Negatives,
        typer.Option(help="Wrong responses: random, hard (like the right one), or half each."),
    ] = Negatives.mixed,
    layers: Annotated[int, typer.Option(min=1, help="Layers of the network.")] = 3,
    heads: Annotated[int, typer.Option(min=1, help="Heads of each layer.")] = 4,
    units: Annotated[int, typer.Option(min=1, help="Width of a layer, all heads together.")] = 64,
    turns: Annotated[int, typer.Option(min=1, help="Turns of the context that are read.")] = 2,
    hops: Annotated[
        int,
        typer.Option(min=1, help="Hops in ConceptNet beyond which two words are not joined."),
    ] = 4,
    edges: Annotated[
        Edges,
        typer.Option(
            help="What an edge weighs. hops: 1 / (1 + hops). idf: that times the lower idf of its"
            " two words."
        ),
    ] = Edges.hops,
    epochs: Epochs = 6,
    patience: Patience = 3,
    pairs: Annotated[
        int | None,
        typer.Option(min=20, help="Learn from at most this many pairs.", show_default=False),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Pairs per step.")] = 64,
    learning_rate: Annotated[float, typer.Option(min=0.0, help="Highest learning rate.")] = 2e-3,
    dropout: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of units left out while learning.")
    ] = 0.1,
    seed: Seed = 0,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach the topic graph of MME-CRS which topics follow which.

    The result is named in a metric: -m mme-topic:model=DIR. Dialogues that a rated data set on this
    machine shares are not learned from. A training that was interrupted goes on where it stopped if
    the same command is given again.
    """
    from dialeval.cli.terminal import training_bar
    from dialeval.training.learners.topic_graph import TopicGraphOptions
    from dialeval.training.settings import Settings
    from dialeval.training.train_topic import train_topic

    with training_bar(quiet=quiet or as_json) as report:
        card = train_topic(
            data,
            out,
            vectors=vectors,
            settings=Settings(
                epochs=epochs, learning_rate=learning_rate, patience=patience, seed=seed
            ),
            options=TopicGraphOptions(loss.value, negatives.value, dropout, batch),
            units=units,
            heads=heads,
            layers=layers,
            turns=turns,
            tagger=tagger,
            furthest=hops,
            edges=edges.value,
            graph=graph,
            pairs=pairs,
            licence=licence,
            command=this_command(),
            say=teller(quiet=quiet or as_json),
            report=report,
        )
    use = f"dialeval score FILE -m mme-topic:model={out}"
    show_result(card, out, use, as_json=as_json, quiet=quiet)
