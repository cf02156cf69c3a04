"""Examples with a target: turns, a response, and how good it is. What judges of text learn from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from dialeval.training.examples.pair_corpus import PairCorpus

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Example:
    """What is read, and how good it is, from 0 to 1."""

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

    def first_digest(self) -> str:
        """Whatever decides what is learned shows in the examples of the first epoch."""
        sha = hashlib.sha256()
        for example in (*self.examples(0), *self.validation):
            row = "\x1f".join((*example.turns, example.response, repr(example.target)))
            sha.update(row.encode("utf-8", "surrogatepass") + b"\x1e")
        return sha.hexdigest()


def drawn(items: Sequence[T], most: int | None, generator: np.random.Generator) -> list[T]:
    """At most so many, at random; None: all of them, in random order."""
    return [items[i] for i in generator.permutation(len(items))[:most].tolist()]


def corpus_facts(corpus: PairCorpus) -> dict[str, Any]:
    """What a card says about the dialogues that were learned from."""
    return {"corpus": corpus.name, "sha256": corpus.digest(), **corpus.left_out.facts()}
