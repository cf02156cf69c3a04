"""From a corpus and an encoder to a directory that `-m mme-specificity:model=` takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialeval.errors import UsageError
from dialeval.metrics.mme_specificity import MmeSpecificity
from dialeval.model_store.locate import offline
from dialeval.model_store.scorer_directory import save_tensors
from dialeval.models.masked_lm import MaskedLMConfig, MaskedNetwork, load_network
from dialeval.models.source import Models
from dialeval.networks.low_rank import add_low_rank
from dialeval.training.card import Card, licence_of
from dialeval.training.examples.pair_corpus import Pair, PairCorpus, load_pairs
from dialeval.training.learners.masked_lm import MaskedLMOptions, MaskedLMRecipe
from dialeval.training.loop import (
    Progress,
    Report,
    forget_checkpoint,
    train,
    unseen,
)
from dialeval.training.run import exclusive, refuse_finished
from dialeval.training.settings import Settings

WHOLE = 10_000
"""Words of an utterance that are kept of the corpus; far fewer are read."""


def train_masked_lm(
    data: Sequence[Path],
    out: Path,
    *,
    base: str,
    settings: Settings,
    options: MaskedLMOptions,
    evaluate_on: int = 500,
    licence: str | None = None,
    command: str = "",
    say: Callable[[str], None] = lambda line: None,
    training_bar: Callable[[], AbstractContextManager[Report]] = unseen,
    measuring_bar: Callable[[str], AbstractContextManager[Progress]] = unseen,
) -> Card:
    """Trains, saves and measures; continues where an earlier call into `out` was killed.

    `evaluate_on` bounds how many responses of validation and test are looked at. The bars are
    opened one after the other: a terminal shows one at a time.
    """
    refuse_finished(out)
    corpus = load_pairs(data, "last", words=WHOLE)
    validation = draw(responses(corpus, corpus.validation), evaluate_on)
    test = draw(responses(corpus, corpus.test), evaluate_on)
    held_out = {*responses(corpus, corpus.validation), *responses(corpus, corpus.test)}
    learned = [text for text in responses(corpus, corpus.train) if text not in held_out]
    learned = draw(learned, options.responses)
    say(f"{corpus.name}: {len(learned):,} responses to learn from")
    with exclusive(out), offline():
        network, tokenizer = fresh_network(base, options, settings.seed)
        recipe = MaskedLMRecipe(network, tokenizer, learned, validation, options, settings.seed)
        identity = {
            "base": Models().fingerprint(base),
            "data": corpus.digest(),
            "evaluate_on": evaluate_on,
            "options": asdict(options),
        }
        with training_bar() as report:
            state = train(recipe, settings, out, identity, report)
        _round(network)
        say(f"measuring on {len(validation) + len(test):,} held-out responses")
        scores = _measure(recipe, {"validation": validation, "test": test}, measuring_bar)
        config = MaskedLMConfig(base, options.rank, options.alpha, options.tokens)
        save_tensors(out, config.to_record(), network.trained_tensors())
        card = Card(
            name=out.name,
            summary=(
                f"{'Low-rank adapter' if options.rank else 'Weights'} and head for {base}, trained"
                f" to guess the hidden word-pieces of responses of {corpus.name}."
            ),
            command=command,
            seed=settings.seed,
            base=base,
            licence=licence or licence_of(data),
            data={
                "corpus": corpus.name,
                "sha256": corpus.digest(),
                "responses to learn from": recipe.responses,
                "responses for validation": len(validation),
                "responses for test": len(test),
                **corpus.left_out.facts(),
            },
            settings=asdict(settings) | asdict(options),
            scores=scores,
            curve=state.curve,
        )
        card.write(out)
        forget_checkpoint(out)
    return card


def responses(corpus: PairCorpus, pairs: Sequence[Pair]) -> list[str]:
    """What was answered, each text once."""
    return [corpus.texts[number] for number in dict.fromkeys(pair.response for pair in pairs)]


def draw(texts: list[str], most: int | None) -> list[str]:
    """Always the same ones: the seed of a training decides how it learns, not from what."""
    if most is None or len(texts) <= most:
        return texts
    chosen = np.random.default_rng(0).permutation(len(texts))[:most]
    return [texts[i] for i in np.sort(chosen)]


def fresh_network(base: str, options: MaskedLMOptions, seed: int) -> tuple[MaskedNetwork, Any]:
    """An encoder with its head, or a new one where it has none; adapters if there is a rank."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network, tokenizer = load_network(base)
    if tokenizer.mask_token_id is None:
        raise UsageError(f"the tokenizer of {base!r} has no mask, so nothing can be hidden from it")
    if options.rank:
        add_low_rank(network.encoder, options.rank, options.alpha, seed)
    return network, tokenizer


def _measure(
    recipe: MaskedLMRecipe,
    sets: dict[str, list[str]],
    bar: Callable[[str], AbstractContextManager[Progress]],
) -> dict[str, float]:
    """Per set, exactly and as the metric asks if nobody tells it otherwise."""
    ways = {"one piece at a time": 0, "as the metric asks": MmeSpecificity().masks}
    scores: dict[str, float] = {}
    for name, texts in sets.items():
        encoded = recipe.encode(texts)
        for how, masks in ways.items():
            with bar(f"measuring on {name}, {how}") as progress:
                log_probs, right = recipe.guess(encoded, masks, progress)
            mean = float(np.concatenate(log_probs).mean())
            scores[f"perplexity on {name}, {how}"] = math.exp(-mean)
            scores[f"accuracy on {name}, {how}"] = right
    return scores


def _round(network: MaskedNetwork) -> None:
    """To what 16 bits can hold, as weights are saved: what is measured is what is kept."""
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.requires_grad:
                parameter.copy_(parameter.half())
