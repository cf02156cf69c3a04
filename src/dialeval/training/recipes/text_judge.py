"""Parts that the recipes of judges that read text share: mme-fluency, -relevance, -engagement.

An encoder gets a new head, and adapters or all of its weights learn with it. The recipes differ in
their examples (`example_sets`) and in what the judge reads (`judge_config`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipe import (
    AdapterRecipe,
    Measures,
    Prepared,
    Progress,
    epochs_option,
    patience_option,
    schedule_option,
    seeded,
)

if TYPE_CHECKING:
    from dialeval.models.text_judge import TextJudgeConfig, TwinJudgeConfig
    from dialeval.training.examples.pair_corpus import Example, ExampleSets
    from dialeval.training.learners.text_judge import JudgeLearner


@dataclass
class PreparedJudge(Prepared[Any]):
    """What learns, and the examples to train, validate and test on."""

    learner: JudgeLearner[Any, Any]
    sets: ExampleSets


@dataclass(frozen=True, kw_only=True)
class TextJudge(AdapterRecipe[PreparedJudge]):
    """Teach an encoder to judge responses."""

    model: str = option(
        PRESETS["default"]["sentence-encoder"],
        f"Start from this encoder (in the paper: {PRESETS['paper']['sentence-encoder']}).",
    )
    epochs: int = epochs_option(3)
    patience: int = patience_option(2)
    batch: int = option(32, "Take this many examples per step.", low=1)
    response_tokens: int = option(50, "Read at most this many tokens of a response.", low=4)
    schedule: Literal["linear", "constant"] = schedule_option()

    @abstractmethod
    def example_sets(self, data: Sequence[Path]) -> ExampleSets: ...

    @abstractmethod
    def judge_config(self) -> TextJudgeConfig | TwinJudgeConfig:
        """Returns what the judge reads, and the shape of its head."""

    @property
    def about(self) -> str:
        """What the judge tells and what it learned from, for the card."""
        raise NotImplementedError

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedJudge:

        sets, config = self.example_sets(data), self.judge_config()
        for name, value in sets.data.items():
            if name != "sha256":
                progress.say(f"{name}: {value}")
        return PreparedJudge(
            self.make_learner(sets, config),
            self.about,
            self.model,
            dict(sets.data),
            sets.identity(self.model, config.to_record()),
            sets,
            config=config.to_record(),
        )

    def make_learner(
        self, sets: ExampleSets, config: TextJudgeConfig | TwinJudgeConfig
    ) -> JudgeLearner[Any, Any]:
        """Makes an encoder with a new head, and adapters if there is a rank."""
        from dialeval.models.text_judge import (
            TextJudgeNetwork,
            TwinJudgeConfig,
            TwinJudgeNetwork,
            load_encoder,
        )
        from dialeval.networks.low_rank import add_low_rank
        from dialeval.training.learners.text_judge import TwinJudgeLearner

        encoder, tokenizer = load_encoder(config.encoder)
        if config.rank:
            add_low_rank(encoder, config.rank, config.alpha, self.seed)
        network: Any
        kind: Any
        with seeded(self.seed):
            if isinstance(config, TwinJudgeConfig):
                network, kind = TwinJudgeNetwork(encoder), TwinJudgeLearner
            else:
                network, kind = TextJudgeNetwork(encoder, config), self.learner_class()
        learner: JudgeLearner[Any, Any] = kind(
            network,
            tokenizer,
            config,
            sets.examples,
            sets.validation,
            batch=self.batch,
            seed=self.seed,
        )
        return learner

    def learner_class(self) -> Any:
        from dialeval.training.learners.text_judge import TextJudgeLearner

        return TextJudgeLearner

    def save(self, prepared: PreparedJudge, out: Path) -> None:
        """Saves the head, and the adapters or the whole encoder."""
        from dialeval.model_store.scorer_directory import save_tensors
        from dialeval.networks.low_rank import low_rank_tensors

        network = prepared.learner.network
        own = low_rank_tensors(network.encoder) or network.encoder.state_dict()
        head = {n: t for n, t in network.state_dict().items() if not n.startswith("encoder.")}
        tensors = head | {f"encoder.{name}": tensor for name, tensor in own.items()}
        save_tensors(out, prepared.config, tensors)

    def measure(self, prepared: PreparedJudge, progress: Progress) -> Measures:
        from dialeval.training.card import score_examples

        sets, predict = prepared.sets, prepared.learner.predict
        measured = {"validation": sets.validation, **sets.measured}
        return Measures(
            scores=dict(self.measured(name, own, predict(own)) for name, own in measured.items()),
            by_source=[
                score_examples(source, own, predict(own).tolist(), self.threshold).to_record()
                for source, own in sets.by_source.items()
            ],
        )

    @property
    def threshold(self) -> float | None:
        """The logit above which a response is called good; None: only an order is learned."""
        return 0.0

    def measured(
        self, name: str, examples: Sequence[Example], logits: Any
    ) -> tuple[str, float | None]:
        """Returns what is reported of a set, by the name of the card."""
        from dialeval.training.learners.sentence_head import accuracy, targets_of

        value = accuracy(logits, targets_of(examples))
        return f"accuracy on {name} ({len(examples):,} examples)", value
