"""The stages in which a pair scorer is trained, for one seed.

    stage 0      pairs, variants as if all were right, negatives by the sampler
    stage 1 ...  rounds of the label filter: label the variants, train on, label again

The first stage ends with the weights of its best epoch. A round of the filter ends with those of
its last epoch, whatever validation says: labels that stay the same because the training was undone
would not have converged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from dialeval.errors import JobError
from dialeval.models.pair_scorer import PairScorerNetwork
from dialeval.training.examples.pair_vectors import PairData, PairVectors
from dialeval.training.examples.sampling import NegativeSampler
from dialeval.training.learners.pair_scorer import (
    FilterOptions,
    Labels,
    PairScorerLearner,
    filter_labels,
    make_network,
    score_variants,
)
from dialeval.training.recipe import Settings

if TYPE_CHECKING:
    from dialeval.training.recipes.bert_ruber import BertRuber
    from dialeval.training.run import Training

Curve = list[dict[str, float]]


@dataclass(frozen=True)
class Round:
    """A round of the label filter: variants kept, those of them called wrong, labels changed."""

    kept: int
    wrong: int
    changed: int


@dataclass(frozen=True)
class TrainedScorer:
    """A trained network, the curves of all stages end to end, and the rounds."""

    network: PairScorerNetwork
    curve: Curve
    rounds: tuple[Round, ...]


def fit(data: PairData, recipe: BertRuber, seed: int, training: Training) -> TrainedScorer:
    """Trains one scorer with this seed."""
    filtering, settings = recipe.filter_for(data), replace(recipe.settings(), seed=seed)
    network = make_network(data.dimensions, recipe.hidden, recipe.dropout, seed, recipe.matrix)
    sampler = NegativeSampler(
        recipe.sampler_options, data.answers, lambda rows: data.train.responses[rows].numpy()
    )
    wrong = data.random_negatives("validation")
    released = filtering.mode == "released"

    def stage(
        number: int, settings: Settings, labels: Labels | None, epochs_before: int = 0
    ) -> Curve:
        learner = PairScorerLearner(
            network,
            data.train,
            sampler,
            data.validation,
            wrong,
            seed=seed + 1000 * number,
            batch=recipe.batch,
            sampler_name=recipe.first_sampler(data) if labels is None else None,
            edit_negatives=recipe.edit_negatives,
            random_every=recipe.random_every,
            epochs_before=epochs_before,
            labels=labels,
        )
        return training.stage(learner, settings, f"{seed}/{number}").curve

    curve = stage(0, settings, None)
    rounds: list[Round] = []
    if filtering.mode == "none":
        return TrainedScorer(network, curve, ())
    size = sum(map(len, data.train.of_pair))
    before = Labels(np.arange(size), np.ones(size, dtype=np.int64))
    for number in range(1, filtering.rounds + 1):
        labels = _pseudo_labels(network, data.train, filtering, seed + number)
        _check_kept(labels, size, number, filtering.threshold)
        changed = labels.changes(before, size)
        rounds.append(Round(len(labels.kept), int((labels.labels == 0).sum()), changed))
        training.progress.say(
            f"label filter, round {number}: {len(labels.kept):,} of {size:,} variants kept,"
            f" {changed:,} labels changed"
        )
        if not changed and not released:
            break
        before = labels
        later = replace(
            settings,
            epochs=filtering.epochs,
            learning_rate=filtering.learning_rate * filtering.decay ** (number - 1),
            weight_decay=0.0,
            patience=0,
            keep="last",
        )
        done = int(curve[-1]["epoch"]) + 1
        curve = _append(curve, stage(number, later, labels, done))
    if rounds[-1].changed and not released:
        training.progress.say(
            f"label filter: round {len(rounds)}, the last one, still changed"
            f" {rounds[-1].changed:,} of {size:,} labels. --rounds N allows more"
        )
    return TrainedScorer(network, curve, tuple(rounds))


def _pseudo_labels(
    network: PairScorerNetwork, pairs: PairVectors, options: FilterOptions, seed: int
) -> Labels:
    network.train(options.mode == "released")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        scores = score_variants(network, pairs)
    return filter_labels(scores, options.threshold, options.doubtful)


def _check_kept(labels: Labels, size: int, number: int, threshold: float) -> None:
    if not len(labels.kept):
        raise JobError(
            f"label filter, round {number}: none of {size:,} variants scores at most {threshold:g}"
            f" or at least {1 - threshold:g}, so nothing is left of them to learn from. Give a"
            " larger --threshold (0.5 keeps all), --filter none, or more dialogues."
        )


def _append(curve: Curve, more: Curve) -> Curve:
    """A later stage begins where the curve ends; its first entry is that end itself."""
    step, epoch = curve[-1]["step"], curve[-1]["epoch"]
    moved = [
        {**entry, "step": entry["step"] + step, "epoch": entry["epoch"] + epoch + 1}
        for entry in more[1:]
    ]
    return [*curve, *moved]
