"""The pool of metrics whose counts are whole numbers to be added up: corpus BLEU and chrF."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dialeval.scores import Score


class SummedCounts:
    """Adds up `size` counts of each score; `to_score` makes the score of a system of the sums."""

    def __init__(self, size: int, to_score: Callable[[Sequence[int]], Score]) -> None:
        self._to_score = to_score
        self._sums = [0] * size

    def add(self, score: Score) -> None:
        self._sums = _added(self._sums, score.counts)

    def merge(self, other: SummedCounts) -> None:
        self._sums = _added(self._sums, other._sums)

    def result(self) -> Score:
        return self._to_score(self._sums)


def _added(sums: Sequence[int], counts: Sequence[int]) -> list[int]:
    return [total + count for total, count in zip(sums, counts, strict=True)]
