"""`dialeval train nli`: an encoder learns to tell contradiction, neutral and entailment apart.

All weights can be trained (`full`) and their change stored as an adapter (`full` with `rank`), and
a training can start from earlier adapters (`start`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dialeval.errors import UsageError
from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipe import (
    AdapterRecipe,
    Measures,
    Prepared,
    Progress,
    epochs_option,
    held_out_option,
    precision_option,
    seeded,
)

if TYPE_CHECKING:
    from dialeval.training.learners.inference import InferenceLearner, InferencePairs
    from dialeval.training.run import Training


@dataclass
class PreparedInference(Prepared[Any]):
    """The learner, its tokenizer, and the pairs of sentences."""

    learner: InferenceLearner
    tokenizer: Any
    pairs: InferencePairs


@dataclass(frozen=True, kw_only=True)
class Inference(AdapterRecipe[PreparedInference]):
    """Teach an encoder to detect contradictions, for consistency.

    The data are a folder of public sets (MNLI, SNLI, ...), or a table with the columns premise,
    hypothesis and label. With --full and --rank, the change of all weights is stored as an adapter
    of this rank.
    """

    name = "nli"
    metric = "consistency"
    rated: ClassVar[Mapping[str, str]] = {
        f"holistic/{part}": "consistency"
        for part in ("consistency", "consistency-ws", "consistency-ctg")
    }
    usual_rank: ClassVar[int] = 32
    usual_rates: ClassVar[tuple[float, float]] = (1e-3, 1e-4)

    model: str = option(PRESETS["default"]["encoder"], "Start from this encoder.")
    sets: str = option("", "Learn only from these sets of the folder, such as mnli,snli.")
    dialogues: str = option(
        "",
        "Learn from the contradictions of DECODE as well, against turns of one speaker in these"
        " corpora, such as dailydialog,empathetic.",
    )
    start: str = option("", "Start from the adapters in this directory, with their rank.")
    precision: Literal["float32", "bfloat16"] = precision_option()
    epochs: int = epochs_option(3)
    pairs: int | None = option(None, "Learn from at most this many pairs.", low=1)
    batch: int = option(32, "Take this many pairs per step.", low=1)
    pair_tokens: int = option(96, "Read at most this many tokens of a pair.", low=8)
    held_out: int | None = held_out_option(None, "pairs of each set")

    def __post_init__(self) -> None:
        if self.start and self.full:
            raise UsageError("training starts from adapters, and --full has none")
        if self.start and self.rank:
            raise UsageError("--start keeps the rank of the adapters: leave --rank out")

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Rank and alpha of the adapters that are trained; 0 if all weights are."""
        from dialeval.training.adapters import shape_of_adapters

        rank = self.adapter_rank
        return shape_of_adapters(Path(self.start)) if self.start else (rank, 2 * rank)

    @property
    def kept_rank(self) -> int:
        """The rank of the adapter that is saved; 0: all weights are."""
        return (self.rank or 0) if self.full else self.shape[0]

    @property
    def bits(self) -> int:
        return 16 if self.kept_rank else 32

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedInference:
        from dialeval.models.source import Models
        from dialeval.storage import sha256_of
        from dialeval.training.adapters import ADAPTERS, load_adapters
        from dialeval.training.learners.inference import (
            InferenceLearner,
            add_decode,
            load_inference_pairs,
        )

        if len(data) > 1:
            raise UsageError("train nli takes one --data: a folder may hold several sets")
        _ = self.shape  # adapters that cannot be read are an error before anything is read
        sources = [name.strip() for name in self.sets.split(",") if name.strip()]
        pairs = load_inference_pairs(data[0], sources)
        if corpora := [Path(name.strip()) for name in self.dialogues.split(",") if name.strip()]:
            pairs = add_decode(pairs, data[0], corpora)
        pairs = pairs.at_most(self.held_out)
        network, tokenizer = self.load_with_head(*self.shape)
        if self.start:
            load_adapters(network, Path(self.start))
        learner = InferenceLearner(network, tokenizer, pairs.train, pairs.validation, self)
        progress.say(f"{pairs.name}: {learner.pairs:,} pairs to learn from")
        kept = "Weights"
        if self.kept_rank:
            kept = "LoRA adapter and head"
            if self.full:
                kept = f"All weights, kept as an adapter of rank {self.kept_rank} and a head,"
        per_source = Counter(pair.source for pair in pairs.train)
        return PreparedInference(
            learner,
            f"{kept} for {self.model}, trained to tell contradiction, neutral and entailment"
            " apart.",
            self.model,
            {
                "sets": pairs.name,
                "sha256": pairs.digest(),
                **{f"pairs of {source}": count for source, count in per_source.items()},
                "pairs per epoch": learner.pairs,
                "pairs for validation": len(pairs.validation),
            },
            {
                "base": Models().fingerprint(self.model),
                "data": pairs.digest(),
                "start": sha256_of(Path(self.start) / ADAPTERS) if self.start else "",
            },
            tokenizer,
            pairs,
            config={"alpha": self.shape[1], "kept rank": self.kept_rank},
        )

    def learn(
        self, prepared: PreparedInference, training: Training
    ) -> Sequence[Mapping[str, float]]:
        from dialeval.training.adapters import change_as_adapters

        curve = super().learn(prepared, training)
        if self.full and self.kept_rank:
            adapted, _ = self.load_with_head(self.kept_rank, self.kept_rank)
            change_as_adapters(prepared.learner.network, adapted)
            prepared.learner.network = adapted
        return curve

    def save(self, prepared: PreparedInference, out: Path) -> None:
        from dialeval.training.adapters import save_adapters, save_model

        if self.kept_rank:
            save_adapters(prepared.learner.network, self.model, out)
        else:
            save_model(prepared.learner.network, prepared.tokenizer, out)

    def measure(self, prepared: PreparedInference, progress: Progress) -> Measures:
        from dialeval.question import NLI_LABELS
        from dialeval.training.learners.inference import score_pairs

        pairs, found, by_source = prepared.pairs, {}, []
        for name, own in {"validation": pairs.validation, **pairs.held_out}.items():
            on = f"accuracy on {name} ({len(own):,} pairs)"
            progress.say(f"measuring the {on}")
            probabilities = prepared.learner.probabilities(own)
            scores = score_pairs(name, own, probabilities)
            found[on] = scores.accuracy
            if name != "validation" or not pairs.held_out:
                by_source.append(scores.to_record())
            if name == "decode":
                place = NLI_LABELS.index("contradiction")
                right = (probabilities[:, place] > 0.5) == [pair.label == place for pair in own]
                found[f"contradiction or not, on decode ({len(own):,} pairs)"] = float(right.mean())
        return Measures(found, by_source=by_source)

    def load_with_head(self, rank: int, alpha: int) -> tuple[Any, Any]:
        """Loads an encoder with a new head of three outputs, and adapters if there is a rank."""
        from transformers import AutoModelForSequenceClassification

        from dialeval.model_store.locate import locate, ready
        from dialeval.models.classifier import label_names
        from dialeval.models.loading import load_tokenizer, silence, window_of
        from dialeval.question import NLI_LABELS
        from dialeval.training.adapters import add_adapters

        found = locate(self.model)
        if found.role not in ("encoder", "classifier") or found.base:
            raise UsageError(
                f"model {self.model!r} cannot be trained on: `train nli` takes an encoder that is"
                " no adapter. See: dialeval models"
            )
        ready(found)
        with silence(), seeded(self.seed):
            model, loaded = AutoModelForSequenceClassification.from_pretrained(
                found.directory,
                dtype="float32",
                local_files_only=True,
                num_labels=len(NLI_LABELS),
                output_loading_info=True,
                **label_names(),
            )
            tokenizer = load_tokenizer(found.directory)
        if self.pair_tokens > (window := window_of(model, tokenizer)):
            raise UsageError(
                f"--pair-tokens {self.pair_tokens} is more than the {window} tokens that"
                f" {self.model!r} can read"
            )
        trained = _new_layers(model, loaded["missing_keys"])
        return add_adapters(model, "SEQ_CLS", rank, alpha, self.seed, trained=trained), tokenizer


def _new_layers(model: Any, missing: Collection[str]) -> list[str]:
    """Returns the head, and layers of the encoder that its file lacks, as some lack the pooler.
    They begin at random, so that nobody could load them again if they were not saved whole."""
    encoder = model.base_model_prefix
    parts = {name.partition(".")[0] for name, _ in model.named_parameters()}
    inside = {name.rpartition(".")[0] for name in missing if name.startswith(f"{encoder}.")}
    return sorted(parts - {encoder}) + sorted(inside)
