"""A set of ids in a few bytes each: their 64-bit hashes, in one flat array with open addressing.

A Python set of a million ids takes a hundred megabytes or more; this takes sixteen. Two different
ids share a hash with probability 3e-8 in a million ids; Python salts the hashes of each process, so
that nobody can prepare a file of ids that collide.
"""

from __future__ import annotations

from array import array


class IdSet:
    """Tells whether an id was seen before."""

    def __init__(self) -> None:
        self._mask = (1 << 12) - 1
        self._table = array("q", [0]) * (self._mask + 1)  # 0 is an empty slot
        self._free = self._mask // 2

    def holds_or_adds(self, ident: str) -> bool:
        """True if the id is there; otherwise it is added."""
        value = hash(ident) or 1
        table, mask = self._table, self._mask
        slot = value & mask
        while found := table[slot]:
            if found == value:
                return True
            slot = (slot + 1) & mask
        table[slot] = value
        self._free -= 1
        if not self._free:
            self._grow()
        return False

    def _grow(self) -> None:
        old = self._table
        self._mask = mask = 2 * self._mask + 1
        self._free = (mask + 1) // 2 - (mask + 1) // 4
        table = array("q", [0]) * (mask + 1)
        for value in old:
            if value:
                slot = value & mask
                while table[slot]:
                    slot = (slot + 1) & mask
                table[slot] = value
        self._table = table
