"""`dialeval train judge`: the second stage of `judge`, on ratings of people.

On ratings of one's own it starts from the shipped judge; on several rated sets it starts from
nothing. `training/judge_ratings.py` has the fit, `training/judge_ratings.py` what it is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.errors import UsageError
from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipe import Measures, Prepared, Progress, Recipe

if TYPE_CHECKING:
    from dialeval.models.quality_stack import Floats, Readers, StackConfig
    from dialeval.training.examples.rated_answers import Rated
    from dialeval.training.judge_ratings import Fitted
    from dialeval.training.run import Training


@dataclass
class PreparedRatings(Prepared[None]):
    """The encoders that read, the rated answers, the pairs, and after `learn` what was fitted."""

    readers: Readers
    rated: Sequence[Rated]
    pairs: Floats
    start: StackConfig | None
    fitted: Fitted | None = None

    @property
    def found(self) -> Fitted:
        assert self.fitted is not None
        return self.fitted


@dataclass(frozen=True, kw_only=True)
class JudgeOnRatings(Recipe[PreparedRatings]):
    """Teach the judge how people rate answers: yours, or those of several data sets.

    The training starts from the shipped judge, and departs from it only as far as
    cross-validation supports: fifty ratings set the scale, some hundreds change the weights.
    """

    name = "judge"
    metric = "judge"

    start: str = option(
        PRESETS["default"]["judge"], "Start from this judge ('': fit several sets from nothing)."
    )
    base: str = option(
        "judge-corpus-minilm-l6", "Read with this judge, made by judge-corpus; needs --start ''."
    )
    encoder: str = option(
        PRESETS["default"]["sentence-encoder"], "Embed texts with this encoder; needs --start ''."
    )
    relevance: str = option(
        PRESETS["default"]["mme-relevance"], "Ask this model of mme-relevance; needs --start ''."
    )
    pone: str = option(PRESETS["default"]["pone"], "Ask this model of pone; needs --start ''.")
    engagement: str = option(
        PRESETS["default"]["predictive-engage"],
        "Ask this model of predictive-engage; needs --start ''.",
    )
    quality: str | None = option(None, "Learn this quality as the overall one.")
    most: int = option(1500, "Read at most this many answers of a set.", low=10)

    def __post_init__(self) -> None:
        for name in ("base", "encoder", "relevance", "pone", "engagement"):
            usual = next(one.default for one in fields(self) if one.name == name)
            if self.start and getattr(self, name) != usual:
                raise UsageError(
                    f"--{name} is for a judge from nothing (--start ''): {self.start} has its own"
                )

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedRatings:
        from dialeval.engine.answers import AnswerCache, Answerer, default_cache_path
        from dialeval.model_store.locate import locate
        from dialeval.models.quality_stack import Readers, StackConfig
        from dialeval.models.source import Models
        from dialeval.readers import load
        from dialeval.training.examples.rated_answers import pair_features, rated_features

        start = StackConfig.read(locate(self.start).directory) if self.start else None
        own = Readers(self.base, self.encoder, self.relevance, self.pone, self.engagement)
        readers = start.readers if start else own
        with AnswerCache(default_cache_path()) as cache:
            answerer = Answerer(Models(), cache)
            rated = []
            for name in map(str, data):
                samples = list(load(name, limit=self.most, seed=self.seed))
                with progress.counting(f"reading {name}") as counted:
                    rated.append(
                        rated_features(name, samples, readers, answerer, self.quality, counted)
                    )
            pairs = pair_features(readers, answerer)
        return PreparedRatings(
            None,
            "",
            readers.judge,
            {f"rated answers of {one.name}": len(one.features) for one in rated},
            {},
            readers,
            rated,
            pairs,
            start,
        )

    def learn(self, prepared: PreparedRatings, training: Training) -> Sequence[Mapping[str, float]]:
        from dialeval.model_store.locate import locate
        from dialeval.models.quality_stack import load_weights
        from dialeval.training.judge_ratings import across_sets, adapt, settings_of

        if prepared.start:
            weights = load_weights(locate(self.start).directory)
            prepared.fitted = adapt(prepared.rated, weights, prepared.start.scale, self.seed)
        else:
            prepared.fitted = across_sets(prepared.rated, prepared.pairs)
        prepared.summary = prepared.found.summary
        prepared.config = settings_of(prepared.found.weights)
        return []

    def save(self, prepared: PreparedRatings, out: Path) -> None:
        from dialeval.models.quality_stack import StackConfig, save_weights
        from dialeval.models.source import Models

        config = StackConfig(
            prepared.readers,
            {name: Models().fingerprint(name) for name in prepared.readers.names()},
            prepared.found.scale,
            tuple(one.name for one in prepared.rated),
        )
        save_weights(out, config, prepared.found.weights)

    def measure(self, prepared: PreparedRatings, progress: Progress) -> Measures:
        return Measures(prepared.found.scores)

    def agreement(
        self, prepared: PreparedRatings, out: Path, progress: Progress
    ) -> dict[str, float | None]:
        """None: what was learned from is no measure. `measure` has left-out sets or folds."""
        return {}
