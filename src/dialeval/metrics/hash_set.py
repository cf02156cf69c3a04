"""A set of 64-bit numbers in 8 bytes each: how `distinct` remembers millions of n-grams."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

MERGE_AT_LEAST = 1 << 17
"""Sorting less than a megabyte is not worth the while."""


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
        """The union with another set, which stays as it is."""
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
