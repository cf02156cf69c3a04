"""How well a scorer agrees with people, on the rated sets that lie on this machine.

Nothing is chosen by it: the best epoch and the best seed are those of held-out pairs. A rated set
counts with one quality, and a response with the mean of its ratings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dialeval.agreement.correlation import correlations
from dialeval.datasets import find_dataset
from dialeval.models.pair_scorer import (
    ContextRule,
    PairScorerNetwork,
    context_vector,
    last_words,
)
from dialeval.question import ModelSource
from dialeval.training.examples.embeddings import Pooling, embed
from dialeval.training.learners.pair_scorer import score_pairs

RATED = {
    "usr-topical": "Overall",
    "grade-dailydialog": "coherence",
    "fed": "Overall",
    "engage": "engagement",
    "holistic/coherence": "coherence",
}
"""Data set -> the quality that a scorer of pairs is held against."""


@dataclass(frozen=True)
class RatedPairs:
    """The answers of a rated set as vectors, and what people said."""

    name: str
    quality: str
    queries: torch.Tensor
    responses: torch.Tensor
    ratings: tuple[float, ...]


@dataclass(frozen=True)
class Agreement:
    """Correlations of the scores with the mean ratings; None where not defined."""

    pearson: float | None
    spearman: float | None
    n: int


def load_rated(
    encoder: str,
    rule: ContextRule,
    *,
    pooling: Pooling = "mean",
    words: int = 100,
    source: ModelSource | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[RatedPairs]:
    """Those of `RATED` that are here."""
    return [
        _read(name, quality, encoder, rule, pooling, words, source, progress)
        for name, quality in rated_here().items()
    ]


def rated_here() -> dict[str, str]:
    """Those of `RATED` that lie on this machine."""
    return {name: quality for name, quality in RATED.items() if find_dataset(name) is not None}


def _read(
    name: str,
    quality: str,
    encoder: str,
    rule: ContextRule,
    pooling: Pooling,
    words: int,
    source: ModelSource | None,
    progress: Callable[[int, int], None],
) -> RatedPairs:
    from dialeval.readers import load

    numbers: dict[str, int] = {}
    pairs: list[tuple[list[int], int]] = []
    ratings: list[float] = []
    for sample in load(name):
        rating = sample.ratings.get(quality)
        if sample.response is None or rating is None or rating.mean is None:
            continue
        turns = [turn.text for turn in sample.context][-1 if rule == "last" else None :]
        read = [
            numbers.setdefault(last_words(text, words), len(numbers))
            for text in (*turns, sample.response)
        ]
        pairs.append((read[:-1], read[-1]))
        ratings.append(rating.mean)
    vectors = embed(list(numbers), encoder, pooling=pooling, source=source, progress=progress)
    rows = torch.from_numpy(np.array(vectors, dtype=np.float32))
    return RatedPairs(
        name,
        quality,
        torch.stack([context_vector(rows[turns], rule) for turns, _ in pairs]),
        rows[[response for _, response in pairs]],
        tuple(ratings),
    )


def measure_agreement(
    network: PairScorerNetwork, rated: Sequence[RatedPairs]
) -> dict[str, Agreement]:
    """By data set."""
    network.eval()
    found = {}
    for pairs in rated:
        scores = score_pairs(network, pairs.queries, pairs.responses)
        both = correlations(scores, pairs.ratings, None, ["pearson", "spearman"])
        found[pairs.name] = Agreement(
            both["pearson"].value, both["spearman"].value, len(pairs.ratings)
        )
    return found
