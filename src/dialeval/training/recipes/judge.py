"""The two stages of `judge`.

`dialeval train judge-corpus`: the first stage of `judge`, without ratings of people.

What it learns from is made in `examples/judge.py` and `examples/faults.py`, how it learns stands in
`learners/judge_corpus.py`.

`dialeval train judge`: the second stage of `judge`, on ratings of people.

On ratings of one's own it starts from the shipped judge; on several rated sets it starts from
nothing. `training/judge_ratings.py` has the fit, and what it is worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.errors import UsageError
from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipe import (
    Measures,
    Prepared,
    Progress,
    Recipe,
    Settings,
    epochs_option,
    precision_option,
)

if TYPE_CHECKING:
    from dialeval.models.quality_judge import QualityConfig, QualityNetwork
    from dialeval.models.quality_stack import Floats, Readers, StackConfig
    from dialeval.training.examples.rated_answers import Rated
    from dialeval.training.judge_ratings import Fitted
    from dialeval.training.learners.judge_corpus import JudgeCorpusLearner
    from dialeval.training.run import Training


@dataclass
class PreparedCorpus(Prepared[Any]):
    """What learns, and the configuration of the judge that it becomes."""

    learner: JudgeCorpusLearner
    judge: QualityConfig


@dataclass(frozen=True, kw_only=True)
class JudgeCorpus(Recipe[PreparedCorpus]):
    """Teach an encoder to tell good answers from bad ones, without ratings of people.

    This is the first stage of `judge`; `dialeval train judge --start '' --base DIR` is the second.
    """

    name = "judge-corpus"
    metric = "judge"

    adversarial: str | None = option(
        None, "Learn from wrong answers that people wrote to look right (dailydialog++)."
    )
    inference: str | None = option(
        None, "Learn contradictions from a folder of inference pairs (nli)."
    )
    model: str = option(PRESETS["default"]["sentence-encoder"], "Start from this encoder.")
    start: str = option(
        PRESETS["default"]["nli"],
        "Begin with this judge, or with the layers of this inference adapter ('': none).",
    )
    rank: int = option(
        0, "Train adapters of this rank, for a large encoder; 0: train all layers.", low=0
    )
    precision: Literal["float32", "bfloat16"] = precision_option()
    epochs: int = epochs_option(3)
    groups: int = option(8000, "Draw this many groups of answers per epoch.", low=20)
    graded: int = option(
        2000, "Draw this many groups of the graded answers of dialeval, too, per epoch.", low=0
    )
    model_rated: int = option(
        8000, "Draw this many groups that a language model rated, too, per epoch.", low=0
    )
    chats: str | None = option(
        None, "Look up texts that a language model rated in these chats, too (convai2-human)."
    )
    batch: int = option(30, "Take this many answers per step.", low=2)
    learning_rate: float = option(8e-5, "Set the highest learning rate.", low=0.0)

    context_tokens: int = option(100, "Read at most this many tokens of the turns.", low=4)
    response_tokens: int = option(60, "Read at most this many tokens of an answer.", low=4)

    def settings(self) -> Settings:
        return Settings(
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            weight_decay=0.01,
            warmup=0.06,
            seed=self.seed,
            keep="last",
        )

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedCorpus:
        from dialeval.datasets.locate import resolve_folder
        from dialeval.models.quality_judge import QualityConfig, Reading
        from dialeval.models.source import Models
        from dialeval.training.learners.judge_corpus import JudgeCorpusLearner, load_material

        adversarial, inference, chats = (
            resolve_folder(Path(one)) if one else None
            for one in (self.adversarial, self.inference, self.chats)
        )
        material = load_material(data, adversarial, inference, chats, self.seed)
        config = QualityConfig(
            encoder=self.model,
            context_tokens=self.context_tokens,
            response_tokens=self.response_tokens,
            rank=self.rank,
        )
        network, tokenizer = self.new_network()
        learner = JudgeCorpusLearner(
            network,
            tokenizer,
            Reading(tokenizer, config),
            material,
            groups=self.groups,
            graded=self.graded,
            rated=self.model_rated,
            batch=self.batch,
            precision=self.precision,
            seed=self.seed,
        )
        named = (self.adversarial, self.inference, self.chats)
        sources = [*map(str, data), *(one for one in named if one)]
        return PreparedCorpus(
            learner,
            "Rates an answer on seven aspects, after the turns before it. Learned without a rating"
            " of people: from what was answered, against answers with faults of twelve kinds; and"
            " from answers that a language model graded or rated.",
            self.model,
            {"sources": ", ".join(sources)} | material.facts(),
            {
                "data": material.digest(),
                "encoder": Models().fingerprint(self.model),
                "start": Models().fingerprint(self.start) if self.start else "",
                "config": config.to_record(),
            },
            config,
        )

    def new_network(self) -> tuple[QualityNetwork, Any]:
        """Returns an encoder with a new head and the layers of `start`, or the judge `start`, whose
        adapters must have this rank."""
        import torch

        from dialeval.errors import UsageError
        from dialeval.model_store.locate import locate, ready
        from dialeval.model_store.weights import replace_weights
        from dialeval.models.classifier import label_names
        from dialeval.models.quality_judge import (
            QualityNetwork,
            alpha_of,
            is_quality_judge,
            load_network,
        )
        from dialeval.models.text_judge import load_encoder
        from dialeval.networks.bert import load_classifier
        from dialeval.networks.low_rank import add_low_rank, merged_weights
        from dialeval.question import NLI_LABELS

        found = locate(self.start) if self.start else None
        if found is not None and is_quality_judge(found.directory):
            network, tokenizer, config = load_network(found.directory, trainable=True)
            if config.encoder != self.model:
                raise UsageError(f"--start {self.start}: reads with {config.encoder!r}")
            if config.rank != self.rank:
                raise UsageError(
                    f"--start {self.start}: has adapters of rank {config.rank}: use it with"
                    f" --rank {config.rank}"
                    if config.rank
                    else f"--start {self.start}: holds all layers: use it with --rank 0"
                )
            return network.float(), tokenizer
        if self.rank and found is not None:
            raise UsageError(
                "--rank adapts the encoder as it is: use it with --start '' or with a judge that"
                " has adapters of this rank"
            )
        bare, tokenizer = load_encoder(self.model)
        learned = bare
        if found is not None:
            if found.base is None or found.base.name != self.model:
                raise UsageError(f"--start {self.start}: is no adapter of {self.model!r}")
            head = {"num_labels": len(NLI_LABELS)} | label_names()
            classifier = load_classifier(ready(found.base), found.directory, head)
            if classifier is None:
                raise UsageError(f"--start {self.start}: is no inference model on a BERT")
            learned = classifier.bert
        if self.rank:
            add_low_rank(bare, self.rank, alpha_of(self.rank), self.seed)
        else:
            # All layers learn: copies, not those that other models of this process share.
            layers = merged_weights(learned)
            replace_weights(bare, {name: layers[name] for name in bare.state_dict()})
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return QualityNetwork(bare.float()), tokenizer

    def save(self, prepared: PreparedCorpus, out: Path) -> None:
        from dialeval.model_store.scorer_directory import save_tensors
        from dialeval.models.quality_judge import EMBEDDINGS
        from dialeval.networks.low_rank import low_rank_tensors

        network = prepared.learner.network
        state = network.state_dict()
        kept = {name: one for name, one in state.items() if not name.startswith(EMBEDDINGS)}
        if adapters := low_rank_tensors(network.encoder):
            kept = {name: one for name, one in state.items() if name.startswith("head.")}
            kept |= {f"encoder.{name}": tensor for name, tensor in adapters.items()}
        save_tensors(out, prepared.judge.to_record(), kept)

    def measure(self, prepared: PreparedCorpus, progress: Progress) -> Measures:
        progress.say("measuring what is known beyond source and length")
        return Measures(
            dict(prepared.learner.validate().measures),
            by_source=[one.to_record() for one in prepared.learner.by_source()],
        )


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
