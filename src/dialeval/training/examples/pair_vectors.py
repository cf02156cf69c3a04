"""Pairs of a query and a response as vectors: what BERT-RUBER and PONE learn from.

All vectors are computed before the training (`embeddings.py`): the scorer never reads a text. Rated
sets become vectors in the same way, so that each seed can be compared with people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import torch

from dialeval.models.pair_scorer import ContextRule, context_vector, last_words
from dialeval.training.agreement import rated_here
from dialeval.training.examples.embeddings import Vectors, embed
from dialeval.training.examples.negatives import NegativeSampler, Numbers, SamplerOptions
from dialeval.training.examples.pair_corpus import Pair, PairCorpus, load_pairs
from dialeval.training.examples.positives import make_positives
from dialeval.training.recipe import Progress

if TYPE_CHECKING:
    from dialeval.training.recipes.bert_ruber import BertRuber

Split = Literal["validation", "test"]


@dataclass(frozen=True)
class PairVectors:
    """Queries and responses, row by row, and the variants of responses.

    variants  vectors of all variants, `of_pair` the numbers of those that belong to each row
    """

    queries: torch.Tensor
    responses: torch.Tensor
    variants: npt.NDArray[np.floating] = field(default_factory=lambda: np.empty((0, 0)))
    of_pair: Sequence[Sequence[int]] = ()

    def __len__(self) -> int:
        return len(self.queries)

    def variant_rows(self, numbers: Numbers) -> torch.Tensor:
        return torch.from_numpy(self.variants[numbers].astype(np.float32))

    def edited(self, rows: Numbers, variants: Numbers) -> torch.Tensor:
        """The responses of `rows`, those replaced for which a variant is named."""
        found = self.responses[rows]
        if (replaced := np.flatnonzero(variants >= 0)).size:
            found[replaced] = self.variant_rows(variants[replaced])
        return found


@dataclass(frozen=True)
class PairData:
    """A corpus as vectors; `answers` are the texts of the responses to learn from."""

    corpus: PairCorpus
    train: PairVectors
    validation: PairVectors
    test: PairVectors
    answers: tuple[str, ...]

    @property
    def dimensions(self) -> int:
        return self.train.queries.shape[1]

    def random_negatives(self, split: Split) -> Numbers:
        """Wrong responses for held-out pairs, the same for every training: rows of the split."""
        return random_negatives(self.corpus, split)


@dataclass(frozen=True)
class RatedPairs:
    """The answers of a rated set as vectors, and their mean ratings."""

    name: str
    quality: str
    queries: torch.Tensor
    responses: torch.Tensor
    ratings: tuple[float, ...]


def load_pair_data(data: Sequence[Path], recipe: BertRuber, progress: Progress) -> PairData:
    """Pairs, variants of their responses, and all vectors."""
    words, rule = recipe.truncate_words, recipe.context
    corpus = load_pairs(data, rule, words=words, most=recipe.pairs or None)
    progress.say(f"{corpus.name}: {len(corpus.train):,} pairs to learn from")
    with progress.counting("variants") as count:
        positives = make_positives(
            recipe.positives,
            corpus.train,
            corpus.texts,
            variants=recipe.variants,
            words=words,
            progress=count,
        )
    progress.say(f"vectors of {len(corpus.texts):,} utterances")
    vectors = vectors_of(corpus.texts, recipe, progress)
    variants = None
    if positives.texts:
        progress.say(f"vectors of {len(positives.texts):,} variants of responses")
        variants = vectors_of(positives.texts, recipe, progress)
    return PairData(
        corpus,
        pair_vectors(corpus.train, vectors, rule, variants, positives.of_pair),
        pair_vectors(corpus.validation, vectors, rule),
        pair_vectors(corpus.test, vectors, rule),
        tuple(corpus.texts[pair.response] for pair in corpus.train),
    )


def vectors_of(texts: Sequence[str], recipe: BertRuber, progress: Progress) -> Vectors:
    with progress.counting("vectors") as count:
        return embed(
            texts, recipe.model, pooling=recipe.pooling, source=recipe.source, progress=count
        )


def pair_vectors(
    pairs: Sequence[Pair],
    vectors: npt.NDArray[np.floating],
    rule: ContextRule,
    variants: npt.NDArray[np.floating] | None = None,
    of_pair: Sequence[Sequence[int]] = (),
) -> PairVectors:
    """Pairs of numbers -> pairs of vectors; a context becomes one vector by the rule."""
    queries = torch.empty(len(pairs), vectors.shape[1])
    for row, pair in enumerate(pairs):
        turns = vectors[list(pair.context)].astype(np.float32)
        queries[row] = context_vector(torch.from_numpy(turns), rule)
    numbers = np.array([pair.response for pair in pairs], dtype=np.int64)
    responses = torch.from_numpy(vectors[numbers].astype(np.float32))
    if variants is None:
        return PairVectors(queries, responses)
    return PairVectors(queries, responses, variants, of_pair)


def random_negatives(corpus: PairCorpus, split: Split) -> Numbers:
    """Wrong responses for held-out pairs, the same for every training: rows of the same split."""
    texts = [corpus.texts[pair.response] for pair in getattr(corpus, split)]
    sampler = NegativeSampler(SamplerOptions("random"), texts, lambda rows: np.empty((0, 0)))
    return sampler.sample(np.random.default_rng(0))


def load_rated(recipe: BertRuber, progress: Progress) -> list[RatedPairs]:
    """The rated sets that are on this machine."""
    return [_load_rated(name, quality, recipe, progress) for name, quality in rated_here().items()]


def _load_rated(name: str, quality: str, recipe: BertRuber, progress: Progress) -> RatedPairs:
    from dialeval.readers import load

    rule = recipe.context
    numbers: dict[str, int] = {}
    pairs: list[Pair] = []
    ratings: list[float] = []
    for sample in load(name):
        rating = sample.ratings.get(quality)
        if sample.response is None or rating is None or rating.mean is None:
            continue
        turns = [turn.text for turn in sample.context][-1 if rule == "last" else None :]
        read = [
            numbers.setdefault(last_words(text, recipe.truncate_words), len(numbers))
            for text in (*turns, sample.response)
        ]
        pairs.append(Pair(tuple(read[:-1]), read[-1]))
        ratings.append(rating.mean)
    found = pair_vectors(pairs, vectors_of(list(numbers), recipe, progress), rule)
    return RatedPairs(name, quality, found.queries, found.responses, tuple(ratings))
