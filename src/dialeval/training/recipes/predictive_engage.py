"""`dialeval train predictive-engage`: is this answer engaging? (Ghazarian et al., AAAI 2020)

Everything that a speaker said in a conversation that its partner rated 3 of 5 or higher counts as
engaging, and everything in others as not: the paper's heuristic (section 4), by which ratings of
ConvAI become labels of utterances. Its own labels of single replies (the data set `engage`) are
learned from beside them; the paper tunes on them afterwards. The two classes of a batch have the
same weight, and the epoch of the highest AUC on held-out conversations is kept.

ConvAI 2017 is not public any more in a place that we know. `convai2-human`, the conversations of
people with bots of ConvAI2, takes its place; a file of ConvAI 2017 is read as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.options import option
from dialeval.training.recipe import epochs_option, patience_option
from dialeval.training.recipes.sentence_head import HeadExamples, SentenceHead

if TYPE_CHECKING:
    import numpy as np

    from dialeval.training.examples.engagement import Engaging
    from dialeval.training.examples.pair_corpus import Example


@dataclass(frozen=True, kw_only=True)
class PredictiveEngage(SentenceHead):
    """Teach a head which replies are engaging, from ratings of conversations.

    The data are rated conversations: convai2-human, engage, topical-chat, or a file of ConvAI 2017.
    """

    name = "predictive-engage"
    metric = "predictive-engage"
    head = "mean"
    balanced = True

    turns: int = 1
    epochs: int = epochs_option(60)
    patience: int = patience_option(10)
    dropout: float = option(0.5, "Drop this share of units (.8 in the paper).", low=0.0, high=0.9)
    per_source: int = option(
        5_000, "Learn from at most this many responses of each source; 0: from all.", low=0
    )

    units: tuple[int, ...] = field(default=(64, 32, 8))

    @property
    def about(self) -> str:
        return (
            "Is a reply engaging? A head on the mean of two frozen sentence vectors that learned"
            " from conversations that partners rated (3 of 5 or higher: engaging)."
        )

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.training.examples.engagement import load_engagement
        from dialeval.training.examples.pair_corpus import ExampleSets

        found = load_engagement(data)
        generator = np.random.default_rng([self.seed, 1])
        learn = _examples(_some(found.train, self.per_source, generator))
        validation = _some(found.validation, self.per_source, generator)
        return HeadExamples(
            ExampleSets(
                lambda epoch: learn,
                _examples(validation),
                found.digest(),
                {
                    "sha256": found.digest(),
                    "replies to learn from": len(learn),
                    "of them engaging": sum(one.target > 0.5 for one in learn),
                    "replies to validate on": len(validation),
                    **found.left_out.facts(),
                },
                by_source={
                    source: _examples([one for one in validation if one.source == source])
                    for source in sorted({one.source for one in validation})
                },
            )
        )


def _some(found: Sequence[Engaging], most: int, generator: np.random.Generator) -> list[Engaging]:
    """Draws at most this many of each source; 0: all."""
    counts = Counter[str]()
    kept = []
    for place in generator.permutation(len(found)).tolist():
        counts[found[place].source] += 1
        if not most or counts[found[place].source] <= most:
            kept.append(found[place])
    return kept


def _examples(found: Sequence[Engaging]) -> list[Example]:
    """Labels: 3 of 5 is the middle of the scale, and counts as engaging."""
    from dialeval.training.examples.pair_corpus import Example

    return [Example(one.context[-1:], one.text, float(one.target >= 0.5)) for one in found]
