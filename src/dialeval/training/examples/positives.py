"""PONE's positive data generator (section 3.3.2): more responses that may fit the same query.

    eda   the response with words replaced, inserted, swapped or deleted: fast, noisy
    ctg   the beams of a generator that reads the query: slow, and what the paper calls Seq2Seq

Both are the augmenters of `dialeval augment`, applied to responses. A response of one word may have
fewer than the k = 5 variants of the paper; what is the response itself is no variant.

    CACHE/positives/DIGEST/    the beams of so many queries each

Beams take minutes to hours, so they are kept: DIGEST is that of the generator's weights, its
options, the queries and how many there are in a file. What was killed goes on after the last
finished file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dialeval.augment.augmenter import Augmenter, augment_queries, make_augmenter
from dialeval.augment.generator import ConditionalTextGenerator
from dialeval.augment.queries import Query
from dialeval.errors import UsageError
from dialeval.models.pair_scorer import last_words
from dialeval.models.source import Models
from dialeval.options import split_spec
from dialeval.sample import Turn
from dialeval.storage import cache_directory, write_json
from dialeval.training.examples.pair_corpus import Pair

READS_THE_QUERY = ("ctg",)
"""Augmenters whose variants depend on what was said before."""

KEPT_AT_ONCE = 512
"""Queries per file: what a killed process can lose, some minutes of work."""


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
    """Makes the variants of the responses of `pairs`; `spec` is `eda`, `ctg`, `ctg:model=DIR`,
    `none`."""
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
    for done, variants_of_one in enumerate(_variants(queries, augmenter), start=1):
        cut = [last_words(text, words) for text in variants_of_one]
        made[distinct[done - 1]] = tuple(numbers.setdefault(text, len(numbers)) for text in cut)
        progress(done, len(queries))
    return Positives(tuple(numbers), tuple(made[key] for key in keys))


def generator_of(spec: str) -> str:
    """Returns the model that writes the positives; empty where no model does."""
    augmenter = None if split_spec(spec)[0] == "none" else make_augmenter(spec)
    return augmenter.model if isinstance(augmenter, ConditionalTextGenerator) else ""


def _variants(queries: Sequence[Query], augmenter: Augmenter) -> Iterator[list[str]]:
    """Yields the variants of each query, in their order; those of a generator are kept on disk."""
    if not isinstance(augmenter, ConditionalTextGenerator):
        yield from _augmented(queries, augmenter)
        return
    folder = _folder(queries, augmenter)
    for start in range(0, len(queries), KEPT_AT_ONCE):
        file = folder / f"{start:09d}.json"
        if file.exists():
            yield from json.loads(file.read_text(encoding="utf-8"))
            continue
        found = []
        for texts in _augmented(queries[start : start + KEPT_AT_ONCE], augmenter):
            found.append(texts)
            yield texts
        write_json(file, found)


def _augmented(queries: Sequence[Query], augmenter: Augmenter) -> Iterator[list[str]]:
    for query in augment_queries(queries, [augmenter]):
        yield [variant.query for variant in query.variants]


def _folder(queries: Sequence[Query], augmenter: ConditionalTextGenerator) -> Path:
    """Returns the folder of the variants, named by the model's fingerprint, because its name may
    come to stand for other weights."""
    by_weights = replace(augmenter, model=Models().fingerprint(augmenter.model))
    sha = hashlib.sha256(repr((by_weights, KEPT_AT_ONCE)).encode())
    for query in queries:
        texts = (*(turn.text for turn in query.context), query.query)
        sha.update("\x1f".join(texts).encode("utf-8", "surrogatepass") + b"\x1e")
    return cache_directory() / "positives" / sha.hexdigest()[:32]
