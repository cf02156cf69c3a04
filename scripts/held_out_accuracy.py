"""How well do trained pair scorers tell right from wrong on the held-out pairs of each corpus?

    DIALEVAL_DATA=DIR python scripts/held_out_accuracy.py SCORER [SCORER ...]
        [--data dailydialog --data empathetic ...] [--split validation|test]

SCORER is a directory of `dialeval train bert-ruber` or `train pone`, or the name of a shipped one.
Each true response counts half, and a random one of the same corpus the other half. A head that
learned from several corpora and one that learned from a single corpus are compared on the same
pairs in this way.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from dialeval.cli.terminal import counting_bar, print_table
from dialeval.model_store.locate import locate
from dialeval.training.examples.pair_corpus import PairCorpus, load_pairs
from dialeval.training.examples.pair_vectors import embed, pair_vectors, random_negatives
from dialeval.training.learners.pair_scorer import accuracy
from dialeval.training.recipes.ruber import load_scorer

CORPORA = ("dailydialog", "empathetic", "personachat", "topical-chat")


def accuracies(scorer: str, data: Sequence[Path], split: str) -> list[float]:
    """Per corpus."""
    config, network = load_scorer(locate(scorer).directory)
    rule, words = config.context, config.truncate_words
    whole = load_pairs(data, rule, words=words)
    with counting_bar("vectors") as progress:
        vectors = embed(whole.texts, config.encoder, pooling=config.pooling, progress=progress)
    found = []
    for path in data:
        part = _held_out(whole, load_pairs([path], rule, words=words), split)
        pairs = pair_vectors(getattr(part, split), vectors, rule)
        wrong = random_negatives(part, split)  # type: ignore[arg-type]
        found.append(accuracy(network.eval(), pairs, wrong))
    return found


def _held_out(whole: PairCorpus, one: PairCorpus, split: str) -> PairCorpus:
    """`whole` with only those held-out pairs that are of this corpus."""

    def spoken(corpus: PairCorpus) -> dict[tuple[str, ...], int]:
        rows = getattr(corpus, split)
        return {
            tuple(corpus.texts[n] for n in (*pair.context, pair.response)): row
            for row, pair in enumerate(rows)
        }

    own = spoken(one)
    rows = getattr(whole, split)
    kept = tuple(rows[row] for texts, row in spoken(whole).items() if texts in own)
    return replace(whole, **{split: kept})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scorers", nargs="+")
    parser.add_argument("--data", action="append", type=Path)
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    given = parser.parse_args()
    data = given.data or [Path(name) for name in CORPORA]
    rows = []
    for scorer in given.scorers:
        found = accuracies(scorer, data, given.split)
        rows.append([scorer, *(f"{value:.3f}" for value in found), f"{fmean(found):.3f}"])
    header = ["scorer", *map(str, data), "mean"]
    print_table(header, rows, right=range(1, len(header)))


if __name__ == "__main__":
    main()
