"""Parts that the recipes of heads on frozen sentence vectors share: deb, maude, dyna-eval,
flow-score, usr-context, usr-fact, predictive-engage.

Every text is embedded once, before the training, and only the head learns. The recipes differ in
their examples (`examples_of`) and in their head (`head`, `units`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipe import (
    Measures,
    Prepared,
    Progress,
    Recipe,
    Settings,
    epochs_option,
    patience_option,
    seeded,
)

if TYPE_CHECKING:
    from dialeval.models.sentence_head import SentenceHeadConfig
    from dialeval.training.examples.pair_corpus import Example, ExampleSets
    from dialeval.training.learners.sentence_head import SentenceHeadLearner


@dataclass(frozen=True)
class HeadExamples:
    """The examples of a recipe. All texts of later epochs stand in the first one, in `corpus` or in
    `further`.

    corpus   utterances whose vectors other recipes read too
    further  responses that are drawn in some epochs only
    """

    sets: ExampleSets
    corpus: Sequence[str] = ()
    further: Sequence[str] = ()

    def texts(self, config: SentenceHeadConfig) -> Iterator[str]:
        """Yields every text that is read."""
        sets = self.sets
        held_out = chain(sets.validation, *sets.measured.values(), *sets.by_source.values())
        raw = dict.fromkeys(
            text
            for example in chain(sets.examples(0), held_out)
            for text in (*(example.turns or ("",))[-config.turns :], example.response)
        )
        for text in dict.fromkeys((*raw, *self.further)):
            yield config.texts((), text)[-1]


@dataclass
class PreparedHead(Prepared[Any]):
    learner: SentenceHeadLearner
    sets: ExampleSets
    truncate_words: int


@dataclass(frozen=True, kw_only=True)
class SentenceHead(Recipe[PreparedHead]):
    """Teach a head on frozen sentence vectors to judge responses.

    head      its network (`models/sentence_head.py`)
    balanced  whether both classes of a batch count the same, and the AUC decides
    border    the logit above which a response counts as right; None: logits only say an order
    """

    head: ClassVar[Literal["pair", "turns", "graph", "mean", "flow"]] = "pair"
    balanced: ClassVar[bool] = False
    border: ClassVar[float | None] = 0.0

    model: str = option(
        PRESETS["default"]["encoder"], "Read texts with this encoder, which is not trained."
    )
    turns: int = option(10, "Read at most this many turns of the context.", low=1)
    epochs: int = epochs_option(20)
    patience: int = patience_option(4)
    batch: int = option(128, "Take this many examples per step.", low=1)
    learning_rate: float = option(1e-3, "Set the highest learning rate.", low=0.0)
    dropout: float = option(0.2, "Drop this share of units while learning.", low=0.0, high=0.9)

    units: tuple[int, ...] = field(default=(128,))

    @abstractmethod
    def examples_of(self, data: Sequence[Path]) -> HeadExamples: ...

    @property
    def about(self) -> str:
        """What the head tells and what it learned from, for the card."""
        raise NotImplementedError

    def learner(self) -> type[SentenceHeadLearner]:
        """Returns the class of what learns, with its loss."""
        from dialeval.training.learners.sentence_head import SentenceHeadLearner

        return SentenceHeadLearner

    def settings(self) -> Settings:
        return Settings(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            weight_decay=1e-3,
            patience=self.patience,
            seed=self.seed,
        )

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedHead:
        from dialeval.models.sentence_head import SentenceHeadConfig
        from dialeval.training.learners.sentence_head import TextVectors

        found = self.examples_of(data)
        sets = found.sets
        for name, value in sets.data.items():
            if "sha256" not in name:
                progress.say(f"{name}: {value}")
        config = SentenceHeadConfig(self.name, self.model, self.head, 0, self.units, self.turns)
        vectors = TextVectors(found.corpus, found.texts(config), self.model, progress)
        config = SentenceHeadConfig(
            self.name, self.model, self.head, vectors.dimensions, self.units, self.turns
        )
        with seeded(self.seed):
            network = config.network(self.dropout)
        learner = self.learner()(
            network,
            config,
            vectors,
            sets.examples,
            sets.validation,
            batch=self.batch,
            seed=self.seed,
            balanced=self.balanced,
        )
        return PreparedHead(
            learner,
            self.about,
            self.model,
            dict(sets.data),
            sets.identity(self.model, config.to_record()),
            sets,
            config.truncate_words,
            config=config.to_record(),
        )

    def save(self, prepared: PreparedHead, out: Path) -> None:
        from dialeval.model_store.scorer_directory import save_scorer

        save_scorer(out, prepared.config, prepared.learner.network)

    def measure(self, prepared: PreparedHead, progress: Progress) -> Measures:
        from dialeval.training.card import score_examples

        sets, predict = prepared.sets, prepared.learner.predict
        scores: dict[str, float | None] = {}
        for name, own in {"validation": sets.validation, **sets.measured}.items():
            scores |= self.measured(name, own, predict(own))
        return Measures(
            scores,
            by_source=[
                score_examples(source, own, predict(own).tolist(), self.border).to_record()
                for source, own in sets.by_kind.items()
            ],
        )

    def agreement(
        self, prepared: PreparedHead, out: Path, progress: Progress
    ) -> dict[str, float | None]:
        """Spearman with people of the head alone: the vectors of rated answers are kept, and every
        recipe that reads the same encoder shares them."""
        import numpy as np
        import torch

        from dialeval.agreement.correlation import spearman
        from dialeval.training.card import rated_here, title
        from dialeval.training.examples.pair_vectors import embed, read_rated

        scores: dict[str, float | None] = {}
        for name, quality in rated_here(self.rated).items():
            read = read_rated(name, quality, "weighted", prepared.truncate_words)
            with progress.counting(f"vectors of {name}") as count:
                table = embed(read.texts, self.model, progress=count)
            vectors = torch.from_numpy(table.astype(np.float32))
            after = [place for place, pair in enumerate(read.pairs) if pair.context]
            logits = prepared.learner.predict_pairs([read.pairs[n] for n in after], vectors)
            ratings = [read.ratings[n] for n in after]
            found = spearman(logits.tolist(), ratings)
            scores[title(name, quality, len(after))] = found.value
        return scores

    def measured(self, name: str, examples: Sequence[Example], logits: Any) -> dict[str, float]:
        """Returns what is reported of a set, by the names of the card."""
        from dialeval.training.learners.sentence_head import (
            accuracy,
            area_under_curve,
            targets_of,
        )

        targets = targets_of(examples)
        return {
            f"accuracy on {name} ({len(examples):,} examples)": accuracy(logits, targets),
            f"AUC on {name}": area_under_curve(logits, targets),
        }
