"""Random scorers of the real classes, small enough for a test, saved as `dialeval train` does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from dialeval.model_store.scorer_directory import save_scorer
from dialeval.models.pair_scorer import (
    ContextRule,
    PairScorerConfig,
    PairScorerNetwork,
    RuberConfig,
)

WORDS = ["hello", "there", "cat", "dog", "food", "likes", "the", ".", "?"]


def save_pair_scorer(
    directory: Path, encoder: str, *, context: ContextRule = "sum", seed: int = 0, size: int = 16
) -> Path:
    torch.manual_seed(seed)
    config = PairScorerConfig("pone", encoder, "mean", context, size, (8, 4), 100)
    directory.mkdir()
    save_scorer(directory, config.to_record(), PairScorerNetwork(size, (8, 4)))
    return directory


def save_word_vectors(directory: Path, words: list[str] = WORDS, size: int = 6) -> Path:
    directory.mkdir()
    rows = np.random.default_rng(0).standard_normal((len(words), size)).astype(np.float32)
    np.save(directory / "vectors.npy", rows)
    (directory / "words.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    return directory


def save_ruber(directory: Path, vectors: str, *, seed: int = 0) -> Path:
    torch.manual_seed(seed)
    config = RuberConfig(vectors, 6, units=5, hidden=4, words=8)
    directory.mkdir()
    save_scorer(directory, config.to_record(), config.network())
    return directory
