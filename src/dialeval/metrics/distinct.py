"""`distinct`: how little does it repeat itself? (Li et al., NAACL 2016, section 4.5)

    distinct-n = number of different n-grams / number of all n-grams

Tokens are what stands between whitespace. Of one response the score says how far it repeats
*itself*. The number that papers report is another: that of the n-grams of all responses of one
system taken together. `pool` computes it, and it falls when a chatbot gives everyone the same
answer. It falls with the size of the corpus too: compare systems on the same questions only.

A response shorter than n words has no n-grams: the part is left out, and where n is the order asked
for there is no score (`too short`). In the pool such a response adds nothing.

The pool keeps 8 bytes for each different n-gram, and four times that while it merges: a 64-bit
hash in a sorted array. A word is hashed with BLAKE2b, an n-gram by mixing the hashes of its words,
so the result is the same in every process and on every machine. Two n-grams that share a hash count
as one. Among m of them, m^2 / 2^65 such pairs are expected: with ten million different n-grams, the
odds that the count is off by one are 3 in 1,000,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any

from dialeval.metric import Metric, Part
from dialeval.options import option
from dialeval.question import Answer
from dialeval.sample import Sample
from dialeval.scores import Score

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

ORDERS = (1, 2, 3)

WORDS_PER_BATCH = 1 << 15
"""The pool hashes this many words at once: enough for numpy to pay off, two megabytes a system."""

MERGE_AT_LEAST = 1 << 17
"""Hashes that are merged at once: sorting less than a megabyte is not worth the while."""


@dataclass(frozen=True)
class Distinct(Metric):
    """Share of different n-grams: within a response, and over all responses of a system."""

    name = "distinct"
    range = (0.0, 1.0)
    citation = (
        "Li, Galley, Brockett, Gao, Dolan: A Diversity-Promoting Objective Function for Neural"
        " Conversation Models. NAACL 2016"
    )

    n: int = option(2, "order of the n-grams that give the score", low=ORDERS[0], high=ORDERS[-1])
    lowercase: bool = option(False, "ignore case")

    def score(self, sample: Sample, answers: Sequence[Answer]) -> Score:
        words = self.words(sample)
        counts = {}
        for order in ORDERS:
            different = len(set(zip(*(islice(words, n, None) for n in range(order)), strict=False)))
            counts[order] = (different, max(0, len(words) - order + 1))
        return self.to_score(counts, words)

    def words(self, sample: Sample) -> list[str]:
        response = sample.response or ""
        return (response.lower() if self.lowercase else response).split()

    def to_score(self, counts: dict[int, tuple[int, int]], words: Sequence[str] = ()) -> Score:
        """`counts` gives, by order, how many different n-grams there are among how many; `words` is
        what a pool is to count."""
        parts = {f"distinct-{n}": unique / total for n, (unique, total) in counts.items() if total}
        headline = f"distinct-{self.n}"
        if headline not in parts:
            return Score.missing("too short", words)
        return Score(parts[headline], parts, counts=words)

    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(f"distinct-{n}", f"share of different {n}-grams") for n in ORDERS)

    def pool(self) -> DistinctPool:
        return DistinctPool(self)


class DistinctPool:
    """distinct-n of all responses of one system."""

    def __init__(self, metric: Distinct, words_per_batch: int = WORDS_PER_BATCH) -> None:
        self._metric = metric
        self._words_per_batch = words_per_batch
        self._words: list[str] = []
        self._lengths: list[int] = []
        self._seen = {order: HashSet() for order in ORDERS}
        self._totals = dict.fromkeys(ORDERS, 0)

    def add(self, score: Score) -> None:
        words = score.counts
        self._words += words
        self._lengths.append(len(words))
        if max(len(self._words), len(self._lengths)) >= self._words_per_batch:
            self._count()

    def merge(self, other: DistinctPool) -> None:
        other._count()
        for order in ORDERS:
            self._seen[order].update(other._seen[order])
            self._totals[order] += other._totals[order]

    def __getstate__(self) -> dict[str, Any]:
        """Counts first, so that no texts are sent to another process."""
        self._count()
        return self.__dict__

    def result(self) -> Score:
        self._count()
        counts = {order: (len(self._seen[order]), self._totals[order]) for order in ORDERS}
        return self._metric.to_score(counts)

    def _count(self) -> None:
        import numpy as np

        words = np.fromiter(map(_hash_word, self._words), np.uint64, len(self._words))
        response = np.repeat(np.arange(len(self._lengths)), self._lengths)
        ngrams = words
        for order in ORDERS:
            if order > 1:
                ngrams = _mix(ngrams[:-1]) + words[order - 1 :]
            # An n-gram has to end in the response where it starts.
            whole = response[: len(ngrams)] == response[order - 1 :]
            self._seen[order].add(ngrams[whole])
            self._totals[order] += int(whole.sum())
        self._words, self._lengths = [], []


@lru_cache(maxsize=1 << 16)
def _hash_word(word: str) -> int:
    """64 bits of BLAKE2b. Dialogue uses few words often: most are remembered."""
    digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _mix(hashes: Hashes) -> Hashes:
    """Applies the finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): a bijection that
    makes a sum with another hash depend on the order of the two."""
    import numpy as np

    mixed = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class HashSet:
    """A set of 64-bit numbers: one sorted array, and what has not been merged into it yet."""

    def __init__(self) -> None:
        import numpy as np

        self._sorted: Hashes = np.empty(0, np.uint64)
        self._pending: list[Hashes] = []
        self._pending_size = 0

    def add(self, hashes: Hashes) -> None:
        self._hold(_unique(hashes))

    def update(self, other: HashSet) -> None:
        """Adds another set, which stays as it is."""
        for unique in (other._sorted, *other._pending):
            self._hold(unique)

    def _hold(self, unique: Hashes) -> None:
        self._pending.append(unique)
        self._pending_size += len(unique)
        # Merging only when the set may have grown by half keeps the total cost at n log n.
        if self._pending_size > max(len(self._sorted) // 2, MERGE_AT_LEAST):
            self._merge()

    def _merge(self) -> None:
        import numpy as np

        self._sorted = _unique(np.concatenate([self._sorted, *self._pending]))
        self._pending, self._pending_size = [], 0

    def __len__(self) -> int:
        self._merge()
        return len(self._sorted)


def _unique(hashes: Hashes) -> Hashes:
    """Sorted, each once; sorts its argument. `np.unique` builds a hash table first, which is slower
    and several times larger."""
    import numpy as np

    hashes.sort()
    first = np.ones(len(hashes), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    return hashes[first]
