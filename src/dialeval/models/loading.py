"""What every language model needs on its way from a directory into memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dialeval.errors import UsageError

UNSTATED = 1 << 20
"""transformers writes 1e30 where a tokenizer does not know the length that its model can take."""


@contextmanager
def silence() -> Iterator[None]:
    """transformers shows a progress bar and remarks on weights that are not needed here."""
    from transformers.utils import logging

    chatter: Any = logging
    verbosity, bar = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        yield
    finally:
        chatter.set_verbosity(verbosity)
        if bar:
            chatter.enable_progress_bar()


def choose_device(wanted: str) -> str:
    """`auto` is the first of cuda, mps and cpu that torch can use; anything else is taken as is."""
    import torch

    if wanted != "auto":
        return wanted
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def load_tokenizer(directory: Path) -> Any:
    """The tokenizer of a model; it must be a fast one, for only those know where a token stands."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"the model in {directory} has no tokenizer that can be read") from error
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(
            f"the model in {directory} has no tokenizer.json, so the place of a token in its text"
            " is unknown. Save it once with transformers' AutoTokenizer, use_fast=True."
        )
    return tokenizer


def window_of(model: Any, tokenizer: Any) -> int:
    """The most tokens that the model can read at once, attention windows included."""
    config = model.config
    limits = [
        getattr(config, name, None)
        for name in ("max_position_embeddings", "n_positions", "sliding_window", "attention_window")
    ]
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    if tokenizer.model_max_length < UNSTATED:
        known.append(tokenizer.model_max_length)
    return min(known, default=UNSTATED)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller batch may succeed: CPU allocators raise a plain RuntimeError."""
    if isinstance(error, MemoryError):
        return True
    words = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)
