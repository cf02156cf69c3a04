"""From pairs of sentences and an encoder to a directory that `-m consistency:model=` takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from dialeval.errors import UsageError
from dialeval.model_store.locate import locate, offline, ready
from dialeval.models.classifier import label_names
from dialeval.models.loading import load_tokenizer, silence, window_of
from dialeval.models.source import Models
from dialeval.question import NLI_LABELS
from dialeval.storage import sha256_of
from dialeval.training.adapters import (
    ADAPTERS,
    add_adapters,
    change_as_adapters,
    load_adapters,
    round_adapters,
    save_adapters,
    save_model,
    shape_of_adapters,
)
from dialeval.training.card import Card, licence_of
from dialeval.training.examples.inference_pairs import InferencePairs, load_inference_pairs
from dialeval.training.learners.inference import InferenceModelOptions, InferenceModelRecipe
from dialeval.training.loop import Report, forget_checkpoint, train
from dialeval.training.run import exclusive, refuse_finished
from dialeval.training.settings import Settings


def train_inference_model(
    data: Path,
    out: Path,
    *,
    base: str,
    settings: Settings,
    options: InferenceModelOptions,
    sources: Sequence[str] = (),
    start: Path | None = None,
    keep_rank: int = 0,
    evaluate_on: int | None = None,
    licence: str | None = None,
    command: str = "",
    say: Callable[[str], None] = lambda line: None,
    report: Report = lambda state, steps: None,
) -> Card:
    """Trains, saves and measures; continues where an earlier call into `out` was killed.

    `start` is a directory of adapters that were trained before: training goes on from them, with
    their rank and alpha. If all weights are trained (rank 0), `keep_rank` keeps the change as
    adapters of this rank. `evaluate_on` bounds how many pairs of validation and of each test set
    are looked at.
    """
    refuse_finished(out)
    if start and not options.rank:
        raise UsageError("training goes on from adapters, and --full has none")
    if start:
        rank, alpha = shape_of_adapters(start)
        options = replace(options, rank=rank, alpha=alpha)
    pairs = load_inference_pairs(data, sources).at_most(evaluate_on)
    with exclusive(out), offline():
        model, tokenizer = load_with_head(base, options, settings.seed)
        if start:
            load_adapters(model, start)
        recipe = InferenceModelRecipe(
            model, tokenizer, pairs.train, pairs.validation, options, settings.seed
        )
        say(f"{pairs.name}: {recipe.pairs:,} pairs to learn from")
        identity = {
            "base": Models().fingerprint(base),
            "data": pairs.digest(),
            "options": asdict(options),
            "start": sha256_of(start / ADAPTERS) if start else "",
        }
        state = train(recipe, settings, out, identity, report)
        if keep_rank:
            recipe.model = _as_adapters(model, base, options, keep_rank, settings.seed)
        if options.rank or keep_rank:
            round_adapters(recipe.model)
            save_adapters(recipe.model, base, out)
        else:
            save_model(model, tokenizer, out)
        card = Card(
            name=out.name,
            summary=(
                f"{_kept(options, keep_rank)} for {base}, trained to tell contradiction, neutral"
                " and entailment apart."
            ),
            command=command,
            seed=settings.seed,
            base=base,
            licence=licence or licence_of([data]),
            data=_about(pairs, recipe.pairs),
            settings=asdict(settings) | asdict(options) | {"kept rank": keep_rank or options.rank},
            scores=_accuracies(recipe, pairs, say),
            curve=state.curve,
        )
        card.write(out)
        forget_checkpoint(out)
    return card


def load_with_head(base: str, options: InferenceModelOptions, seed: int) -> tuple[Any, Any]:
    """An encoder with a new head of three outputs, and adapters if there is a rank."""
    from transformers import AutoModelForSequenceClassification

    found = locate(base)
    if found.role not in ("encoder", "classifier") or found.base:
        raise UsageError(
            f"model {base!r} cannot be trained on: `train nli` takes an encoder that is no adapter."
            " See: dialeval models"
        )
    ready(found)
    with silence(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, loaded = AutoModelForSequenceClassification.from_pretrained(
            found.directory,
            dtype="float32",
            local_files_only=True,
            num_labels=len(NLI_LABELS),
            output_loading_info=True,
            **label_names(),
        )
        tokenizer = load_tokenizer(found.directory)
    if options.length > (window := window_of(model, tokenizer)):
        raise UsageError(
            f"--length {options.length} is more than the {window} tokens that {base!r} can read"
        )
    trained = _new_layers(model, loaded["missing_keys"])
    model = add_adapters(model, "SEQ_CLS", options.rank, options.alpha, seed, trained=trained)
    return model, tokenizer


def _new_layers(model: Any, missing: Collection[str]) -> list[str]:
    """The head, and layers of the encoder that its file lacks, as some lack the pooler. They begin
    at random, so that nobody could load them again if they were not saved whole."""
    encoder = model.base_model_prefix
    parts = {name.partition(".")[0] for name, _ in model.named_parameters()}
    inside = {name.rpartition(".")[0] for name in missing if name.startswith(f"{encoder}.")}
    return sorted(parts - {encoder}) + sorted(inside)


def _as_adapters(
    trained: Any, base: str, options: InferenceModelOptions, rank: int, seed: int
) -> Any:
    adapted, _ = load_with_head(base, replace(options, rank=rank, alpha=rank), seed)
    change_as_adapters(trained, adapted)
    return adapted


def _kept(options: InferenceModelOptions, keep_rank: int) -> str:
    if options.rank:
        return "LoRA adapter and head"
    return (
        f"All weights, kept as an adapter of rank {keep_rank} and a head,"
        if keep_rank
        else "Weights"
    )


def _about(pairs: InferencePairs, seen: int) -> dict[str, Any]:
    per_source = Counter(pair.source for pair in pairs.train)
    return {
        "sets": pairs.name,
        "sha256": pairs.digest(),
        **{f"pairs of {source}": count for source, count in per_source.items()},
        "pairs per epoch": seen,
        "pairs for validation": len(pairs.validation),
    }


def _accuracies(
    recipe: InferenceModelRecipe, pairs: InferencePairs, say: Callable[[str], None]
) -> dict[str, float]:
    found = {}
    for name, own in {"validation": pairs.validation, **pairs.held_out}.items():
        on = f"accuracy on {name} ({len(own):,} pairs)"
        say(f"measuring the {on}")
        found[on] = recipe.accuracy(own)
    return found
