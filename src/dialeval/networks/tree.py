"""Many sequences as one: a prefix tree, flattened so that a transformer reads it in one pass.

Sequences that begin alike share the nodes of what they have in common. Written down in preorder
(a node, then everything below it), the tree is one list of tokens. A token's position is its depth,
and it may attend to its ancestors only. Preorder makes both simple:

    node `a` is an ancestor of node `b`, or `b` itself,  if and only if  a <= b < end of a

where the end of a node is one past its last descendant. So a transformer computes for each node
what it would compute at the end of the path that leads there, and nothing else can be seen.

A run of consecutive nodes sees only the union of their ancestors: a short list of keys, whatever
else is in the list. Attention is computed run by run on these keys, so that its cost grows with the
depth of the trees and not with the number of tokens packed beside each other.

`plan_passes` says which sequences go into one forward pass: a budget of tokens, cut where the least
is shared.


The sequences come in sorted order, so that all that begin alike stand together. A pass is filled in
this order up to the budget. Where it ends, the next one begins with the whole path of its first
sequence: what that shares with its predecessor is computed twice. So the end is put, within the
second half of the budget, where least is shared, which is between two dialogues if any ends there.
A dialogue that is larger than the budget is cut between its branches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    import numpy.typing as npt


ROWS_PER_VIEW = 256
"""Nodes that attend together. More would look at more keys in vain, fewer would mean many small
products; from 64 to 512 the difference is small."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Prefix trees in preorder. `paths[i]` holds the nodes of sequence i, from root to leaf."""

    tokens: npt.NDArray[np.int64]
    depths: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    paths: tuple[npt.NDArray[np.int64], ...]


def shared_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Returns how many tokens two sequences have in common, from the left."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def grow(sequences: Sequence[Sequence[int]]) -> Forest:
    """Returns the forest of sequences in sorted order: each then shares most with the one before
    it."""
    tokens: list[int] = []
    depths: list[int] = []
    ends: list[int] = []
    path: list[int] = []
    paths = []
    previous: Sequence[int] = ()
    for sequence in sequences:
        shared = shared_prefix(previous, sequence)
        for node in path[shared:]:
            ends[node] = len(tokens)
        new = len(sequence) - shared
        path[shared:] = range(len(tokens), len(tokens) + new)
        tokens += sequence[shared:]
        depths += range(shared, len(sequence))
        ends += [0] * new
        paths.append(np.array(path, dtype=np.int64))
        previous = sequence
    for node in path:
        ends[node] = len(tokens)
    return Forest(
        tokens=np.array(tokens, dtype=np.int64),
        depths=np.array(depths, dtype=np.int64),
        ends=np.array(ends, dtype=np.int64),
        paths=tuple(paths),
    )


@dataclass(frozen=True, slots=True)
class View:
    """What the nodes `rows` see: the nodes `keys`, of which `mask` (0 or -inf) leaves ancestors."""

    rows: slice
    keys: slice | torch.Tensor
    mask: torch.Tensor


def views(
    forest: Forest, device: torch.device | str = "cpu", rows_per_view: int = ROWS_PER_VIEW
) -> list[View]:
    """Returns the attention of a forest, run by run."""
    return list(_views(forest, device, rows_per_view))


def _views(forest: Forest, device: torch.device | str, rows_per_view: int) -> Iterator[View]:
    for start in range(0, len(forest.tokens), rows_per_view):
        stop = min(start + rows_per_view, len(forest.tokens))
        rows = np.arange(start, stop)[:, None]
        keys = np.flatnonzero(forest.ends[:stop] > start)
        seen = torch.from_numpy((keys <= rows) & (rows < forest.ends[keys]))
        mask = torch.zeros(seen.shape).masked_fill_(~seen, -torch.inf).to(device)
        first, last = int(keys[0]), int(keys[-1])
        gapless = last - first + 1 == len(keys)
        where = slice(first, stop) if gapless else torch.from_numpy(keys).to(device)
        yield View(slice(start, stop), where, mask)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    tree: Sequence[View],
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Tree attention with the signature that transformers expects of an attention function.

    Shapes: query (1, heads, nodes, width); key and value may have fewer heads, each of which then
    serves a group of query heads. Such a group is laid out as a batch, so nothing is copied.
    """
    _, heads, nodes, width = query.shape
    groups = key.shape[1]
    shape = (groups, heads // groups, -1, width)
    mixed = query.new_empty(1, nodes, heads, value.shape[-1])
    for view in tree:
        part = torch.nn.functional.scaled_dot_product_attention(
            query[0, :, view.rows].view(shape),
            key[0][:, view.keys].unsqueeze(1).expand(shape),
            value[0][:, view.keys].unsqueeze(1).expand(*shape[:3], value.shape[-1]),
            attn_mask=view.mask,
            scale=scaling,
        )
        mixed[0, view.rows] = part.reshape(heads, -1, value.shape[-1]).transpose(0, 1)
    return mixed, None


@dataclass(frozen=True, slots=True)
class Passes:
    """Sequences in sorted order, and what each shares with the one before it."""

    sequences: Sequence[Sequence[int]]
    shared: Sequence[int]

    @property
    def minimum(self) -> int:
        """The tokens of the whole prefix tree: no exact computation can do with fewer."""
        return sum(map(len, self.sequences)) - sum(self.shared)

    def tokens(self, start: int, stop: int) -> int:
        """Returns the tokens of one pass over some of the sequences."""
        lengths = sum(len(sequence) for sequence in self.sequences[start:stop])
        return lengths - sum(self.shared[start + 1 : stop])

    def next_stop(self, start: int, budget: int) -> int:
        """Returns where a pass that begins at `start` should end; it holds at least one
        sequence."""
        tokens = len(self.sequences[start])
        candidates = []
        for stop in range(start + 1, len(self.sequences)):
            if tokens * 2 >= budget:
                candidates.append(stop)
            tokens += len(self.sequences[stop]) - self.shared[stop]
            if tokens > budget:
                return min(candidates or [stop], key=lambda at: (self.shared[at], -at))
        return len(self.sequences)


def plan_passes(sequences: Sequence[Sequence[int]]) -> Passes:
    """Returns the plan for sequences in sorted order."""
    previous: Sequence[int] = ()
    shared = []
    for sequence in sequences:
        shared.append(shared_prefix(previous, sequence))
        previous = sequence
    return Passes(sequences, shared)
