"""Random queries (`random`): the baseline of HolisticEval's Tables 5 and 6.

Section 5.3: "a baseline dataset which consists of responses from randomly chosen queries". Each
query gets other queries of the same file in its place, with the turns before them. They ask for
something else, so the answers to them differ however little the chatbot varies; the baseline shows
what a diversity is worth that does not hold the query still. A probe asks them for diversity only:
put after the answer to a query, a random one would ask nothing again.

The draw depends on the seed, the query and the file. A query is never its own variant; of queries
with the same words in the file, one is drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dialeval.augment.queries import Query, QueryVariant, normalised_query
from dialeval.options import option


@dataclass(frozen=True)
class RandomQueries:
    """Puts other queries of the file in the place of a query."""

    name: ClassVar[str] = "random"
    keeps_repeats: ClassVar[bool] = False
    reads_all: ClassVar[bool] = True

    variants: int = option(4, "variants of each query", low=1, high=1000)
    seed: int = option(0, "of what is drawn", low=0)

    def augment(self, queries: Sequence[Query]) -> list[list[QueryVariant]]:
        different: dict[str, Query] = {}
        for query in queries:
            different.setdefault(normalised_query(query.query), query)
        return [self._drawn(query, different) for query in queries]

    def _drawn(self, query: Query, different: dict[str, Query]) -> list[QueryVariant]:
        own = normalised_query(query.query)
        others = [other for words, other in different.items() if words != own]
        digest = hashlib.sha256(query.id.encode("utf-8", "surrogatepass")).digest()
        generator = np.random.default_rng([self.seed, int.from_bytes(digest)])
        drawn = generator.permutation(len(others))[: self.variants]
        return [
            QueryVariant(others[place].query, "random", context=others[place].context)
            for place in drawn.tolist()
        ]
