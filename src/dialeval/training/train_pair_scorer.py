"""`dialeval train pone` and `train bert-ruber`: a directory that `-m pone:model=DIR` takes.

    scorer.json          what is read and how: encoder, pooling, rule for the context, sizes
    scorer.safetensors   the weights, 16 bits
    seeds.json           every seed that was trained: accuracies, agreement with people
    labels.svg           how many labels each round of the filter changed, if there was one
    card.json, card.md, curve.svg, boundary.svg

Of several seeds the one with the highest accuracy on held-out pairs is kept. The rated sets that
are here are reported on, one by one and as mean and spread over the seeds; nothing is chosen by
them, and dialogues that share an exchange with them were not learned from.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import torch

from dialeval.errors import UsageError
from dialeval.model_store.locate import locate
from dialeval.model_store.scorer_directory import (
    DESCRIPTION,
    load_network,
    read_scorer,
    save_scorer,
)
from dialeval.models.pair_scorer import PairScorerConfig, PairScorerNetwork
from dialeval.models.source import Models
from dialeval.pictures import line_chart
from dialeval.pictures.drawing import Drawing
from dialeval.question import ModelSource
from dialeval.storage import write_json, write_text
from dialeval.training.card import Card, licence_of
from dialeval.training.examples.negatives import NegativeSampler, SamplerOptions
from dialeval.training.fit_pair_scorer import (
    Fitted,
    PairData,
    PairScorerOptions,
    Round,
    first_sampler,
    fit,
    prepare,
    random_negatives,
)
from dialeval.training.learners.decision_boundary import draw_boundaries
from dialeval.training.learners.pair_scorer import accuracy
from dialeval.training.loop import Progress, Report, Settings, unseen
from dialeval.training.rated_agreement import (
    Agreement,
    RatedPairs,
    load_rated,
    measure_agreement,
)
from dialeval.training.workplace import exclusive, refuse_finished

TITLES: Mapping[str, str] = {"pone": "PONE", "bert-ruber": "BERT-RUBER"}


@dataclass(frozen=True)
class Trained:
    """One seed: its network, and what was measured of the weights as they are saved."""

    seed: int
    fitted: Fitted
    accuracy: Mapping[str, float]
    agreement: Mapping[str, Agreement]

    def to_record(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "accuracy": dict(self.accuracy),
            "agreement": {name: asdict(found) for name, found in self.agreement.items()},
            "rounds": [asdict(one) for one in self.fitted.rounds],
        }


def scorer_settings(epochs: int = 100, patience: int = 10, seed: int = 0) -> Settings:
    """As in the paper: Adam at 1e-3 all along, gradients no longer than 10."""
    return Settings(
        epochs=epochs,
        learning_rate=1e-3,
        weight_decay=1e-4,
        clip=10.0,
        patience=patience,
        seed=seed,
        optimizer="adam",
        schedule="constant",
    )


def train_pair_scorer(
    data: Sequence[Path],
    out: Path,
    *,
    options: PairScorerOptions,
    settings: Settings,
    seeds: int = 1,
    beside: Path | None = None,
    licence: str | None = None,
    command: str = "",
    source: ModelSource | None = None,
    say: Callable[[str], None] = lambda line: None,
    vectors_bar: Callable[[], AbstractContextManager[Progress]] = unseen,
    training_bar: Callable[[], AbstractContextManager[Report]] = unseen,
    finished: Callable[[int], None] = lambda seeds: None,
) -> Card:
    """Trains, saves and measures; continues where an earlier call into `out` was killed.

    seeds   trains with so many, from `settings.seed` on, and keeps the best on held-out pairs
    beside  another trained directory whose decision boundary is drawn for comparison

    The bars are opened one after the other: a terminal shows one at a time. `finished` hears how
    many seeds are done.
    """
    refuse_finished(out)
    if source is None and (role := locate(options.encoder).role) != "encoder":
        raise UsageError(
            f"model {options.encoder!r} has the role {role}: a pair scorer reads vectors of an"
            " encoder. See: dialeval models"
        )
    other = None if beside is None else load_scorer(beside)
    if other and (other[0].encoder, other[0].pooling) != (options.encoder, options.pooling):
        raise UsageError(
            f"{beside} cannot be drawn beside: it reads {other[0].pooling} vectors of"
            f" {other[0].encoder!r}, not {options.pooling} vectors of {options.encoder!r}"
        )
    with exclusive(out):
        with vectors_bar() as progress:
            found = prepare(data, options, source=source, say=say, progress=progress)
            rated = load_rated(
                options.encoder,
                options.context,
                pooling=options.pooling,
                words=options.truncate_words,
                source=source,
                progress=progress,
            )
        encoder = (source or Models()).fingerprint(options.encoder)
        identity = {"data": found.corpus.digest(), "encoder": encoder, "seeds": seeds}
        trained = []
        with training_bar() as report:
            for seed in range(settings.seed, settings.seed + seeds):
                if seeds > 1:
                    say(f"seed {seed}")
                stages, one = out / "stages" / str(seed), replace(settings, seed=seed)
                fitted = fit(found, options, one, stages, identity, say=say, report=report)
                trained.append(_measure(seed, fitted, found, rated))
                finished(len(trained))
        best = max(trained, key=lambda one: one.accuracy["validation"])
        network = best.fitted.network
        save_scorer(out, scorer_config(options, found.dimensions).to_record(), network)
        write_json(out / "seeds.json", [one.to_record() for one in trained])
        networks = {TITLES[options.metric]: network}
        if other is not None:
            networks = {TITLES.get(other[0].metric, other[0].metric): other[1], **networks}
        drawing = draw_boundaries(networks, found, np.random.default_rng(0))
        write_text(out / "boundary.svg", drawing.svg())
        if best.fitted.rounds:
            write_text(out / "labels.svg", draw_rounds(best.fitted.rounds).svg())
        card = _card(out.name, best, trained, found, options, settings, rated)
        card = replace(card, command=command, licence=licence or licence_of(data))
        card.write(out)
        shutil.rmtree(out / "stages")
    return card


def scorer_config(options: PairScorerOptions, dimensions: int) -> PairScorerConfig:
    """What has to be known to use the scorer."""
    return PairScorerConfig(
        options.metric,
        options.encoder,
        options.pooling,
        options.context,
        dimensions,
        options.hidden,
        options.truncate_words,
    )


def load_scorer(directory: Path) -> tuple[PairScorerConfig, PairScorerNetwork]:
    """What a trained directory holds."""
    if not (directory / DESCRIPTION).exists():
        raise UsageError(f"{directory} holds no trained pair scorer: there is no {DESCRIPTION}")
    if (kind := read_scorer(directory)["kind"]) != "pair-scorer":
        raise UsageError(
            f"{directory} holds a {kind}; wanted is what train bert-ruber or train pone made"
        )
    config = PairScorerConfig.read(directory)
    network = PairScorerNetwork(config.dimensions, config.hidden)
    load_network(network, directory)
    return config, network


def _measure(seed: int, fitted: Fitted, data: PairData, rated: Sequence[RatedPairs]) -> Trained:
    """Of the weights rounded to 16 bits, which is what is saved."""
    network = fitted.network.eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(parameter.half())
    answers = [data.corpus.texts[pair.response] for pair in data.corpus.test]
    sampler = NegativeSampler(
        SamplerOptions("weighted"), answers, lambda rows: data.test.responses[rows].numpy()
    )
    found = {
        "validation": _accuracy(network, data, "validation", None),
        "test": _accuracy(network, data, "test", None),
        "test, weighted negatives": _accuracy(network, data, "test", sampler),
    }
    return Trained(seed, fitted, found, measure_agreement(network, rated))


def _accuracy(
    network: PairScorerNetwork, data: PairData, split: Any, sampler: NegativeSampler | None
) -> float:
    pairs = getattr(data, split)
    wrong = (
        random_negatives(data.corpus, split)
        if sampler is None
        else sampler.sample(np.random.default_rng(0))
    )
    return accuracy(network, pairs, wrong)


def _card(
    name: str,
    best: Trained,
    trained: Sequence[Trained],
    data: PairData,
    options: PairScorerOptions,
    settings: Settings,
    rated: Sequence[RatedPairs],
) -> Card:
    corpus, options = data.corpus, data.used(options)
    scores: dict[str, float | None] = {
        f"accuracy on {what}": value for what, value in best.accuracy.items()
    }
    for pairs in rated:
        title = f"{pairs.name} {pairs.quality} ({len(pairs.ratings)})"
        values = [one.agreement[pairs.name].spearman for one in trained]
        known = [value for value in values if value is not None]
        scores[f"Spearman, {title}"] = best.agreement[pairs.name].spearman
        if len(known) > 1:
            scores |= {
                f"Spearman, {title}: mean over {len(known)} seeds": fmean(known),
                f"Spearman, {title}: standard deviation": stdev(known),
            }
    if rounds := best.fitted.rounds:
        scores |= {
            "label filter: rounds": len(rounds),
            "label filter: labels that changed in the last round": rounds[-1].changed,
        }
    if len(trained) > 1:
        accuracies = [one.accuracy["validation"] for one in trained]
        scores["accuracy on validation: mean over the seeds"] = fmean(accuracies)
    seeds = ", ".join(str(one.seed) for one in trained)
    return Card(
        name=name,
        summary=(
            f"{TITLES[options.metric]} scorer on {options.encoder}: does a response fit its query?"
            f" Seed {best.seed} of {seeds}, the best on held-out pairs."
        ),
        command="",
        seed=best.seed,
        base=options.encoder,
        licence="unknown",
        data={
            "corpus": corpus.name,
            "sha256": corpus.digest(),
            "pairs to learn from": len(corpus.train),
            "variants of responses": sum(map(len, data.train.of_pair)),
            "pairs for validation": len(corpus.validation),
            "pairs for test": len(corpus.test),
            **corpus.left_out.facts(),
        },
        settings=_flat(asdict(settings) | asdict(options))
        | {"sampler of the first stage": first_sampler(options)},
        scores=scores,
        curve=best.fitted.curve,
        tables={
            "Label filter": [
                {"round": number, **asdict(one)}
                for number, one in enumerate(best.fitted.rounds, start=1)
            ]
        },
    )


def draw_rounds(rounds: Sequence[Round]) -> Drawing:
    """Whether the labels converge: how many changed in each round."""
    changes = [(float(number), float(one.changed)) for number, one in enumerate(rounds, start=1)]
    return line_chart(
        {"labels that changed": changes},
        title="Label filter",
        x_label="round",
        y_label="labels of variants",
    )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """One level: `sampler temperature` for what stands inside `sampler`."""
    rows: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            rows |= {f"{key} {inner}": one for inner, one in value.items()}
        else:
            rows[key] = list(value) if isinstance(value, tuple) else value
    return rows
