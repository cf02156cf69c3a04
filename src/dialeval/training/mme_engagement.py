"""What `mme-engagement` is taught: how much people liked what was said (see `engagement_data`).

Sources differ in size by a hundred times and in their mean by half of the scale, so that a judge
could guess the source instead. An epoch therefore takes as many responses of each source, anew by
lot, those of small sources several times; what is validated on is balanced in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.training.card import licence_of
from dialeval.training.engagement_data import Engaging, balance, load_engagement
from dialeval.training.judge_recipe import Example
from dialeval.training.train_text_judge import Lesson


def engagement_lesson(
    data: Sequence[Path], *, per_source: int, seed: int, licence: str | None
) -> Lesson:
    """`per_source`: responses of each source in an epoch."""
    found = load_engagement(data)
    held = balance(found.validation, max(1, per_source // 4), np.random.default_rng(0))

    def of_epoch(epoch: int) -> list[Example]:
        return _examples(balance(found.train, per_source, np.random.default_rng([seed, epoch])))

    return Lesson(
        summary="How engaging is a response, from 0 to 1? Learned from what partners and readers"
        " said about single responses and whole conversations.",
        examples=of_epoch,
        validation=_examples(held),
        measured={
            f"validation, {source}": _examples(
                [one for one in found.validation if one.source == source]
            )
            for source in sorted({one.source for one in found.validation})
        },
        digest=found.digest(),
        data={
            "sha256": found.digest(),
            **_counts("to learn from", found.train),
            **_counts("to validate on", found.validation),
            "responses of each source in an epoch": per_source,
            **found.left_out.facts(),
        },
        licence=licence or licence_of(data),
    )


def _examples(found: Sequence[Engaging]) -> list[Example]:
    return [Example((), one.text, one.target) for one in found]


def _counts(what: str, found: Sequence[Engaging]) -> dict[str, Any]:
    return {
        f"responses {what}, {source}": count
        for source, count in sorted(Counter(one.source for one in found).items())
    }
