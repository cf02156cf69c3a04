"""The interface of an augmenter, the list of augmenters, and the augmentation of a file of queries.

An augmenter is a frozen dataclass whose fields are its options, as in a metric, and that writes
variants for a batch of queries:

    @dataclass(frozen=True)
    class Shout:
        name: ClassVar[str] = "shout"
        keeps_repeats: ClassVar[bool] = False
        reads_all: ClassVar[bool] = False
        marks: int = option(1, "exclamation marks at the end", low=0)

        def augment(self, queries: Sequence[Query]) -> list[list[QueryVariant]]:
            return [[QueryVariant(q.query.upper() + "!" * self.marks, "shout")] for q in queries]

Models and lexicons are loaded at the first use, not when the augmenter is made. An augmenter need
not compare: a variant that is the query itself, or one that is there already, is dropped here
and counted, unless `keeps_repeats` says that a release kept them. What is random is drawn from the
augmenter's `seed` and the text of the query, so that a query's variants do not depend on the rest
of the file; `random`, which draws other queries of the file, says so with `reads_all`.

`random` is the baseline of HolisticEval's Tables 5 and 6. Section 5.3: "a baseline dataset which
consists of responses from randomly chosen queries". Each query gets other queries of the same file
in its place, with the turns before them. They ask for something else, so the answers to them differ
however little the chatbot varies; the baseline shows what a diversity is worth that does not hold
the query still. A probe asks them for diversity only: put after the answer to a query, a random one
would ask nothing again.

The draw depends on the seed, the query and the file. A query is never its own variant; of queries
with the same words in the file, one is drawn.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar, Protocol

from dialeval.augment.queries import Query, QueryVariant, normalised_query, write_queries
from dialeval.errors import UsageError
from dialeval.options import build, option, split_spec
from dialeval.progress import Progress, silent
from dialeval.registry import Registry

BATCH = 64
"""Queries that an augmenter gets at once; it may split them further."""


class Augmenter(Protocol):
    """Writes variants of queries. `name` is what `--with` calls it."""

    @property
    def name(self) -> str: ...

    @property
    def keeps_repeats(self) -> bool:
        """Whether variants that are the query itself, or one another, stay."""

    @property
    def reads_all(self) -> bool:
        """Whether it has to see all queries at once: variants depend on the rest of the file."""

    def augment(self, queries: Sequence[Query]) -> list[list[QueryVariant]]:
        """Returns the variants of each query, in the order of the queries."""


AUGMENTERS: Registry[type[Augmenter]] = Registry(
    "augmenter",
    "dialeval augment --help",
    {
        "ws": "dialeval.augment.substitution:WordNetSubstitution",
        "eda": "dialeval.augment.eda:EasyDataAugmentation",
        "ctg": "dialeval.augment.generator:ConditionalTextGenerator",
        "random": "dialeval.augment.augmenter:RandomQueries",
    },
)


def make_augmenter(spec: str, seed: int | None = None) -> Augmenter:
    """`ws:mode=released` -> an augmenter. `seed` holds where it has one and the spec does not."""
    name, given = split_spec(spec)
    cls = AUGMENTERS.get(name)
    options: dict[str, object] = dict(given)
    takes = {option.name for option in dataclasses.fields(cls)}  # type: ignore[arg-type]
    if seed is not None and "seed" in takes:
        options.setdefault("seed", seed)
    return build(cls, options, f"augmenter {name!r}")


def make_augmenters(specs: Iterable[str], seed: int | None = None) -> list[Augmenter]:
    """Makes several augmenters at once; the same with the same options twice is refused."""
    augmenters = [make_augmenter(spec, seed) for spec in specs]
    if not augmenters:
        raise UsageError(f"no augmenter given: choose from {', '.join(AUGMENTERS.names())}")
    if any(augmenter in augmenters[:place] for place, augmenter in enumerate(augmenters)):
        raise UsageError("the same augmenter with the same options is given twice")
    return augmenters


@dataclass
class Tally:
    """The counts of an augmentation, kept while queries pass."""

    queries: int = 0
    bare: int = 0
    """Queries that have no variant in the end."""
    kept: Counter[str] = field(default_factory=Counter)
    """Variants by how they were made."""
    unchanged: Counter[str] = field(default_factory=Counter)
    """Dropped: the variant is the query itself."""
    repeated: Counter[str] = field(default_factory=Counter)
    """Dropped: another variant says the same."""

    @property
    def variants(self) -> int:
        return self.kept.total()

    def to_record(self) -> dict[str, object]:
        return {
            "queries": self.queries,
            "variants": self.variants,
            "without_variant": self.bare,
            "kept": dict(self.kept),
            "unchanged": dict(self.unchanged),
            "repeated": dict(self.repeated),
        }


def augment_queries(
    queries: Iterable[Query], augmenters: Sequence[Augmenter], tally: Tally | None = None
) -> Iterator[Query]:
    """Yields the queries with the variants of all augmenters added to those that they had."""
    tally = Tally() if tally is None else tally
    remaining = iter(queries)
    size = None if any(augmenter.reads_all for augmenter in augmenters) else BATCH
    while batch := list(islice(remaining, size)):
        made = [augmenter.augment(batch) for augmenter in augmenters]
        for number, query in enumerate(batch):
            variants = list(query.variants)
            for augmenter, lists in zip(augmenters, made, strict=True):
                _add(variants, query.query, lists[number], augmenter, tally)
            tally.queries += 1
            tally.bare += not variants
            yield dataclasses.replace(query, variants=tuple(variants))


def _add(
    variants: list[QueryVariant],
    original: str,
    made: Sequence[QueryVariant],
    augmenter: Augmenter,
    tally: Tally,
) -> None:
    """Adds what says something new. Case and spacing alone make no variant."""
    said = {normalised_query(variant.query) for variant in variants}
    same = normalised_query(original)
    keeps_repeats = augmenter.keeps_repeats
    for variant in made:
        words = normalised_query(variant.query)
        if not keeps_repeats and words == same:
            tally.unchanged[variant.how] += 1
        elif not keeps_repeats and words in said:
            tally.repeated[variant.how] += 1
        else:
            said.add(words)
            variants.append(dataclasses.replace(variant, by=augmenter.name))
            tally.kept[variant.how] += 1


def augment_file(
    queries: Iterable[Query],
    specs: Iterable[str],
    destination: str | os.PathLike[str],
    *,
    seed: int | None = None,
    progress: Progress = silent,
) -> Tally:
    """Writes the augmented queries as JSON Lines; the file appears whole or not at all.

    `progress` hears how many queries are done.
    """
    path = Path(destination)
    if any(path.resolve() == source.resolve() for source in getattr(queries, "files", ())):
        raise UsageError(f"{path} is what is being read; choose another file to write")
    tally = Tally()
    augmented = augment_queries(queries, make_augmenters(specs, seed), tally)
    write_queries(watched(augmented, progress), path)
    return tally


def watched(queries: Iterable[Query], progress: Progress) -> Iterator[Query]:
    """Yields the same queries, while `progress` hears how many passed."""
    for count, query in enumerate(queries, start=1):
        yield query
        progress(count, 0)


@dataclass(frozen=True)
class RandomQueries:
    """Puts other queries of the file in the place of a query."""

    name: ClassVar[str] = "random"
    keeps_repeats: ClassVar[bool] = False
    reads_all: ClassVar[bool] = True

    variants: int = option(4, "variants of each query", low=1, high=1000)
    seed: int = option(0, "seed of the random choice", low=0)

    def augment(self, queries: Sequence[Query]) -> list[list[QueryVariant]]:
        different: dict[str, Query] = {}
        for query in queries:
            different.setdefault(normalised_query(query.query), query)
        return [self._drawn(query, different) for query in queries]

    def _drawn(self, query: Query, different: dict[str, Query]) -> list[QueryVariant]:
        import numpy as np

        own = normalised_query(query.query)
        others = [other for words, other in different.items() if words != own]
        digest = hashlib.sha256(query.id.encode("utf-8", "surrogatepass")).digest()
        generator = np.random.default_rng([self.seed, int.from_bytes(digest)])
        drawn = generator.permutation(len(others))[: self.variants]
        return [
            QueryVariant(others[place].query, "random", context=others[place].context)
            for place in drawn.tolist()
        ]
