"""`dialeval train bert-ruber`: the scorer of PONE with random negatives, and nothing else."""

from __future__ import annotations

from dialeval.cli.arguments import Json, Quiet
from dialeval.cli.train.pone import (
    Context,
    Encoder,
    MatrixStart,
    Pairs,
    Seeds,
    run_training,
)
from dialeval.cli.train.recipe import (
    Corpora,
    Epochs,
    Licence,
    Out,
    Patience,
    Seed,
    show_result,
)


def bert_ruber(
    data: Corpora,
    out: Out,
    model: Encoder = "minilm-l6",
    context: Context = "weighted",
    pairs: Pairs = 45_000,
    matrix: MatrixStart = "identity",
    epochs: Epochs = 100,
    patience: Patience = 10,
    seed: Seed = 0,
    seeds: Seeds = 1,
    licence: Licence = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Teach BERT-RUBER which responses fit a query, against random ones.

    The vectors of a corpus are computed once and kept in the cache. The result is named in a
    metric: -m bert-ruber:model=DIR. A training that was interrupted goes on where it stopped if the
    same command is given again.
    """
    from dialeval.training.fit_pair_scorer import PairScorerOptions

    options = PairScorerOptions(
        encoder=model, context=context, pairs=pairs or None, matrix=matrix
    ).as_bert_ruber()
    card = run_training(
        data, out, options, epochs, patience, seed, seeds, None, licence, quiet or as_json
    )
    use = f"dialeval score FILE -m bert-ruber:model={out}"
    show_result(card, out, use, as_json=as_json, quiet=quiet)
