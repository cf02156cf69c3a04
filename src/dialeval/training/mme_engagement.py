"""What `mme-engagement` is taught: which response people liked better (see `engagement_data`).

MME-CRS learns the labels. Ours come from sources that differ in size by a hundred times and in
their mean by half of the scale, and people like longer messages: a judge of labels learned to tell
the sources apart (AUC .94) and to count words (Spearman .79), and within a source it knew nothing.
So it learns the order of two responses of one source that are equally long. An epoch takes at most
`per_source` pairs of each source, anew by lot; what is validated on is drawn in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.errors import UsageError
from dialeval.training.card import licence_of
from dialeval.training.examples.engagement import Engaging, load_engagement, matched_pairs
from dialeval.training.learners.judge_recipe import Example
from dialeval.training.train_text_judge import Lesson


def engagement_lesson(
    data: Sequence[Path], *, per_source: int, seed: int, licence: str | None
) -> Lesson:
    """`per_source`: most pairs of each source in an epoch."""
    found = load_engagement(data)

    def pairs(
        among: Sequence[Engaging], count: int, generator: np.random.Generator
    ) -> list[Example]:
        drawn = matched_pairs(among, max(1, count), generator)
        if not drawn:
            raise UsageError(
                "no source holds two responses that are equally long and were rated otherwise:"
                " there is no order to learn"
            )
        return _examples([one for pair in drawn for one in (pair.better, pair.worse)])

    def of_epoch(epoch: int) -> list[Example]:
        return pairs(found.train, per_source, np.random.default_rng([seed, epoch]))

    held = {
        source: [one for one in found.validation if one.source == source]
        for source in sorted({one.source for one in found.validation})
    }

    return Lesson(
        summary="How engaging is a response, from 0 to 1? Learned from which of two responses of"
        " one source, equally long, partners and readers liked better.",
        examples=of_epoch,
        validation=pairs(found.validation, per_source // 4, np.random.default_rng(0)),
        measured={},
        by_source={source: _examples(own) for source, own in held.items()},
        ranked=True,
        digest=found.digest(),
        data={
            "sha256": found.digest(),
            **_counts("to learn from", found.train),
            **_counts("to validate on", found.validation),
            "pairs of each source in an epoch, at most": per_source,
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
