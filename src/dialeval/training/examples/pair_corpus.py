"""Pairs of a query and the response that people gave: what BERT-RUBER and PONE learn from.

Every turn of a dialogue but the first is a response. Its query is the turn before it (single-turn),
or all turns before it (multi-turn): the rule by which turns become one vector decides which.

Corpora have their splits, or are split by dialogue (`corpora`), and each pair counts once: what is
held out is taken out of what is learned from, pair by pair. Dialogues that share an exchange with a
rated set that dialeval knows are not learned from at all (`corpora`), so that agreement
with its raters can be reported. An utterance is its last 100 words, as the encoder will read it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dialeval.errors import UsageError
from dialeval.models.pair_scorer import ContextRule, last_words
from dialeval.training.examples.corpora import (
    Dialogue,
    LeftOut,
    RatedExchanges,
    known_exchanges,
    load_corpus,
    without_rated,
)

SPLITS = ("train", "validation", "test")
WHOLE = 10_000
"""Words of an utterance to keep where a learner itself cuts what it reads."""

FEWEST = 2
"""Different responses of a split: a wrong one has to be found for each."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Numbers of texts: the turns before, the last turn last, and what was answered."""

    context: tuple[int, ...]
    response: int


@dataclass(frozen=True)
class PairCorpus:
    """`texts` holds every utterance of the corpus once, so that its vectors are computed once
    whatever pairs are made of it; `left_out` are the dialogues that rated sets share."""

    name: str
    texts: tuple[str, ...]
    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    test: tuple[Pair, ...]
    left_out: LeftOut
    test_by_corpus: Mapping[str, tuple[Pair, ...]] = field(default_factory=dict)
    """The pairs of `test`, by the corpus that they are from."""

    def turns(self, pair: Pair) -> tuple[str, ...]:
        """Returns the turns before a response."""
        return tuple(self.texts[number] for number in pair.context)

    def responses(self, pairs: Sequence[Pair]) -> list[str]:
        """Returns what was answered, each text once."""
        return [self.texts[number] for number in dict.fromkeys(pair.response for pair in pairs)]

    def digest(self) -> str:
        sha = hashlib.sha256()
        for text in self.texts:
            sha.update(text.encode("utf-8", "replace") + b"\x1e")
        for split in (self.train, self.validation, self.test):
            for pair in split:
                sha.update(f"{pair.context}>{pair.response};".encode())
            sha.update(b"\x1d")
        return sha.hexdigest()


def load_pairs(
    data: Sequence[Path],
    rule: ContextRule,
    *,
    words: int = 100,
    most: int | None = None,
    rated: RatedExchanges | None = None,
) -> PairCorpus:
    """Returns pairs of one or several corpora.

    words   the end of an utterance that is read
    most    learn from at most this many pairs at random, and hold out an 18th of that for each of
            validation and test, as the authors did (45 000, 2 500, 2 500)
    rated   what is not to be learned from; None: the rated sets that dialeval knows
    """
    rated = known_exchanges() if rated is None else rated
    kept, left_out = [], LeftOut(rated)
    for path in data:
        corpus, shared = without_rated(load_corpus(path), rated)
        kept.append(corpus)
        left_out += shared
    numbers: dict[str, int] = {}
    splits = {
        split: _pairs(chain.from_iterable(getattr(c, split) for c in kept), rule, words, numbers)
        for split in SPLITS
    }
    splits["validation"] = _without_pairs(splits["validation"], splits["test"])
    splits["train"] = _without_pairs(splits["train"], splits["validation"] + splits["test"])
    if most is not None:
        held_out = max(FEWEST, most // 18)
        sizes = {"train": most, "validation": held_out, "test": held_out}
        splits = {s: tuple(always_drawn(pairs, sizes[s])) for s, pairs in splits.items()}
    drawn = set(splits["test"])
    test_by_corpus = {
        corpus.name: tuple(p for p in _pairs(corpus.test, rule, words, numbers) if p in drawn)
        for corpus in kept
    }
    name = "+".join(corpus.name for corpus in kept)
    for split, pairs in splits.items():
        _check_enough(name, split, pairs, left_out.count)
    return PairCorpus(
        name, tuple(numbers), left_out=left_out, test_by_corpus=test_by_corpus, **splits
    )


def _check_enough(name: str, split: str, pairs: Sequence[Pair], left_out: int) -> None:
    different = len({pair.response for pair in pairs})
    if different < FEWEST:
        why = f" {left_out:,} dialogues are those of rated sets." if left_out else ""
        raise UsageError(
            f"{name}: {len(pairs):,} pairs with {different} different responses for {split} are too"
            f" few: it takes {FEWEST} of them, to tell one from another.{why} Take more dialogues."
        )


def _pairs(
    dialogues: Iterable[Dialogue], rule: ContextRule, words: int, numbers: dict[str, int]
) -> tuple[Pair, ...]:
    found: dict[Pair, None] = {}
    for dialogue in dialogues:
        turns = [
            numbers.setdefault(text, len(numbers))
            for text in (last_words(turn, words) for turn in dialogue)
        ]
        for place in range(1, len(turns)):
            first = place - 1 if rule == "last" else 0
            found[Pair(tuple(turns[first:place]), turns[place])] = None
    return tuple(found)


def _without_pairs(pairs: tuple[Pair, ...], held_out: tuple[Pair, ...]) -> tuple[Pair, ...]:
    seen = set(held_out)
    return tuple(pair for pair in pairs if pair not in seen)


# Examples with a target: turns, a response, and how good it is. What judges of text learn from.

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Example:
    """The turns and the response that are read, and how good the response is, from 0 to 1."""

    turns: tuple[str, ...]
    response: str
    target: float


Examples = Callable[[int], Sequence[Example]]
"""The examples of an epoch: always the same for the same epoch, and as many in each."""


@dataclass(frozen=True)
class ExampleSets:
    """All examples of a recipe.

    examples    to learn from, by epoch
    validation  to choose the best epoch by
    measured    further sets, by name, on which the accuracy is measured in the end
    by_source   held-out examples of each source alone, for the table of the card
    digest      of the data that the examples are made of
    data        facts about the data, for the card
    """

    examples: Examples
    validation: Sequence[Example]
    digest: str
    data: Mapping[str, Any]
    measured: Mapping[str, Sequence[Example]] = field(default_factory=dict)
    by_source: Mapping[str, Sequence[Example]] = field(default_factory=dict)

    @property
    def by_kind(self) -> Mapping[str, Sequence[Example]]:
        """Returns held-out examples by source, or by kind of wrong response if all are of one
        source."""
        return self.by_source or self.measured

    def first_digest(self) -> str:
        """Whatever decides what is learned shows in the examples of the first epoch."""
        sha = hashlib.sha256()
        for example in (*self.examples(0), *self.validation):
            row = "\x1f".join((*example.turns, example.response, repr(example.target)))
            sha.update(row.encode("utf-8", "surrogatepass") + b"\x1e")
        return sha.hexdigest()

    def identity(self, encoder: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what must be equal for a training on these examples to be resumed."""
        from dialeval.models.source import Models

        return {
            "data": self.digest,
            "examples": self.first_digest(),
            "encoder": Models().fingerprint(encoder),
            "config": config,
        }


def drawn(items: Sequence[T], most: int | None, generator: np.random.Generator) -> list[T]:
    """Draws at most `most` items at random; None: all of them, in random order."""
    return [items[i] for i in generator.permutation(len(items))[:most].tolist()]


def always_drawn(items: Sequence[T], most: int | None) -> list[T]:
    """Draws the same items every time, in their order: the seed of a training decides how it
    learns, not from what."""
    if most is None or len(items) <= most:
        return list(items)
    chosen = np.random.default_rng(0).permutation(len(items))[:most]
    return [items[i] for i in np.sort(chosen).tolist()]


def with_random_responses(
    texts: Sequence[str], pairs: Sequence[Pair], generator: np.random.Generator
) -> list[Example]:
    """Returns each pair with its response, and behind it with the response of a random other one.

    There must be two different responses.
    """
    found = []
    others = generator.integers(len(pairs), size=len(pairs)).tolist()
    for pair, other in zip(pairs, others, strict=True):
        while pairs[other].response == pair.response:
            other = (other + 1) % len(pairs)
        turns = tuple(texts[number] for number in pair.context)
        found.append(Example(turns, texts[pair.response], 1.0))
        found.append(Example(turns, texts[pairs[other].response], 0.0))
    return found


def corpus_facts(corpus: PairCorpus) -> dict[str, Any]:
    """Returns what a card says about the dialogues that were learned from."""
    return {"corpus": corpus.name, "sha256": corpus.digest(), **corpus.left_out.facts()}
