"""From a corpus and word vectors to a directory that `-m ruber:model=` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from dialeval.errors import UsageError
from dialeval.model_store.locate import locate, ready
from dialeval.model_store.scorer_directory import save_scorer
from dialeval.models.ruber import RuberConfig, RuberNetwork
from dialeval.models.source import Models
from dialeval.models.word_vectors import WordVectorTable, load
from dialeval.training.card import Card, licence_of
from dialeval.training.examples.pair_corpus import load_pairs
from dialeval.training.learners.ruber import RuberOptions, RuberRecipe, WordNumbers, measures
from dialeval.training.loop import Report, forget_checkpoint, train
from dialeval.training.run import exclusive, refuse_finished
from dialeval.training.settings import Settings

WHOLE = 10_000
"""Words of an utterance that are kept of the corpus; the network reads far fewer."""


def train_ruber(
    data: Sequence[Path],
    out: Path,
    *,
    vectors: str,
    settings: Settings,
    options: RuberOptions,
    units: int,
    words: int,
    pairs: int | None = None,
    licence: str | None = None,
    command: str = "",
    say: Callable[[str], None] = lambda line: None,
    report: Report = lambda state, steps: None,
) -> Card:
    """Trains, saves and measures; continues where an earlier call into `out` was killed."""
    refuse_finished(out)
    table = load_table(vectors)
    corpus = load_pairs(data, "last", words=WHOLE, most=pairs)
    say(f"{corpus.name}: {len(corpus.train):,} pairs to learn from")
    config = RuberConfig(vectors, table.vectors.shape[1], units, units, words)
    with exclusive(out):
        network = _fresh(config, settings.seed)
        numbers = WordNumbers(corpus.texts, table, words)
        unknown, read = numbers.without_vector()
        if 2 * unknown > read:
            say(
                f"warning: {vectors} has no vector for {unknown:,} of {read:,} words: little can be"
                " learned. If it is another language, name word vectors of it with --model."
            )
        recipe = RuberRecipe(
            network, numbers, corpus.train, corpus.validation, options, settings.seed
        )
        identity = {
            "data": corpus.digest(),
            "vectors": Models().fingerprint(vectors),
            "config": config.to_record(),
            "options": asdict(options),
        }
        state = train(recipe, settings, out, identity, report)
        network.half().float()  # what is measured is what is saved
        save_scorer(out, config.to_record(), network)
        card = Card(
            name=out.name,
            summary=(
                "RUBER's unreferenced scorer: two GRUs and a bilinear match over word vectors"
                f" ({vectors}), trained to tell the response that was given from a random one."
            ),
            command=command,
            seed=settings.seed,
            base=vectors,
            licence=licence or licence_of(data),
            data={
                "corpus": corpus.name,
                "sha256": corpus.digest(),
                "pairs to learn from": len(corpus.train),
                "pairs for validation": len(corpus.validation),
                "pairs for test": len(corpus.test),
                "words without a vector": f"{unknown:,} of {read:,}",
                **corpus.left_out.facts(),
            },
            settings=asdict(settings) | asdict(options) | asdict(config),
            scores={
                **measures(recipe.score(corpus.validation), "validation"),
                **measures(recipe.score(corpus.test), "test"),
            },
            curve=state.curve,
        )
        card.write(out)
        forget_checkpoint(out)
    return card


def load_table(vectors: str, recipe: str = "ruber") -> WordVectorTable:
    found = locate(vectors)
    if found.role != "word-vectors":
        raise UsageError(
            f"model {vectors!r} has the role {found.role}: `train {recipe}` takes word vectors."
            " See: dialeval models"
        )
    return load(ready(found))


def _fresh(config: RuberConfig, seed: int) -> RuberNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return config.network()
