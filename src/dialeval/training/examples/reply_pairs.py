"""Pairs to learn from: the turns so far, and the turn that came next, in token ids.

The first turn of a dialogue is a pair as well, whose history is empty: whoever is asked to go on
from nothing has seen how dialogues begin. A history is written as it will be written at use
(`models.layout`), so what was learned is what is asked.

A vocabulary made from the corpus that is learned: byte-pair pieces, or whole words.

    bpe    byte-level byte-pair encoding (Sennrich et al., 2016): nothing is unknown
    words  the most frequent words, split at spaces, as OpenNMT has them; others are `<unk>`

Turns are told apart by a tab, which is a piece of its own on both sides of which words look alike.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
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
from dialeval.models.layout import EncoderInput
from dialeval.models.pair_scorer import last_words
from dialeval.training.examples.corpora import Dialogue

SCORER_WORDS = 100
"""The end of an utterance that a pair scorer reads (`train pone`)."""

BUCKET = 4
"""Pairs whose lengths differ by less share batches."""


@dataclass(frozen=True, slots=True)
class ReplyPair:
    """The tokens of a history and of its reply, with the end token if the reply was not cut."""

    source: tuple[int, ...]
    target: tuple[int, ...]


def encode_pairs(
    tokenizer: Any,
    dialogues: Sequence[Dialogue],
    history_tokens: int,
    reply_tokens: int,
    turns: int = 0,
    without: Collection[tuple[str, str]] = (),
) -> list[ReplyPair]:
    """Long histories lose their beginning, long replies their end. `turns`: read at most so many of
    the last turns; 0: all. `without`: turns and their replies, as a scorer reads them, that make no
    pair.

    A turn begins with a tab, which is split off before anything else (see `vocabulary`): so the ids
    of a history are those of its turns, and no turn is tokenised again for each that follows.
    """
    written = EncoderInput(tokenizer, history_tokens)
    room = history_tokens - len(written.before) - len(written.after)
    pairs = []
    for dialogue in dialogues:
        before: list[Sequence[int]] = []
        for place, turn in enumerate(dialogue):
            said = written.segments.text(turn).ids
            target = (*said, tokenizer.eos_token_id)[:reply_tokens]
            history = tuple(chain.from_iterable(before[-turns:]))[-room:]
            if not (place and without and _as_scored(dialogue, place) in without):
                pairs.append(ReplyPair((*written.before, *history, *written.after), target))
            before.append(written.segments.text(f"\t{turn}").ids)
    return pairs


def _as_scored(dialogue: Dialogue, place: int) -> tuple[str, str]:
    before, said = (last_words(text, SCORER_WORDS) for text in dialogue[place - 1 : place + 1])
    return before, said


def make_batches(
    pairs: Sequence[ReplyPair],
    limit: int,
    per: Literal["pairs", "tokens"],
    generator: np.random.Generator,
) -> list[list[ReplyPair]]:
    """Returns pairs of similar length together, batches in random order.

    `limit` bounds the pairs of a batch, or its tokens: pairs times the longer side of the longest.
    The cost of a pair is that of its bucket, so that every epoch has as many batches.
    """
    jitter = generator.random(len(pairs))
    buckets = [(_bucket(pair.target), _bucket(pair.source)) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda i: (buckets[i], jitter[i]))
    batches: list[list[ReplyPair]] = []
    longest = 0
    for i in order:
        longest = max(longest, *buckets[i])
        size = len(batches[-1]) + 1 if batches else 1
        if not batches or (size if per == "pairs" else size * longest) > limit:
            batches.append([])
            longest = max(buckets[i])
        batches[-1].append(pairs[i])
    return [batches[i] for i in generator.permutation(len(batches))]


def _bucket(ids: tuple[int, ...]) -> int:
    return -(-len(ids) // BUCKET) * BUCKET


Pieces = Literal["bpe", "words"]

PADDING, START, END, UNKNOWN = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
BYTES = 256


def build_tokenizer(
    dialogues: Sequence[Dialogue], size: int, pieces: Pieces = "bpe", window: int | None = None
) -> Any:
    """Builds a tokenizer of transformers with at most `size` tokens; it closes a text with `</s>`.

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


def turn_mark(tokenizer: Any) -> int:
    """Returns the token that begins each turn of a history: the tab."""
    ids: list[int] = tokenizer("\t", add_special_tokens=False).input_ids
    return ids[-1]


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
