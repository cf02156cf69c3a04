"""A random topic graph of the real class, small enough for a test, saved as `dialeval train`."""

from __future__ import annotations

from pathlib import Path

import torch
from models import tiny_scorers

from dialeval.lexicon.conceptnet import load_conceptnet
from dialeval.model_store.scorer_directory import save_scorer
from dialeval.models.tagger import Frequencies
from dialeval.models.topic_graph import TopicGraphConfig

WORDS = ["dog", "cat", "coffee", "tea", "milk", "sugar", "car", "fuel", "drink", "pet", "bark"]


def save_word_vectors(directory: Path, size: int = 6) -> Path:
    return tiny_scorers.save_word_vectors(directory, WORDS, size)


def save_topic_graph(directory: Path, vectors: str, *, seed: int = 0) -> Path:
    torch.manual_seed(seed)
    config = TopicGraphConfig(vectors, 6, load_conceptnet().digest, units=8)
    directory.mkdir()
    Frequencies(1000, {"dog": 9, "love": 99}).write(directory)
    save_scorer(directory, config.to_record(), config.network())
    return directory
