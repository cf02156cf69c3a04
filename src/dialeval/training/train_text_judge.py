"""From examples and an encoder to a directory that `-m mme-fluency:model=` and its like take."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from dialeval.errors import UsageError
from dialeval.model_store.locate import offline
from dialeval.model_store.scorer_directory import save_tensors
from dialeval.models.source import Models
from dialeval.models.text_judge import (
    TextJudgeConfig,
    TextJudgeNetwork,
    TwinJudgeConfig,
    TwinJudgeNetwork,
    load_encoder,
)
from dialeval.networks.low_rank import add_low_rank, low_rank_tensors
from dialeval.training.by_source import score_source, word_count
from dialeval.training.card import Card
from dialeval.training.examples.pair_corpus import PairCorpus
from dialeval.training.learners.judge_recipe import Example, Examples, accuracy, targets_of
from dialeval.training.learners.text_judge import RankingRecipe, TextJudgeRecipe, in_order
from dialeval.training.learners.twin_judge import TwinJudgeRecipe
from dialeval.training.loop import Report, Settings, forget_checkpoint, train
from dialeval.training.workplace import exclusive, refuse_finished


@dataclass(frozen=True)
class Lesson:
    """What a sub-metric is taught.

    digest     of the data that the examples are made of
    data       for the card: where the examples come from, how many there are
    measured   more examples, by name, on which the accuracy is told in the end
    by_source  held-out examples of each source alone, for the table of the card (see `by_source`)
    ranked     examples come two by two, the better one first, and only their order is taught
    """

    summary: str
    examples: Examples
    validation: Sequence[Example]
    measured: Mapping[str, Sequence[Example]]
    digest: str
    data: Mapping[str, Any]
    licence: str
    by_source: Mapping[str, Sequence[Example]] = field(default_factory=dict)
    ranked: bool = False


def train_text_judge(
    lesson: Lesson,
    out: Path,
    *,
    config: TextJudgeConfig | TwinJudgeConfig,
    settings: Settings,
    batch: int,
    command: str = "",
    report: Report = lambda state, steps: None,
) -> Card:
    """Trains, saves and measures; continues where an earlier call into `out` was killed."""
    refuse_finished(out)
    with exclusive(out), offline():
        recipe = make_recipe(lesson, config, batch=batch, seed=settings.seed)
        identity = {
            "data": lesson.digest,
            "examples": _digest([*lesson.examples(0), *lesson.validation]),
            "encoder": Models().fingerprint(config.encoder),
            "config": config.to_record(),
            "batch": batch,
        }
        state = train(recipe, settings, out, identity, report)
        if isinstance(recipe, RankingRecipe):
            if state.best_epoch < 0:
                raise UsageError(
                    "no epoch puts held-out pairs in order better than the start: nothing was"
                    " learned. Take more data, a lower --learning-rate or fewer --epochs"
                )
            recipe.spread()
        _round(recipe.network)
        save_tensors(out, config.to_record(), trained_tensors(recipe.network))
        card = Card(
            name=out.name,
            summary=lesson.summary,
            command=command,
            seed=settings.seed,
            base=config.encoder,
            licence=lesson.licence,
            data=lesson.data,
            settings=asdict(settings) | config.to_record() | {"batch": batch},
            scores=_scores(lesson, recipe),
            curve=state.curve,
            by_source=_by_source(lesson, recipe),
        )
        card.write(out)
        forget_checkpoint(out)
    return card


def _scores(lesson: Lesson, recipe: TextJudgeRecipe | TwinJudgeRecipe) -> dict[str, float]:
    measured = {"validation": lesson.validation, **lesson.measured}
    if lesson.ranked:
        return {
            f"pairs in order on {name} ({len(examples) // 2:,} pairs; .5 by chance)": in_order(
                recipe.predict(examples)
            )
            for name, examples in measured.items()
        }
    return {
        f"accuracy on {name} ({len(examples):,} examples)": accuracy(
            recipe.predict(examples), targets_of(examples)
        )
        for name, examples in measured.items()
    }


def _by_source(lesson: Lesson, recipe: TextJudgeRecipe | TwinJudgeRecipe) -> list[dict[str, Any]]:
    threshold = None if lesson.ranked else 0.0
    return [
        score_source(
            source,
            recipe.predict(examples).tolist(),
            [example.target for example in examples],
            [word_count(example.response) for example in examples],
            threshold,
        ).to_record()
        for source, examples in lesson.by_source.items()
    ]


def _digest(examples: Sequence[Example]) -> str:
    """Whatever decides what is learned shows in the examples of the first epoch."""
    sha = hashlib.sha256()
    for example in examples:
        row = "\x1f".join((*example.turns, example.response, repr(example.target)))
        sha.update(row.encode("utf-8", "surrogatepass") + b"\x1e")
    return sha.hexdigest()


def corpus_facts(corpus: PairCorpus) -> dict[str, Any]:
    """What a card says about the dialogues that were learned from."""
    return {
        "corpus": corpus.name,
        "sha256": corpus.digest(),
        **corpus.left_out.facts(),
    }


def make_recipe(
    lesson: Lesson, config: TextJudgeConfig | TwinJudgeConfig, *, batch: int, seed: int
) -> TextJudgeRecipe | TwinJudgeRecipe:
    """An encoder with a new head, and adapters if there is a rank."""
    encoder, tokenizer = load_encoder(config.encoder)
    if config.rank:
        add_low_rank(encoder, config.rank, config.alpha, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(config, TwinJudgeConfig):
            twin = TwinJudgeNetwork(encoder)
            return TwinJudgeRecipe(
                twin, tokenizer, config, lesson.examples, lesson.validation, batch=batch, seed=seed
            )
        network = TextJudgeNetwork(encoder, config)
    make = RankingRecipe if lesson.ranked else TextJudgeRecipe
    return make(
        network, tokenizer, config, lesson.examples, lesson.validation, batch=batch, seed=seed
    )


def trained_tensors(network: TextJudgeNetwork | TwinJudgeNetwork) -> dict[str, torch.Tensor]:
    """What a judge keeps: what stands on its encoder, and the adapters or the whole encoder."""
    own = low_rank_tensors(network.encoder) or network.encoder.state_dict()
    head = {n: t for n, t in network.state_dict().items() if not n.startswith("encoder.")}
    return head | {f"encoder.{name}": tensor for name, tensor in own.items()}


def _round(network: torch.nn.Module) -> None:
    """To what 16 bits can hold, as weights are saved: what is measured is what is kept."""
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.requires_grad:
                parameter.copy_(parameter.half())
