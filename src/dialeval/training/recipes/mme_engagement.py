"""`dialeval train mme-engagement`: which response did people like better?

MME-CRS learns the labels. Our sources (`examples/engagement.py`) differ in size by a hundred times
and in their mean by half of the scale, and people like longer messages: a judge of labels learned
to tell the sources apart (AUC .94) and to count words (Spearman .79), and within a source it knew
nothing. So by default the judge learns the order of two responses of one source that are equally
long. An epoch draws at most `per_source` pairs of each source again; validation pairs are drawn in
the same way. `target="label"` learns the ratings themselves, from 0 to 1, by cross-entropy with a
soft label, as the paper does from ConvAI 2017.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dialeval.errors import UsageError
from dialeval.options import option
from dialeval.training.recipe import epochs_option
from dialeval.training.recipes.text_judge import PreparedJudge, TextJudge

if TYPE_CHECKING:
    import numpy as np

    from dialeval.models.text_judge import TextJudgeConfig
    from dialeval.training.examples.engagement import Engaging
    from dialeval.training.examples.pair_corpus import Example, ExampleSets
    from dialeval.training.run import Training

NOT_HERE = "groups that a language model rated, texts not here"


@dataclass(frozen=True, kw_only=True)
class MmeEngagement(TextJudge):
    """Teach an encoder which responses are engaging, from ratings of conversations.

    The encoder learns the order of two equally long responses of one source, so that it can learn
    neither the source nor the length. With `--target label` it learns the ratings. The data are
    rated conversations (topical-chat, convai2-human, engage, or a file of ConvAI 2017), or
    model-ratings: single answers that a language model rated, with texts from the installed
    corpora.
    """

    name = "mme-engagement"
    metric = "mme-engagement"
    usual_rates: ClassVar[tuple[float, float]] = (3e-4, 1e-5)

    epochs: int = epochs_option(2)
    per_source: int = option(
        1000,
        "Draw at most this many pairs of each source per epoch; with --target label, this many"
        " responses, or with 0 all.",
        low=0,
    )
    target: Literal["order", "label"] = option(
        "order",
        "Choose what to learn. order: which of two responses of one source people liked better."
        " label: the rating, from 0 to 1, as in the paper.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.per_source and self.target == "order":
            raise UsageError("--per-source 0, all responses, is for --target label")

    @property
    def about(self) -> str:
        if self.target == "label":
            return "How engaging is a response, from 0 to 1? Learned from ratings on that scale."
        return (
            "How engaging is a response, from 0 to 1? Learned from which of two responses of one"
            " source, equally long, partners and readers liked better."
        )

    def judge_config(self) -> TextJudgeConfig:
        from dialeval.models.text_judge import TextJudgeConfig

        return TextJudgeConfig(
            "mme-engagement",
            self.model,
            "response",
            "mean",
            context_tokens=0,
            response_tokens=self.response_tokens,
            hidden=(64,),
            rank=self.adapter_rank,
            alpha=2.0 * self.adapter_rank,
        )

    def example_sets(self, data: Sequence[Path]) -> ExampleSets:
        import numpy as np

        from dialeval.training.examples.engagement import load_engagement, matched_pairs
        from dialeval.training.examples.pair_corpus import ExampleSets

        found = load_engagement(data)

        def pairs(
            among: Sequence[Engaging], count: int, generator: np.random.Generator
        ) -> list[Example]:
            drawn = matched_pairs(among, max(1, count), generator)
            if not drawn:
                raise UsageError(
                    "no source holds two responses that are equally long and differ in their"
                    " rating: there is no order to learn"
                )
            return _examples([one for pair in drawn for one in (pair.better, pair.worse)])

        def some(
            among: Sequence[Engaging], count: int, generator: np.random.Generator
        ) -> list[Example]:
            """Returns pairs, or for labels single responses of each source, each once."""
            if self.target == "order":
                return pairs(among, count, generator)
            taken: Counter[str] = Counter()
            kept = []
            for place in generator.permutation(len(among)).tolist():
                taken[among[place].source] += 1
                if not count or taken[among[place].source] <= count:
                    kept.append(among[place])
            return _examples(kept)

        def of_epoch(epoch: int) -> list[Example]:
            return some(found.train, self.per_source, np.random.default_rng([self.seed, epoch]))

        sources = sorted({one.source for one in found.validation})
        return ExampleSets(
            of_epoch,
            some(found.validation, self.per_source // 4, np.random.default_rng(0)),
            found.digest(),
            {
                "sha256": found.digest(),
                **_counts("to learn from", found.train),
                **_counts("to validate on", found.validation),
                f"{'pairs' if self.target == 'order' else 'responses'} of each source in an epoch,"
                " at most": self.per_source or "all",
                **({NOT_HERE: found.missing} if found.missing else {}),
                **found.left_out.facts(),
            },
            by_source={
                source: _examples([one for one in found.validation if one.source == source])
                for source in sources
            },
        )

    def learner_class(self) -> Any:
        from dialeval.training.learners.text_judge import RankingLearner, TextJudgeLearner

        return RankingLearner if self.target == "order" else TextJudgeLearner

    def learn(self, prepared: PreparedJudge, training: Training) -> Sequence[Mapping[str, float]]:
        state = training.stage(prepared.learner, self.settings())
        if self.target == "label":
            return state.curve
        if state.best_epoch < 0:
            raise UsageError(
                "no epoch orders held-out pairs better than the start: nothing was learned. Take"
                " more data, a lower --learning-rate or fewer --epochs"
            )
        learner: Any = prepared.learner
        learner.standardise()
        return state.curve

    @property
    def threshold(self) -> float | None:
        return None if self.target == "order" else super().threshold

    def measured(
        self, name: str, examples: Sequence[Example], logits: Any
    ) -> tuple[str, float | None]:
        from dialeval.training.learners.text_judge import in_order

        if self.target == "label":
            return super().measured(name, examples, logits)
        pairs = len(examples) // 2
        return f"pairs in order on {name} ({pairs:,} pairs; .5 by chance)", in_order(logits)


def _examples(found: Sequence[Engaging]) -> list[Example]:
    from dialeval.training.examples.pair_corpus import Example

    return [Example((), one.text, one.target) for one in found]


def _counts(what: str, found: Sequence[Engaging]) -> dict[str, Any]:
    return {
        f"responses {what}, {source}": count
        for source, count in sorted(Counter(one.source for one in found).items())
    }
