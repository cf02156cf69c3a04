"""From a corpus and a base model to a directory that `-m coherence:model=` takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dialeval.errors import UsageError
from dialeval.model_store.locate import offline, ready
from dialeval.model_store.weights import LAYOUT
from dialeval.models.source import Models
from dialeval.storage import write_json
from dialeval.training.adapters import (
    add_adapters,
    round_adapters,
    save_adapters,
    save_model,
)
from dialeval.training.card import Card, licence_of
from dialeval.training.examples.corpora import Corpus, load_corpus
from dialeval.training.examples.rated_exchanges import known_exchanges, without_rated
from dialeval.training.learners.language_model import (
    LanguageModelOptions,
    LanguageModelRecipe,
    encode_dialogues,
)
from dialeval.training.loop import Report, forget_checkpoint, train
from dialeval.training.run import exclusive, refuse_finished
from dialeval.training.settings import Settings


def train_language_model(
    data: Path,
    out: Path,
    *,
    base: str,
    settings: Settings,
    options: LanguageModelOptions,
    licence: str | None = None,
    command: str = "",
    evaluate_on: int = 200,
    format: str | None = None,
    say: Callable[[str], None] = lambda line: None,
    report: Report = lambda state, steps: None,
) -> Card:
    """Trains, saves and measures; continues where an earlier call into `out` was killed.

    `evaluate_on` bounds how many dialogues of validation and test are looked at; the perplexities
    before and after training are those of the test split.
    """
    refuse_finished(out)
    corpus, left_out = without_rated(load_corpus(data, format), known_exchanges())
    say(f"{corpus.name}: {len(corpus.train):,} dialogues to train on")
    with exclusive(out), offline():
        model, tokenizer = _load_base(base, options.block)
        model = add_adapters(model, "CAUSAL_LM", options.rank, options.alpha, settings.seed)
        recipe = LanguageModelRecipe(
            model, tokenizer, corpus.train, corpus.validation[:evaluate_on], options, settings.seed
        )
        test = encode_dialogues(tokenizer, corpus.test[:evaluate_on], options.block)
        identity = {
            "base": Models().fingerprint(base),
            "data": corpus.digest(),
            "evaluate_on": evaluate_on,
            "options": asdict(options),
        }
        state = train(recipe, settings, out, identity, report)
        if options.rank:
            round_adapters(model)
            save_adapters(model, base, out)
        else:
            save_model(model, tokenizer, out)
        write_json(out / LAYOUT, {"layout": "plain"})
        say("measuring the test perplexity after and before training")
        after = math.exp(recipe.mean_nll(test))
        before = math.exp(_mean_nll_of_base(recipe, base, test, options))
        trained_as = "weights" if options.rank == 0 else "LoRA adapter"
        card = Card(
            name=out.name,
            summary=f"{trained_as} for {base}, trained to continue the dialogues of {corpus.name}.",
            command=command,
            seed=settings.seed,
            base=base,
            licence=licence or licence_of([data]),
            data=_about(corpus, recipe.tokens, state.step, len(recipe.batches(0)))
            | left_out.facts(),
            settings=asdict(settings) | asdict(options),
            scores={
                f"test perplexity before ({len(test)} dialogues)": before,
                f"test perplexity after ({len(test)} dialogues)": after,
            },
            curve=state.curve,
        )
        card.write(out)
        forget_checkpoint(out)
    return card


def _about(corpus: Corpus, tokens: int, steps: int, per_epoch: int) -> dict[str, Any]:
    return {
        "corpus": corpus.name,
        "sha256": corpus.digest(),
        "train dialogues": len(corpus.train),
        "tokens per epoch": tokens,
        "tokens seen": round(tokens * steps / per_epoch),
    }


def _mean_nll_of_base(
    recipe: LanguageModelRecipe, base: str, test: list[list[int]], options: LanguageModelOptions
) -> float:
    if options.rank:
        with recipe.model.disable_adapter():
            return recipe.mean_nll(test)
    trained, recipe.model = recipe.model, _load_base(base, options.block)[0]
    found = recipe.mean_nll(test)
    recipe.model = trained
    return found


def _load_base(name: str, block: int) -> tuple[Any, Any]:
    """The base model in fp32 with its tokenizer, from the model cache or a directory."""
    from transformers import AutoModelForCausalLM

    from dialeval.model_store.locate import locate
    from dialeval.models.loading import load_tokenizer, silence, window_of

    found = locate(name)
    if found.role != "causal-lm" or found.base or found.gguf:
        raise UsageError(
            f"model {name!r} cannot be trained on: `train lm` takes a causal language model that is"
            " no adapter and no GGUF file. See: dialeval models"
        )
    ready(found)
    with silence():
        model = AutoModelForCausalLM.from_pretrained(
            found.directory, dtype="float32", local_files_only=True
        )
        tokenizer = load_tokenizer(found.directory)
    if block > (window := window_of(model, tokenizer)):
        raise UsageError(f"--block {block} is more than the {window} tokens that {name!r} can read")
    return model, tokenizer
