"""Pairs of a query and a response as vectors, for BERT-RUBER and PONE to learn from.

All vectors are computed before the training (`embed`): the scorer never reads a text. Rated sets
become vectors in the same way, so that each seed can be compared with people. Vectors are computed
once per model, kept on disk, and read without loading them all:

    CACHE/embeddings/MODEL/DIGEST.npy       the vectors of a list of texts, one row each
    CACHE/embeddings/MODEL/DIGEST.parts/    finished chunks, while they are computed

MODEL is the fingerprint of the weights with the pooling, DIGEST that of the texts in their order.
A file appears whole or not at all, and a killed process resumes after the last finished chunk. Rows
are 16-bit floats: half the disk, and nothing that a scorer could learn from is lost.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import torch

from dialeval.errors import JobError, UsageError
from dialeval.model_store.locate import locate, ready
from dialeval.models.pair_scorer import ContextRule, context_vector, last_words
from dialeval.models.source import Models
from dialeval.models.word_vectors import WordVectorTable, load
from dialeval.question import Embed, Model, ModelSource
from dialeval.storage import atomic_path, cache_directory
from dialeval.training.card import rated_here
from dialeval.training.examples.faults import words_of
from dialeval.training.examples.pair_corpus import Pair, PairCorpus, load_pairs
from dialeval.training.examples.sampling import (
    NegativeSampler,
    Numbers,
    SamplerOptions,
    make_positives,
)
from dialeval.training.recipe import Progress

if TYPE_CHECKING:
    from dialeval.training.recipes.ruber import BertRuber

# Word vectors that a recipe names, and texts as means of them.


def load_word_vectors(name: str, recipe: str) -> WordVectorTable:
    found = locate(name)
    if found.role != "word-vectors":
        raise UsageError(
            f"model {name!r} has the role {found.role}: `train {recipe}` takes word vectors."
            " See: dialeval models"
        )
    return load(ready(found))


def mean_vectors(texts: Sequence[str], table: WordVectorTable) -> npt.NDArray[np.float32]:
    """Returns one row per text, the mean over its known words; zero where none is known."""
    found = np.zeros((len(texts), table.vectors.shape[1]), dtype=np.float32)
    for row, text in enumerate(texts):
        rows = [table.rows.get(word.text.lower(), -1) for word in words_of(text)]
        known = [number for number in rows if number >= 0]
        if known:
            found[row] = table.vectors[known].mean(axis=0)
    return found


Pooling = Literal["mean", "cls", "max"]
Vectors = npt.NDArray[np.float16]

CHUNK = 4096
"""Texts per chunk: what a killed process can lose, some ten seconds of work."""


def embed(
    texts: Sequence[str],
    model: str,
    *,
    pooling: Pooling = "mean",
    source: ModelSource | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Vectors:
    """Returns one row per text, mapped into memory. `progress` hears how many of how many are
    done."""
    source = source or Models()
    file = _place(texts, source.fingerprint(model), pooling)
    if not file.exists():
        _compute(file, texts, model, pooling, source, progress)
    vectors: Vectors = np.load(file, mmap_mode="r", allow_pickle=False)
    if len(vectors) != len(texts):
        raise JobError(f"{file} is damaged: {len(vectors)} rows for {len(texts)} texts. Delete it.")
    return vectors


def _place(texts: Sequence[str], fingerprint: str, pooling: Pooling) -> Path:
    sha = hashlib.sha256()
    for text in texts:
        sha.update(text.encode("utf-8", "surrogatepass") + b"\x1e")
    folder = cache_directory() / "embeddings" / f"{fingerprint}-{pooling}"
    return folder / f"{sha.hexdigest()[:32]}.npy"


def _compute(
    file: Path,
    texts: Sequence[str],
    model: str,
    pooling: Pooling,
    source: ModelSource,
    progress: Callable[[int, int], None],
) -> None:
    parts = file.with_suffix(".parts")
    loaded: Model | None = None
    chunks = []
    for start in range(0, len(texts), CHUNK):
        chunk = parts / f"{start:09d}.npy"
        chunks.append(chunk)
        if not chunk.exists():
            loaded = loaded or source.load(model)
            _save(chunk, _embed_chunk(texts[start : start + CHUNK], model, pooling, loaded))
        progress(min(start + CHUNK, len(texts)), len(texts))
    _join(chunks, file, len(texts))
    shutil.rmtree(parts, ignore_errors=True)


def _embed_chunk(texts: Sequence[str], model: str, pooling: Pooling, loaded: Model) -> Vectors:
    rows: list[npt.NDArray[np.float16] | None] = [None] * len(texts)
    for position, answer in loaded.answer([Embed(model, text, pooling) for text in texts]):
        assert not isinstance(answer, str)
        rows[position] = answer.astype(np.float16)
    vectors: Vectors = np.stack([row for row in rows if row is not None])
    if len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise JobError(f"model {model!r} did not give a finite vector for every text")
    return vectors


def _save(path: Path, vectors: Vectors) -> None:
    with atomic_path(path) as temporary, temporary.open("wb") as out:
        np.save(out, vectors, allow_pickle=False)


def _join(chunks: Sequence[Path], file: Path, rows: int) -> None:
    """Copies chunk by chunk: no more than one of them is held."""
    if not chunks:
        raise JobError("there are no texts to embed")
    dimensions = np.load(chunks[0], mmap_mode="r", allow_pickle=False).shape[1]
    with atomic_path(file) as temporary:
        whole = np.lib.format.open_memmap(
            temporary, mode="w+", dtype=np.float16, shape=(rows, dimensions)
        )
        start = 0
        for chunk in chunks:
            part = np.load(chunk, mmap_mode="r", allow_pickle=False)
            whole[start : start + len(part)] = part
            start += len(part)
        whole.flush()
        del whole


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
        """Returns the responses of `rows`, those replaced for which a variant is named."""
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
    """Returns wrong responses for held-out pairs, the same for every training: rows of the same
    split."""
    texts = [corpus.texts[pair.response] for pair in getattr(corpus, split)]
    sampler = NegativeSampler(SamplerOptions("random"), texts, lambda rows: np.empty((0, 0)))
    return sampler.sample(np.random.default_rng(0))


def load_rated(recipe: BertRuber, progress: Progress) -> list[RatedPairs]:
    """Loads the rated sets that are on this machine."""
    return [_load_rated(name, quality, recipe, progress) for name, quality in rated_here().items()]


def _load_rated(name: str, quality: str, recipe: BertRuber, progress: Progress) -> RatedPairs:
    read = read_rated(name, quality, recipe.context, recipe.truncate_words)
    found = pair_vectors(read.pairs, vectors_of(read.texts, recipe, progress), recipe.context)
    return RatedPairs(name, quality, found.queries, found.responses, read.ratings)


@dataclass(frozen=True)
class RatedTexts:
    """The answers of a rated set as numbers of texts, and their mean ratings."""

    texts: tuple[str, ...]
    pairs: tuple[Pair, ...]
    ratings: tuple[float, ...]


def read_rated(name: str, quality: str, rule: ContextRule, words: int) -> RatedTexts:
    """Reads the responses of a set that were rated for a quality, each after its turns."""
    from dialeval.readers import load

    numbers: dict[str, int] = {}
    pairs: list[Pair] = []
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
        pairs.append(Pair(tuple(read[:-1]), read[-1]))
        ratings.append(rating.mean)
    return RatedTexts(tuple(numbers), tuple(pairs), tuple(ratings))
