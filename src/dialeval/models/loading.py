"""Loads models from a directory into memory, and returns free memory.

glibc keeps what torch has freed, to hand it out again. But the tensors of one batch are of other
sizes than those of the next, and small things that live on lie between them: what is free is cut
into pieces that fit nothing, and a process that holds 120 MB grows by 30 MB with every thousand
texts that it encodes. Given back after every thousand tokens or more (`encoder`, `causal_lm`), it
stays as it is; a call takes at most 5 % longer.

Weights that are mapped from their file count as memory of the process as soon as they are read. A
language model that has answered a chunk is asked again after all other models have answered it, so
it gives the pages back meanwhile (`give_back_weights`). They stay in the cache of the system, from
where they come back in a few hundredths of a second.

`text_tokenizer` loads a tokenizer without transformers, on top of `tokenizers`: it has what our
models use of one. The vocabulary, the rules and the special tokens all stand in `tokenizer.json`;
importing transformers to read them would take longer than scoring a few dialogues. Some tokenizers
are more than their file says (classes that change it as they load); those are left to transformers.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from dialeval.errors import JobError, UsageError
from dialeval.model_store.weights import read_json, read_once

if TYPE_CHECKING:
    import torch
    from tokenizers import Encoding, Tokenizer

UNSTATED = 1 << 20
"""transformers writes 1e30 where a tokenizer does not know the length that its model can take."""

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character: Python can hold one, a tokenizer cannot."""


def token_ids(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Returns the ids of texts, stripped, without the special tokens of the model."""
    if not texts:
        return []
    clean = [SURROGATE.sub("\ufffd", text.strip()) for text in texts]
    ids: list[list[int]] = tokenizer(clean, add_special_tokens=False, verbose=False).input_ids
    return ids


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
    """Returns where a model computes, whether it answers or writes: `auto` is `cuda` if torch can
    use it, else `cpu`. Anything else is taken as is.

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
    """Returns a model of transformers with an adapter of any kind in it."""
    from peft import PeftModel

    return PeftModel.from_pretrained(model, adapter).merge_and_unload()


def light_tokenizer(directory: Path) -> Any:
    """Loads a tokenizer for models that only read, without transformers where that is possible."""
    return plain_tokenizer(directory) or load_tokenizer(directory)


def text_tokenizer(directory: Path) -> Any:
    """Returns a light tokenizer for models that read what strangers wrote: to it, `[SEP]` in a text
    is five ordinary characters, and special tokens are only those that it adds itself."""
    file = directory / "tokenizer.json"
    if not file.is_file():
        return _text_tokenizer(directory)
    return read_once("text tokenizer", file, lambda _: _text_tokenizer(directory))


def _text_tokenizer(directory: Path) -> Any:
    tokenizer = light_tokenizer(directory)
    tokenizer.split_special_tokens = True
    tokenizer.backend_tokenizer.encode_special_tokens = True
    return tokenizer


def load_tokenizer(directory: Path) -> Any:
    """Loads the tokenizer of a model, from `tokenizer.json` or from the vocabulary and merges that
    older models have; it must be a fast one, for only those know where a token stands."""
    from transformers import AutoTokenizer

    from dialeval.models import blenderbot_small

    if read_json(directory / "config.json").get("model_type") == blenderbot_small.MODEL_TYPE:
        return blenderbot_small.load(directory)
    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"the model in {directory} has no tokenizer that can be read") from error
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(
            f"the model in {directory} has no tokenizer.json, and transformers reads its vocabulary"
            f" with {type(tokenizer).__name__}, which does not know the place of a token in its"
            " text. Use a model of another family, or one that was saved with a tokenizer.json."
        )
    return tokenizer


def window_of(model: Any, tokenizer: Any) -> int:
    """Returns the most tokens that the model can read at once, attention windows included."""
    window = int(min(network_window(model), tokenizer.model_max_length))
    if window < 1:
        raise UsageError(f"its tokenizer says that the model reads {window} tokens at once")
    return window


def network_window(model: Any) -> int:
    """Returns the same by the network alone: its tokenizer may have been told to cut earlier."""
    limits = [
        getattr(model.config, name, None)
        for name in ("max_position_embeddings", "n_positions", "sliding_window", "attention_window")
    ]
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(known, default=UNSTATED)


def positions_of(model: Any) -> int:
    """Returns how many tokens an encoder has positions for."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    # RoBERTa counts positions from behind its padding.
    return int(model.config.max_position_embeddings) - (0 if padding is None else padding + 1)


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether a smaller batch may succeed: CPU allocators raise a plain RuntimeError."""
    if isinstance(error, MemoryError):
        return True
    words = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_halves(
    compute: Callable[[Sequence[Item]], Result],
    batch: Sequence[Item],
    name: Callable[[Item], str],
) -> list[Result]:
    """Returns what `compute` makes of a batch, or of parts of it where memory does not suffice.

    name  what an item is called in the message that not even one fits: `text of 12 tokens`
    """
    try:
        return [compute(batch)]
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if len(batch) == 1:
            raise JobError(
                f"not enough memory for a single {name(batch[0])}."
                " Close other programs, or use a smaller model."
            ) from error
    # Behind the handler: the error holds what the failed attempt had allocated.
    half = len(batch) // 2
    return [*in_halves(compute, batch[:half], name), *in_halves(compute, batch[half:], name)]


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


def give_back_weights(model: torch.nn.Module) -> None:
    """Returns the pages of weights that are mapped from a file, where the system says which those
    are (Linux). A mapping with a page that was written since is left alone: what was written is
    nowhere else."""
    mapped = _unwritten_mappings(".safetensors")
    held = {
        (start, stop)
        for parameter in model.parameters()
        for start, stop in mapped
        if start <= parameter.data_ptr() < stop
    }
    for start, stop in held:
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(start), ctypes.c_size_t(stop - start), mmap.MADV_DONTNEED
        )


def _unwritten_mappings(suffix: str) -> list[tuple[int, int]]:
    """Returns where files of such a name are mapped; none where the system does not tell."""
    found: list[tuple[int, int]] = []
    place: tuple[int, int] | None = None
    try:
        lines = Path("/proc/self/smaps").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    for line in lines:
        first, _, rest = line.partition(" ")
        if not first.endswith(":"):
            start, _, stop = first.partition("-")
            place = (int(start, 16), int(stop, 16)) if line.endswith(suffix) else None
        elif place and first == "Anonymous:" and rest.split()[0] == "0":
            found.append(place)
    return found


BERT = {"BertTokenizer", "BertTokenizerFast"}
AS_THEIR_FILE_SAYS = BERT | {"PreTrainedTokenizerFast"}
SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token")
SPECIAL_AND_MASK = (*SPECIAL, "mask_token")
UNKNOWN_LENGTH = int(1e30)
"""What transformers says where the file does not know how much its model can read."""

BERT_DEFAULTS = {
    "do_lower_case": True,
    "strip_accents": None,
    "tokenize_chinese_chars": True,
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
READ_HERE = {
    "tokenizer_class",
    "model_max_length",
    "model_input_names",
    "chat_template",
    "added_tokens_decoder",
    *SPECIAL_AND_MASK,
}
WITHOUT_EFFECT = {
    "backend",
    "clean_up_tokenization_spaces",
    "do_basic_tokenize",
    "is_local",
    "local_files_only",
    "max_length",
    "name_or_path",
    "pad_to_multiple_of",
    "pad_token_type_id",
    "padding_side",
    "stride",
    "truncation_strategy",
}
"""On ids, as long as nobody asks for padding. With any other option transformers is asked."""


def plain_tokenizer(directory: Path) -> PlainTokenizer | None:
    """Returns the tokenizer of a directory; None if transformers has to read it."""
    config = read_json(directory / "tokenizer_config.json")
    file = directory / "tokenizer.json"
    is_bert = config.get("tokenizer_class") in BERT
    if is_bert:
        config = BERT_DEFAULTS | config
    if not _is_plain(directory, config) or not file.is_file():
        return None
    from tokenizers import Tokenizer

    try:
        backend = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers has no narrower one
        raise UsageError(f"{file}: not a tokenizer ({error}).") from error
    if _adds_tokens(config, backend) or (is_bert and not _follows(config, backend)):
        return None
    backend.no_truncation()
    backend.no_padding()
    return PlainTokenizer(backend, config, "token_type_ids" if is_bert else "")


def _is_plain(directory: Path, config: dict[str, Any]) -> bool:
    """Returns whether all that matters of the configuration is heeded here."""
    of_class = set(BERT_DEFAULTS) if config.get("tokenizer_class") in BERT else set()
    heeded = READ_HERE | WITHOUT_EFFECT | of_class
    legacy = read_json(directory / "special_tokens_map.json")
    return (
        config.get("tokenizer_class") in AS_THEIR_FILE_SAYS
        and config.get("truncation_side", "right") == "right"
        and all(
            value is None or name in heeded
            for name, value in config.items()
            if name != "truncation_side"
        )
        and all(_text(config.get(name)) == _text(token) for name, token in legacy.items())
        and not (directory / "chat_template.jinja").exists()
    )


def _adds_tokens(config: dict[str, Any], backend: Tokenizer) -> bool:
    added = config.get("added_tokens_decoder") or {}
    return any(
        backend.token_to_id(_text(token) or "") != int(number) for number, token in added.items()
    )


def _follows(config: dict[str, Any], backend: Tokenizer) -> bool:
    """BERT's rules stand in both files, and the configuration would win."""
    rules = backend.normalizer
    return (
        type(rules).__name__ == "BertNormalizer"
        and type(backend.pre_tokenizer).__name__ == "BertPreTokenizer"
        and rules.clean_text
        and rules.lowercase == config["do_lower_case"]
        and rules.strip_accents == config["strip_accents"]
        and rules.handle_chinese_chars == config["tokenize_chinese_chars"]
    )


def _text(token: Any) -> str | None:
    return token.get("content") if isinstance(token, dict) else token


class PlainTokenizer:
    """The part of transformers' interface that dialeval uses, under the same names."""

    is_fast = True

    def __init__(self, backend: Tokenizer, config: dict[str, Any], kinds: str = "") -> None:
        self.backend_tokenizer = backend
        self.model_max_length = int(config.get("model_max_length") or UNKNOWN_LENGTH)
        self.chat_template = config.get("chat_template")
        names = ["input_ids", *([kinds] if kinds else []), "attention_mask"]
        self.model_input_names = list(config.get("model_input_names") or names)
        for name in SPECIAL_AND_MASK:
            text = _text(config.get(name))
            setattr(self, name, text)
            setattr(self, f"{name}_id", backend.token_to_id(text) if text else None)

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))

    def get_vocab(self) -> dict[str, int]:
        return dict(self.backend_tokenizer.get_vocab(with_added_tokens=True))

    def get_added_vocab(self) -> dict[str, int]:
        added = self.backend_tokenizer.get_added_tokens_decoder()
        return {token.content: number for number, token in added.items()}

    def __call__(
        self,
        text: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        *,
        add_special_tokens: bool = True,
        truncation: bool = False,
        max_length: int | None = None,
        return_token_type_ids: bool = False,
        verbose: bool = True,
    ) -> SimpleNamespace:
        """`input_ids` and `token_type_ids` of a text, of a pair, or of a list of either."""
        backend = self.backend_tokenizer
        if truncation:
            backend.enable_truncation(max_length or self.model_max_length)
        try:
            if isinstance(text, str):
                return _one(backend.encode(text, pair, add_special_tokens=add_special_tokens))
            inputs = list(text) if pair is None else list(zip(text, pair, strict=True))
            found = backend.encode_batch(inputs, add_special_tokens=add_special_tokens)
        finally:
            backend.no_truncation()
        return SimpleNamespace(
            input_ids=[one.ids for one in found], token_type_ids=[one.type_ids for one in found]
        )

    def apply_chat_template(
        self, messages: Sequence[dict[str, str]], *, tokenize: bool = False
    ) -> str:
        """The template is a program of a stranger: it runs in jinja's sandbox."""
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        def complain(message: str) -> None:
            raise TemplateError(message)

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = complain
        tokens = {name: getattr(self, name) for name in SPECIAL if getattr(self, name)}
        return environment.from_string(str(self.chat_template)).render(
            messages=messages, add_generation_prompt=False, **tokens
        )


def _one(encoding: Encoding) -> SimpleNamespace:
    return SimpleNamespace(input_ids=encoding.ids, token_type_ids=encoding.type_ids)
