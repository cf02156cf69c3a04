"""A vocabulary made from the corpus that is learned: byte-pair pieces, or whole words.

    bpe    byte-level byte-pair encoding (Sennrich et al., 2016): nothing is unknown
    words  the most frequent words, split at spaces, as OpenNMT has them; others are `<unk>`

Turns are told apart by a tab, which is a piece of its own on both sides of which words look alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from dialeval.errors import UsageError
from dialeval.training.examples.corpora import Dialogue

Pieces = Literal["bpe", "words"]

PADDING, START, END, UNKNOWN = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
BYTES = 256


def build_tokenizer(
    dialogues: Sequence[Dialogue], size: int, pieces: Pieces = "bpe", window: int | None = None
) -> Any:
    """A tokenizer of transformers with at most `size` tokens; it closes a text with `</s>`.

    `window` is how many tokens of a history its model learned to read.
    """
    from transformers import PreTrainedTokenizerFast

    if pieces == "bpe" and size <= BYTES + len(SPECIAL):
        raise UsageError(f"a vocabulary of {size} is too small: the bytes alone are {BYTES}")
    backend, trainer = _bpe(size) if pieces == "bpe" else _words(size)
    backend.train_from_iterator((f"\t{turn}" for turns in dialogues for turn in turns), trainer)
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, backend.token_to_id(END))]
    )
    fast: Any = PreTrainedTokenizerFast  # it has no types
    return fast(
        tokenizer_object=backend,
        pad_token=PADDING,
        bos_token=START,
        eos_token=END,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
        **({"model_max_length": window} if window else {}),
    )


def _bpe(size: int) -> tuple[Tokenizer, trainers.Trainer]:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("\t", "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=True),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return backend, trainer


def _words(size: int) -> tuple[Tokenizer, trainers.Trainer]:
    backend = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    backend.normalizer = normalizers.Replace(Regex(r"[^\S\t]+"), " ")
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\t", "isolated"), pre_tokenizers.Split(" ", "removed")]
    )
    trainer = trainers.WordLevelTrainer(
        vocab_size=size, special_tokens=list(SPECIAL), show_progress=False
    )
    return backend, trainer
