"""Which sequences go into one forward pass: a budget of tokens, cut where the least is shared.

The sequences come in sorted order, so that all that begin alike stand together. A pass is filled in
this order up to the budget. Where it ends, the next one begins with the whole path of its first
sequence: what that shares with its predecessor is computed twice. So the end is put, within the
second half of the budget, where least is shared, which is between two dialogues if any ends there.
A dialogue that is larger than the budget is cut between its branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dialeval.models.tree import shared_prefix


@dataclass(frozen=True, slots=True)
class Plan:
    """Sequences in sorted order, and what each shares with the one before it."""

    sequences: Sequence[Sequence[int]]
    shared: Sequence[int]

    @property
    def minimum(self) -> int:
        """The tokens of the whole prefix tree: no exact computation can do with fewer."""
        return sum(map(len, self.sequences)) - sum(self.shared)

    def tokens(self, start: int, stop: int) -> int:
        """The tokens of one pass over some of the sequences."""
        lengths = sum(len(sequence) for sequence in self.sequences[start:stop])
        return lengths - sum(self.shared[start + 1 : stop])

    def next_stop(self, start: int, budget: int) -> int:
        """Where a pass that begins at `start` should end; it holds at least one sequence."""
        tokens = len(self.sequences[start])
        candidates = []
        for stop in range(start + 1, len(self.sequences)):
            if tokens * 2 >= budget:
                candidates.append(stop)
            tokens += len(self.sequences[stop]) - self.shared[stop]
            if tokens > budget:
                return min(candidates or [stop], key=lambda at: (self.shared[at], -at))
        return len(self.sequences)


def plan(sequences: Sequence[Sequence[int]]) -> Plan:
    """The plan for sequences in sorted order."""
    previous: Sequence[int] = ()
    shared = []
    for sequence in sequences:
        shared.append(shared_prefix(previous, sequence))
        previous = sequence
    return Plan(sequences, shared)
