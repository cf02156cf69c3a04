"""A tokenizer without transformers: what our models use of one, on top of `tokenizers`.

The vocabulary, the rules and the special tokens all stand in `tokenizer.json`; importing
transformers to read them would take longer than scoring a few dialogues. Some tokenizers are more
than their file says (classes that change it as they load); those are left to transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.models.weights import read_json

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

AS_THEIR_FILE_SAYS = {"BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast"}
SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token")
SPECIAL_AND_MASK = (*SPECIAL, "mask_token")
UNKNOWN_LENGTH = int(1e30)
"""What transformers says where the file does not know how much its model can read."""


def load(directory: Path) -> PlainTokenizer | None:
    """The tokenizer of a directory; None if transformers has to read it."""
    config = read_json(directory / "tokenizer_config.json")
    file = directory / "tokenizer.json"
    if config.get("tokenizer_class") not in AS_THEIR_FILE_SAYS or not file.is_file():
        return None
    from tokenizers import Tokenizer

    try:
        backend = Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers has no narrower one
        raise UsageError(f"{file}: not a tokenizer ({error}).") from error
    if _differs(config, backend.normalizer):
        return None
    backend.no_truncation()
    backend.no_padding()
    kinds = "token_type_ids" if "Bert" in config["tokenizer_class"] else ""
    return PlainTokenizer(backend, config, kinds)


def _differs(config: dict[str, Any], normalizer: Any) -> bool:
    """BERT's rules stand in both files, and the configuration would win."""
    pairs = (
        ("do_lower_case", "lowercase"),
        ("strip_accents", "strip_accents"),
        ("tokenize_chinese_chars", "handle_chinese_chars"),
    )
    return type(normalizer).__name__ == "BertNormalizer" and any(
        name in config and config[name] != getattr(normalizer, other) for name, other in pairs
    )


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
            token = config.get(name)
            text = token.get("content") if isinstance(token, dict) else token
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
