"""Data sets that are one: what was fitted on one of them would be tried on itself.

FED is a data set of its own and two of DSTC10's; USR and GRADE occur twice as well. Whatever the
files are called, sets that share a conversation are *relatives*, and are left out together. Sets
of one level that share more than half of their samples are *the same*, and count once in a mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from dialeval.compose.evidence import Evidence


@dataclass(frozen=True)
class Families:
    """Places of data sets, in groups: each set is in one of `same` and in one of `relatives`."""

    same: tuple[tuple[int, ...], ...]
    relatives: tuple[tuple[int, ...], ...]
    notes: tuple[str, ...]


def find_families(sets: Sequence[Evidence]) -> Families:
    notes = []
    for a, b in combinations(sets, 2):
        shared = len(a.texts & b.texts)
        if is_same(a, b):
            notes.append(
                f"{a.name} and {b.name} hold the same {a.level}s ({shared}): they count once, and"
                " are left out together"
            )
        elif are_relatives(a, b):
            notes.append(
                f"{a.name} and {b.name} share {shared} texts: they are left out together"
                if shared
                else f"{a.name} and {b.name} come from one run: they are left out together"
            )
    return Families(_groups(sets, is_same), _groups(sets, are_relatives), tuple(notes))


def is_same(a: Evidence, b: Evidence) -> bool:
    shared = len(a.texts & b.texts)
    return a.level == b.level and shared > min(len(a.texts), len(b.texts)) / 2


def are_relatives(a: Evidence, b: Evidence) -> bool:
    return a.digest == b.digest or bool(a.texts & b.texts)


def _groups(
    sets: Sequence[Evidence], joined: Callable[[Evidence, Evidence], bool]
) -> tuple[tuple[int, ...], ...]:
    """Connected sets, in the order of their first member."""
    group = list(range(len(sets)))
    for (i, a), (j, b) in combinations(enumerate(sets), 2):
        if joined(a, b):
            low, high = sorted((group[i], group[j]))
            group = [low if g == high else g for g in group]
    return tuple(
        tuple(place for place, g in enumerate(group) if g == first)
        for first in dict.fromkeys(group)
    )
