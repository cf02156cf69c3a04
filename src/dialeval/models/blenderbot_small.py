"""The tokenizer of BlenderbotSmall, from its `vocab.json` and `merges.txt`.

facebook/blenderbot_small-90M was published without a `tokenizer.json`, and transformers reads its
vocabulary with a class in Python, which does not know where a token stands in its text. Here the
same rules are given to the `tokenizers` library, which does:

    "Well, it's late."  ->  well ,  it ' s  late .        lower case, a space before punctuation
    "unhappiness"       ->  un@@ happ@@ iness              BPE; "@@" marks what a word goes on after

The vocabulary spells a piece as it is written out, "un@@" or "iness"; the merges spell it as BPE
sees it, "un" or "iness</w>". The vocabulary is therefore rewritten in the second form.

Merges lead over pieces that the vocabulary does not hold, because they never ended up in a text
that the vocabulary was counted on. BPE needs numbers for these: they get numbers behind the
vocabulary, which `known` turns into the number of the unknown token, as transformers does.

The model reads a dialogue `bare`, without the end token that the larger BlenderBots read behind it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from dialeval.errors import UsageError
from dialeval.model_store.weights import read_json

MODEL_TYPE = "blenderbot-small"
GOES_ON, ENDS = "@@", "</w>"
TOKENS = {
    "bos_token": "__start__",
    "eos_token": "__end__",
    "unk_token": "__unk__",
    "pad_token": "__null__",
}
"""As the class of transformers has them; `tokenizer_config.json` may say otherwise."""


class BlenderbotSmallTokenizer(PreTrainedTokenizerFast):
    """`bare`: the encoder reads no special tokens. `pieces`: how many tokens the model knows."""

    bare = True
    pieces: int

    def known(self, token: int) -> int:
        """Returns the token itself, or the unknown one where the vocabulary does not hold it."""
        return token if token < self.pieces else int(self.unk_token_id)


def load(directory: Path) -> BlenderbotSmallTokenizer:
    """Loads the tokenizer of a BlenderbotSmall that has no `tokenizer.json`."""
    vocabulary = _vocabulary(directory / "vocab.json")
    merges = _merges(directory / "merges.txt")
    config = read_json(directory / "tokenizer_config.json")
    tokens = {name: _content(config.get(name)) or usual for name, usual in TOKENS.items()}
    if absent := [token for token in tokens.values() if token not in vocabulary]:
        raise UsageError(f"{directory / 'vocab.json'}: the token {absent[0]!r} is missing")
    pieces = {
        piece.removesuffix(GOES_ON) if piece.endswith(GOES_ON) else piece + ENDS: number
        for piece, number in vocabulary.items()
        if piece not in tokens.values()
    }
    for token in tokens.values():
        pieces[token] = vocabulary[token]
    size = max(vocabulary.values()) + 1
    for one, other in merges:
        for piece in (one, other, one + other):
            pieces.setdefault(piece, max(size, len(pieces)))
    backend = Tokenizer(
        BPE(pieces, merges, unk_token=tokens["unk_token"], end_of_word_suffix=ENDS, fuse_unk=False)
    )
    backend.normalizer = _normalizer()
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.decoder = decoders.BPEDecoder(suffix=ENDS)
    length = config.get("model_max_length")
    options = {"model_max_length": length} if length else {}
    make: Any = BlenderbotSmallTokenizer
    fast: BlenderbotSmallTokenizer = make(tokenizer_object=backend, **tokens, **options)
    fast.pieces = size
    return fast


def _normalizer() -> Any:
    """A line break counts only behind a word, and not behind an apostrophe: the class of
    transformers splits at white space first, and its later rules swallow that one."""
    return normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"(?<=[^\s'])\n"), " __newln__ "),
            *(normalizers.Replace(mark, f" {mark}") for mark in ".,!?()"),
            normalizers.Replace("'", " ' "),
            normalizers.Lowercase(),
        ]
    )


def _vocabulary(path: Path) -> dict[str, int]:
    found = read_json(path)
    if not found:
        raise UsageError(f"{path}: there is no vocabulary here")
    for piece, number in found.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise UsageError(f"{path}: {piece!r}: expected the number of the token")
    return found


def _merges(path: Path) -> list[tuple[str, str]]:
    """Reads one pair per line, below a line that names the version."""
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    lines = path.read_text(encoding="utf-8").split("\n")
    merges = []
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        pair = line.split()
        if len(pair) != 2:
            raise UsageError(f"{path}:{number}: expected two pieces")
        merges.append((pair[0], pair[1]))
    return merges


def _content(token: Any) -> str | None:
    return token.get("content") if isinstance(token, dict) else token
