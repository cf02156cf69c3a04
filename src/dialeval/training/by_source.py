"""What a judge knows beyond the source and the length of a response, on examples it never saw.

A judge that learned from several sources can be right by telling the sources apart, and one that
likes long responses can be right because people do. So a card shows, for each source alone:

    majority   how often somebody is right who always gives the commoner answer
    accuracy   how often the judge is right: it has learned something where this is more
    spearman   of its scores with the labels
    partial    the same with the number of words held constant (Spearman's partial correlation)
    length     of the number of words with its scores: what the judge makes of length
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dialeval.agreement.correlation import spearman


@dataclass(frozen=True)
class SourceScores:
    """One source. None: not defined, as a correlation with labels that are all the same, or as the
    accuracy of a judge that was taught an order and no threshold."""

    source: str
    n: int
    majority: float
    accuracy: float | None
    spearman: float | None
    partial: float | None
    length: float | None

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


def score_source(
    source: str,
    scores: Sequence[float],
    labels: Sequence[float],
    words: Sequence[int],
    threshold: float | None = 0.5,
) -> SourceScores:
    """`scores` above the threshold say that the label is above one half; None: they only say an
    order."""
    found, wanted = np.asarray(scores, dtype=float), np.asarray(labels, dtype=float)
    lengths = np.asarray(words, dtype=float)
    good = float((wanted > 0.5).mean())
    right = None if threshold is None else float(((found > threshold) == (wanted > 0.5)).mean())
    plain = spearman(found, wanted).value
    length = spearman(found, lengths).value
    asked = spearman(wanted, lengths).value
    return SourceScores(
        source,
        len(found),
        max(good, 1.0 - good),
        right,
        plain,
        partial_correlation(plain, length, asked),
        length,
    )


def word_count(text: str) -> int:
    return len(text.split())


def partial_correlation(xy: float | None, xz: float | None, yz: float | None) -> float | None:
    """Of x and y with z held constant. Where z never changes it is that of x and y, and where z
    says all about one of them there is none."""
    if xy is None:
        return None
    x, y = xz or 0.0, yz or 0.0
    left = (1 - x * x) * (1 - y * y)
    return (xy - x * y) / math.sqrt(left) if left > 1e-12 else None


def source_cells(rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A header and a row for each source."""
    names = ("source", "n", "majority", "accuracy", "spearman", "partial", "length")
    header = ["source", "n", "majority", "accuracy", "Spearman", "given length", "with length"]
    return [header, *([_shown(row[name]) for name in names] for row in rows)]


def source_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """As Markdown, for a card."""
    header, *cells = ["| " + " | ".join(row) + " |" for row in source_cells(rows)]
    return [header, "|---|---:|---:|---:|---:|---:|---:|", *cells]


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
