"""PONE's positive data generator (section 3.3.2): more responses that may fit the same query.

    eda   the response with words replaced, inserted, swapped or deleted: fast, noisy
    ctg   the beams of a generator that reads the query: slow, and what the paper calls Seq2Seq

Both are the augmenters of `dialeval augment`, applied to responses. A response of one word may have
fewer than the k = 5 variants of the paper; what is the response itself is no variant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dialeval.augment.augmenter import augment_queries, make_augmenter
from dialeval.augment.query import Query
from dialeval.errors import UsageError
from dialeval.models.pair_scorer_network import last_words
from dialeval.options import split_spec
from dialeval.sample import Turn
from dialeval.training.pair_corpus import Pair

READS_THE_QUERY = ("ctg",)
"""Augmenters whose variants depend on what was said before."""


@dataclass(frozen=True)
class Positives:
    """Texts, and for each pair the numbers of its variants among them."""

    texts: tuple[str, ...]
    of_pair: tuple[tuple[int, ...], ...]


def make_positives(
    spec: str,
    pairs: Sequence[Pair],
    texts: Sequence[str],
    *,
    variants: int = 5,
    words: int = 100,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Positives:
    """The variants of the responses of `pairs`; `spec` is `eda`, `ctg`, `ctg:model=DIR`, `none`."""
    name, options = split_spec(spec)
    if name == "none":
        return Positives((), ((),) * len(pairs))
    if name not in ("eda", "ctg"):
        raise UsageError(f"positives are made by eda, ctg or none, not by {name!r}")
    if "variants" in options:
        raise UsageError(f"say how many positives with --variants, not in {spec!r}")
    augmenter = make_augmenter(f"{spec}{',' if options else ':'}variants={variants}", seed=0)
    keys = [pair if name in READS_THE_QUERY else Pair((), pair.response) for pair in pairs]
    distinct = list(dict.fromkeys(keys))
    queries = [
        Query(str(number), texts[key.response], tuple(Turn(texts[n]) for n in key.context))
        for number, key in enumerate(distinct)
    ]
    numbers: dict[str, int] = {}
    made: dict[Pair, tuple[int, ...]] = {}
    for done, query in enumerate(augment_queries(queries, [augmenter]), start=1):
        cut = [last_words(variant.query, words) for variant in query.variants]
        made[distinct[done - 1]] = tuple(numbers.setdefault(text, len(numbers)) for text in cut)
        progress(done, len(queries))
    return Positives(tuple(numbers), tuple(made[key] for key in keys))
