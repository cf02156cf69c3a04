"""Vectors of many texts: computed once per model, kept on disk, read without loading them all.

    CACHE/embeddings/MODEL/DIGEST.npy       the vectors of a list of texts, one row each
    CACHE/embeddings/MODEL/DIGEST.parts/    finished chunks, while they are computed

MODEL is the fingerprint of the weights with the pooling, DIGEST that of the texts in their order.
A file appears whole or not at all, and what was killed goes on after the last finished chunk. Rows
are 16-bit floats: half the disk, and nothing that a scorer could learn from is lost.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from dialeval.errors import JobError
from dialeval.models.source import Models
from dialeval.places import cache_directory
from dialeval.question import Embed, Model, ModelSource
from dialeval.storage import atomic_path

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
    """One row per text, mapped into memory. `progress` hears how many of how many are done."""
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
