"""PONE's label filter (section 3.3.4): augmented responses get the label that the scorer gives.

A variant of a good response need not be good. The scorer, trained as if all were, scores them:
those at or below theta or at or above 1 - theta keep a pseudo-label (score > .5), the others are
dropped, or called good after all (`change`). Then it is trained on, and labels anew.

    paper     every variant is labelled (theta .5), until no label changes; labels are made without
              dropout. The learning rate falls from round to round: at a constant one labels come
              to rest only when the scorer knows its training pairs by heart. A training whose
              labels still change after `rounds` rounds says so
    released  theta .05, as many rounds as asked for, no test of change; labels are made with
              dropout active, since the released code never leaves training mode;
              `released_filter` has its numbers
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

FilterMode = Literal["paper", "released", "none"]

Doubtful = Literal["drop", "change"]


@dataclass(frozen=True)
class FilterOptions:
    """How labels are filtered.

    threshold      theta: how near to 0 or 1 a score must be; .5 keeps all
    doubtful       what happens to the others
    rounds         most rounds of labelling and training
    epochs         epochs of a round
    learning_rate  of these epochs, in the first round
    decay          what it is multiplied with from round to round
    """

    mode: FilterMode = "paper"
    threshold: float = 0.5
    doubtful: Doubtful = "drop"
    rounds: int = 100
    epochs: int = 2
    learning_rate: float = 1e-4
    decay: float = 0.7


RELEASED_EPOCHS = 75
RELEASED_THRESHOLD = 0.05


def released_filter(
    positives: str, threshold: float | None, rounds: int | None, doubtful: Doubtful = "drop"
) -> FilterOptions:
    """The recipes of the released code: labels anew every 2 epochs with EDA and every 5 with beams,
    at a learning rate that hardly moves anything."""
    by_eda = positives == "eda"
    epochs = 2 if by_eda else 5
    return FilterOptions(
        "released",
        RELEASED_THRESHOLD if threshold is None else threshold,
        doubtful,
        rounds=rounds or RELEASED_EPOCHS // epochs,
        epochs=epochs,
        learning_rate=1e-7 if by_eda else 1e-6,
        decay=1.0,
    )


@dataclass(frozen=True)
class Labels:
    """Which samples are kept, in this order, and their pseudo-labels, 0 or 1."""

    kept: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]

    def changes(self, before: Labels, size: int) -> int:
        """Samples of `size` whose label, or whose being kept, is not what it was."""
        return int((self._dense(size) != before._dense(size)).sum())

    def _dense(self, size: int) -> npt.NDArray[np.int64]:
        dense = np.full(size, -1, dtype=np.int64)
        dense[self.kept] = self.labels
        return dense


def filter_labels(
    scores: npt.NDArray[np.floating], threshold: float, doubtful: Doubtful = "drop"
) -> Labels:
    """Pseudo-labels by score; with `change`, the doubtful stand behind the others, as good."""
    sure = (scores <= threshold) | (scores >= 1.0 - threshold)
    kept, others = np.flatnonzero(sure), np.flatnonzero(~sure)
    labels = (scores[kept] > 0.5).astype(np.int64)
    if doubtful == "change":
        kept = np.concatenate([kept, others])
        labels = np.concatenate([labels, np.ones(len(others), dtype=np.int64)])
    return Labels(kept, labels)
