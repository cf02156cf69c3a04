"""Pairs to learn from: the turns so far, and the turn that came next, in token ids.

The first turn of a dialogue is a pair as well, whose history is empty: whoever is asked to go on
from nothing has seen how dialogues begin. A history is written as it will be written at use
(`models.encoder_input`), so what was learned is what is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dialeval.models.layout import EncoderInput
from dialeval.training.examples.corpora import Dialogue

BUCKET = 4
"""Pairs whose lengths differ by less share batches."""


@dataclass(frozen=True, slots=True)
class ReplyPair:
    """What is read, and what is to be said, with its end if it was not cut."""

    source: tuple[int, ...]
    target: tuple[int, ...]


def encode_pairs(
    tokenizer: Any, dialogues: Sequence[Dialogue], history_tokens: int, reply_tokens: int
) -> list[ReplyPair]:
    """Long histories lose their beginning, long replies their end.

    A turn begins with a tab, which is split off before anything else (see `vocabulary`): so the ids
    of a history are those of its turns, and no turn is tokenised again for each that follows.
    """
    written = EncoderInput(tokenizer, history_tokens)
    room = history_tokens - len(written.before) - len(written.after)
    pairs = []
    for dialogue in dialogues:
        history: tuple[int, ...] = ()
        for turn in dialogue:
            said = written.segments.text(turn).ids
            target = (*said, tokenizer.eos_token_id)[:reply_tokens]
            pairs.append(ReplyPair((*written.before, *history, *written.after), target))
            history = (*history, *written.segments.text(f"\t{turn}").ids)[-room:]
    return pairs


def make_batches(
    pairs: Sequence[ReplyPair],
    limit: int,
    per: Literal["pairs", "tokens"],
    generator: np.random.Generator,
) -> list[list[ReplyPair]]:
    """Pairs of similar length together, batches in random order.

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
