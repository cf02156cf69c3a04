"""A quantised GGUF file becomes a directory of safetensors, once.

transformers needs half a minute to read a GGUF and refuses to save what it has read. So the
dequantised weights are copied into a fresh model of the same configuration and saved in fp32: fp16
would halve the file, but rounds 4-bit weights (scale times step plus minimum) and moves
log-probabilities by up to 0.03. Memory-mapped, the result loads in a tenth of a second.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from dialeval.errors import JobError, UsageError
from dialeval.model_store.store import (
    CONVERSION,
    KnownDigests,
    fingerprint_of,
    prepared,
    write_record,
)
from dialeval.progress import FetchProgress, Step, silent_fetch
from dialeval.storage import models_directory, write_json


def gguf_fingerprint(gguf: Path) -> str:
    """Returns the identity of a GGUF file that somebody brought."""
    sha256 = KnownDigests().of(gguf)
    return fingerprint_of({"gguf": sha256}, sha256, CONVERSION)


def converted(gguf: Path, progress: FetchProgress = silent_fetch) -> Path:
    """Returns the directory of safetensors made from somebody's own GGUF file, in the model
    cache."""
    fingerprint = gguf_fingerprint(gguf)
    destination = models_directory() / f"gguf-{fingerprint.partition('-')[0]}"
    with prepared(destination, fingerprint, gguf.name, progress) as work:
        if work is not None:
            progress(Step(gguf.name, "convert"))
            convert_gguf(gguf, work)
            write_record(work, {"name": gguf.name, "role": "causal-lm", "fingerprint": fingerprint})
    return destination


def convert_gguf(gguf: Path, destination: Path) -> None:
    """Writes model.safetensors, config.json and the tokenizer with its chat template."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise UsageError(f"{error}. Install: pip install 'dialeval[models]'") from error

    place = {"gguf_file": gguf.name, "local_files_only": True}
    with _quiet():
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), **place)
            read = AutoModelForCausalLM.from_pretrained(
                str(gguf.parent), dtype=torch.float32, **place
            )
        except Exception as error:  # the parser of a damaged file can fail in any way
            raise JobError(f"{gguf}: this GGUF cannot be read: {error}") from error
        config = type(read.config).from_dict(_plain(read.config.to_dict()))
        build: Any = AutoModelForCausalLM.from_config
        fresh = build(config, dtype=torch.float32)
        fresh.load_state_dict(read.state_dict(), strict=True)
        fresh.tie_weights()
        fresh.save_pretrained(str(destination), safe_serialization=True, max_shard_size="100GB")
    _write_tokenizer(tokenizer, gguf, config.max_position_embeddings, destination)


def _plain(config: dict[str, Any]) -> dict[str, Any]:
    """Without the traces of the file that it was read from."""
    traces = ("quantization_config", "_name_or_path", "_model_name_or_path")
    return {key: value for key, value in config.items() if key not in traces}


def _write_tokenizer(tokenizer: Any, gguf: Path, context: int, destination: Path) -> None:
    backend = tokenizer.backend_tokenizer
    if _pretokenizer(gguf) == "smollm":
        backend.pre_tokenizer = _digits_first()
    backend.save(str(destination / "tokenizer.json"))
    special = ("bos_token", "eos_token", "unk_token", "pad_token")
    write_json(
        destination / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **{name: getattr(tokenizer, name) for name in special if getattr(tokenizer, name)},
            "model_max_length": context,
            "clean_up_tokenization_spaces": False,
            "chat_template": tokenizer.chat_template,
        },
    )


def _pretokenizer(gguf: Path) -> str:
    from gguf import GGUFReader

    field = GGUFReader(gguf).fields.get("tokenizer.ggml.pre")
    return str(field.contents()) if field else ""


def _digits_first() -> Any:
    """Returns what `smollm` means: every digit apart, then GPT-2's rule.

    transformers applies GPT-2's rule alone to any GGUF, which splits the white space before a
    number ("\\n\\n1", two spaces and a digit) in another way than the model was trained with.
    """
    from tokenizers import pre_tokenizers

    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """transformers draws bars of its own; ours is the one that is shown."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        # The bar of the dequantisation heeds neither setting.
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
