"""`dialeval train seq2seq` and `train generator`: a corpus becomes a model that goes on talking."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from dialeval.model_store.locate import offline
from dialeval.training.card import Card, licence_of
from dialeval.training.examples.corpora import Corpus, load_corpus
from dialeval.training.examples.rated_exchanges import known_exchanges, without_rated
from dialeval.training.examples.reply_pairs import encode_pairs
from dialeval.training.examples.vocabulary import build_tokenizer
from dialeval.training.learners.architectures import (
    Architecture,
    LstmArchitecture,
    TransformerArchitecture,
)
from dialeval.training.learners.seq2seq import Seq2SeqOptions, Seq2SeqRecipe, describe
from dialeval.training.loop import Report, State, forget_checkpoint, train
from dialeval.training.run import exclusive, refuse_finished
from dialeval.training.settings import Settings


@dataclass(frozen=True)
class Plan:
    """All that decides what is learned."""

    architecture: Architecture
    options: Seq2SeqOptions
    settings: Settings


LSTM_SMALL = Plan(
    LstmArchitecture(),
    Seq2SeqOptions(batch=32),
    Settings(epochs=2, learning_rate=2e-3, clip=5.0),
)

# OpenNMT's defaults in 2017 and 2018; the papers name the layers, the units and SGD with rate 1.
LSTM_PAPER = Plan(
    LstmArchitecture(units=500, layers=2, dropout=0.3),
    Seq2SeqOptions(vocabulary=50_000, pieces="words", history_tokens=50, reply_tokens=50),
    Settings(
        epochs=13,
        learning_rate=1.0,
        optimizer="sgd",
        schedule="halving",
        halve_after=8,
        clip=5.0,
    ),
)

TRANSFORMER_SMALL = Plan(
    TransformerArchitecture(),
    Seq2SeqOptions(batch=2048, per="tokens", smoothing=0.1),
    Settings(epochs=1, learning_rate=2e-3, beta2=0.998),
)

# The command in the README of HolisticEval's release; its batch size of 16 counts tokens, and the
# gradients of two batches are added up. Gradients are not clipped, as in OpenNMT's Transformer.
TRANSFORMER_PAPER = Plan(
    TransformerArchitecture(layers=6, units=512, feed_forward=2048, heads=8, dropout=0.1),
    Seq2SeqOptions(
        vocabulary=50_000,
        pieces="words",
        history_tokens=100,
        reply_tokens=50,
        batch=2 * 16,
        per="tokens",
        smoothing=0.1,
    ),
    Settings(
        epochs=1,
        steps=100_000,
        learning_rate=2 * 512**-0.5,
        beta2=0.998,
        schedule="noam",
        warmup_steps=8000,
        clip=0.0,
    ),
)


def changed(
    plan: Plan,
    *,
    epochs: int | None = None,
    pairs: int | None = None,
    units: int | None = None,
    vocabulary: int | None = None,
    seed: int = 0,
) -> Plan:
    """A plan with some of it put differently; None leaves things as they are."""
    settings = replace(plan.settings, seed=seed)
    if units is not None and settings.schedule == "noam":  # its rate has units ** -0.5 in it
        rate = settings.learning_rate * (plan.architecture.units / units) ** 0.5
        settings = replace(settings, learning_rate=rate)
    if epochs is not None:
        settings = replace(settings, epochs=epochs, steps=0)
    options = replace(plan.options, pairs=pairs, vocabulary=vocabulary or plan.options.vocabulary)
    architecture = replace(plan.architecture, units=units or plan.architecture.units)
    return Plan(architecture, options, settings)


def train_seq2seq(
    data: Path,
    out: Path,
    plan: Plan,
    *,
    licence: str | None = None,
    command: str = "",
    evaluate_on: int = 200,
    format: str | None = None,
    say: Callable[[str], None] = lambda line: None,
    report: Report = lambda state, steps: None,
) -> Card:
    """Trains, saves and measures; continues where an earlier call into `out` was killed.

    `evaluate_on` bounds how many dialogues of validation and of test are looked at.
    """
    refuse_finished(out)
    corpus, left_out = without_rated(load_corpus(data, format), known_exchanges())
    options, seed = plan.options, plan.settings.seed
    with exclusive(out), offline():
        tokenizer = build_tokenizer(
            corpus.train, options.vocabulary, options.pieces, options.history_tokens
        )
        train_pairs, validation, test = (
            encode_pairs(tokenizer, dialogues, options.history_tokens, options.reply_tokens)
            for dialogues in (
                corpus.train,
                corpus.validation[:evaluate_on],
                corpus.test[:evaluate_on],
            )
        )
        model = _build(plan, tokenizer)
        recipe = Seq2SeqRecipe(
            model,
            plan.architecture,
            tokenizer.bos_token_id,
            train_pairs,
            validation,
            options,
            seed,
        )
        say(
            f"{corpus.name}: {len(recipe.train):,} pairs of a history and what came next,"
            f" {len(tokenizer):,} tokens in the vocabulary, {describe(model)}"
        )
        identity = {
            "data": corpus.digest(),
            "architecture": asdict(plan.architecture),
            "evaluate_on": evaluate_on,
            "options": asdict(options),
        }
        state = train(recipe, plan.settings, out, identity, report)
        plan.architecture.save(model, out)
        tokenizer.save_pretrained(out)
        say("measuring the test perplexity")
        perplexity = math.exp(recipe.mean_nll(test))
        kind = "LSTM" if isinstance(plan.architecture, LstmArchitecture) else "Transformer"
        card = Card(
            name=out.name,
            summary=f"{kind} of {describe(model)} that says what comes next in a dialogue.",
            command=command,
            seed=seed,
            base="none",
            licence=licence or licence_of([data]),
            data=_about(corpus, recipe, state) | left_out.facts(),
            settings=asdict(plan.settings) | asdict(options) | asdict(plan.architecture),
            scores={f"test perplexity per token ({len(test):,} replies)": perplexity},
            curve=state.curve,
        )
        card.write(out)
        forget_checkpoint(out)
    return card


def _build(plan: Plan, tokenizer: Any) -> torch.nn.Module:
    """Random weights, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.settings.seed)
        return plan.architecture.build(
            tokenizer, plan.options.history_tokens, plan.options.reply_tokens
        )


def _about(corpus: Corpus, recipe: Seq2SeqRecipe, state: State) -> dict[str, Any]:
    return {
        "corpus": corpus.name,
        "sha256": corpus.digest(),
        "train dialogues": len(corpus.train),
        "pairs per epoch": len(recipe.train),
        "tokens of replies per epoch": sum(len(pair.target) for pair in recipe.train),
        "epochs seen": round(state.step / len(recipe.batches(0)), 2),
    }
