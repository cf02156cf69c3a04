"""Word vectors that a recipe names, and texts as means of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dialeval.errors import UsageError
from dialeval.model_store.locate import locate, ready
from dialeval.models.word_vectors import WordVectorTable, load
from dialeval.training.examples.fluency import words_of


def load_word_vectors(name: str, recipe: str) -> WordVectorTable:
    found = locate(name)
    if found.role != "word-vectors":
        raise UsageError(
            f"model {name!r} has the role {found.role}: `train {recipe}` takes word vectors."
            " See: dialeval models"
        )
    return load(ready(found))


def mean_vectors(texts: Sequence[str], table: WordVectorTable) -> npt.NDArray[np.float32]:
    """One row per text, the mean over its known words; zero where none is known."""
    found = np.zeros((len(texts), table.vectors.shape[1]), dtype=np.float32)
    for row, text in enumerate(texts):
        rows = [table.rows.get(word.text.lower(), -1) for word in words_of(text)]
        known = [number for number in rows if number >= 0]
        if known:
            found[row] = table.vectors[known].mean(axis=0)
    return found
