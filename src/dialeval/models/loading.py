"""What every model needs on its way from a directory into memory, and how free memory is returned.

glibc keeps what torch has freed, to hand it out again. But the tensors of one batch are of other
sizes than those of the next, and small things that live on lie between them: what is free is cut
into pieces that fit nothing, and a process that holds 120 MB grows by 30 MB with every thousand
texts that it encodes. Given back after every thousand tokens or more (`encoder`, `causal_lm`), it
stays as it is; a call takes at most 5 % longer.
"""

from __future__ import annotations

import ctypes
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from dialeval.errors import UsageError
from dialeval.models import plain_tokenizer

UNSTATED = 1 << 20
"""transformers writes 1e30 where a tokenizer does not know the length that its model can take."""

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character: Python can hold one, a tokenizer cannot."""


@contextmanager
def silence() -> Iterator[None]:
    """transformers shows a progress bar and remarks on weights that are not needed here, and warns
    of names that peft still uses (up to 0.21, with transformers 5.23)."""
    from transformers.utils import logging

    chatter: Any = logging
    verbosity, bar = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*gradient_checkpointing.*", FutureWarning)
            yield
    finally:
        chatter.set_verbosity(verbosity)
        if bar:
            chatter.enable_progress_bar()


def choose_device(wanted: str) -> str:
    """Where a model computes, whether it answers or writes: `auto` is `cuda` if torch can use it,
    else `cpu`. Anything else is taken as is.

    `auto` never means `mps`: nobody has checked that answers there keep within 1e-4.
    """
    if wanted != "auto":
        return wanted
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def load_language_model(
    auto_class: str, directory: Path, *, device: str = "auto", adapter: Path | None = None
) -> tuple[Any, Any]:
    """Model and tokenizer of a directory in the Hugging Face layout; an adapter (LoRA) is merged.

    `auto_class` is a class of transformers: AutoModelForCausalLM, AutoModelForSeq2SeqLM.
    """
    import torch
    import transformers

    with silence():
        tokenizer = load_tokenizer(directory)
        model: Any = getattr(transformers, auto_class).from_pretrained(
            directory, local_files_only=True, dtype=torch.float32, weights_only=True
        )
        if adapter is not None:
            model = merged_by_peft(model, adapter)
    return model.to(choose_device(device)), tokenizer


def merged_by_peft(model: Any, adapter: Path) -> Any:
    """A model of transformers with an adapter of any kind in it."""
    from peft import PeftModel

    return PeftModel.from_pretrained(model, adapter).merge_and_unload()


def light_tokenizer(directory: Path) -> Any:
    """A tokenizer for models that only read: without transformers, where that can be."""
    return plain_tokenizer.load(directory) or load_tokenizer(directory)


def text_tokenizer(directory: Path) -> Any:
    """A light tokenizer for models that read what strangers wrote: to it, `[SEP]` in a text is five
    ordinary characters, and special tokens are only those that it adds itself."""
    tokenizer = light_tokenizer(directory)
    tokenizer.split_special_tokens = True
    tokenizer.backend_tokenizer.encode_special_tokens = True
    return tokenizer


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
    window = int(min(network_window(model), tokenizer.model_max_length))
    if window < 1:
        raise UsageError(f"its tokenizer says that the model reads {window} tokens at once")
    return window


def network_window(model: Any) -> int:
    """The same by the network alone: its tokenizer may have been told to cut earlier."""
    limits = [
        getattr(model.config, name, None)
        for name in ("max_position_embeddings", "n_positions", "sliding_window", "attention_window")
    ]
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(known, default=UNSTATED)


def positions_of(model: Any) -> int:
    """How many tokens an encoder has positions for."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    # RoBERTa counts positions from behind its padding.
    return int(model.config.max_position_embeddings) - (0 if padding is None else padding + 1)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a smaller batch may succeed: CPU allocators raise a plain RuntimeError."""
    if isinstance(error, MemoryError):
        return True
    words = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)


def batches_by_length(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Numbers of texts of similar length, longest first, within a budget of tokens."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


GIVE_BACK_AFTER = 1024
"""Tokens of a call, or of a pass, after which its memory is worth returning: some 150 ms of work of
a small encoder."""


def give_back() -> None:
    """Returns free memory to the system, where the C library can do so (glibc)."""
    if trim := _malloc_trim():
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # macOS, musl; Windows has no CDLL(None)
        return None
    return trim
