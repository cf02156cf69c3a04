"""Trains the scorer to tell right responses from wrong ones, on vectors that were computed before.

A batch is 256 right pairs and for each of them the same query with a wrong response; the loss is
binary cross-entropy, the best epoch that of the highest accuracy on held-out pairs with random
wrong responses. An epoch sees each query once: with its response or, at random, with one of its
variants (the released code lists all of them, so its epoch is k + 1 of ours).

When labels are filtered, the same loop trains on with batches of three parts: the pairs themselves,
their negatives, and variants with the labels that the scorer gave them.

Wrong responses are edited like right ones: a negative is replaced by one of its own variants as
often as a right response is. Otherwise the scorer learns that text which was edited is right.

PONE's label filter (section 3.3.4): augmented responses get the label that the scorer gives.

A variant of a good response need not be good. The scorer, trained as if all were, scores them:
those at or below theta or at or above 1 - theta keep a pseudo-label (score > .5), the others are
dropped, or called good after all (`change`). Then it is trained on, and labels again.

    paper     every variant is labelled (theta .5), until no label changes; labels are made without
              dropout. The learning rate falls from round to round: at a constant one labels come
              to rest only when the scorer knows its training pairs by heart. A training whose
              labels still change after `rounds` rounds says so
    released  theta .05, as many rounds as asked for, no test of change; labels are made with
              dropout active, since the released code never leaves training mode;
              `released_filter` has its numbers

The stages in which a pair scorer is trained, for one seed.

    stage 0      pairs, variants as if all were right, negatives by the sampler
    stage 1 ...  rounds of the label filter: label the variants, train on, label again

The first stage ends with the weights of its best epoch. A round of the filter ends with those of
its last epoch, whatever validation says: labels that stay the same because the training was undone
would not have converged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import torch

from dialeval.agreement.correlation import correlations
from dialeval.errors import JobError
from dialeval.models.pair_scorer import PairScorerNetwork
from dialeval.training.examples.pair_vectors import PairData, PairVectors, RatedPairs
from dialeval.training.examples.sampling import NegativeSampler, Numbers, SamplerName
from dialeval.training.loop import NetworkLearner, Validation
from dialeval.training.recipe import Settings, seeded

if TYPE_CHECKING:
    from dialeval.training.recipes.ruber import BertRuber
    from dialeval.training.run import Training


FilterMode = Literal["paper", "released", "none"]

Doubtful = Literal["drop", "change"]


@dataclass(frozen=True)
class FilterOptions:
    """The options of the filter of labels.

    threshold      theta: how near to 0 or 1 a score must be; .5 keeps all
    doubtful       what happens to the others
    rounds         most rounds of labelling and training
    epochs         epochs of a round
    learning_rate  of these epochs, in the first round
    decay          what it is multiplied with from round to round
    """

    mode: FilterMode = "paper"
    threshold: float = 0.5
    doubtful: Doubtful = "drop"
    rounds: int = 100
    epochs: int = 2
    learning_rate: float = 1e-4
    decay: float = 0.7


RELEASED_EPOCHS = 75
RELEASED_THRESHOLD = 0.05


def released_filter(
    positives: str, threshold: float | None, rounds: int | None, doubtful: Doubtful = "drop"
) -> FilterOptions:
    """Returns the recipes of the released code: labels again every 2 epochs with EDA and every 5
    with beams, at a learning rate that hardly moves anything."""
    by_eda = positives == "eda"
    epochs = 2 if by_eda else 5
    return FilterOptions(
        "released",
        RELEASED_THRESHOLD if threshold is None else threshold,
        doubtful,
        rounds=rounds or RELEASED_EPOCHS // epochs,
        epochs=epochs,
        learning_rate=1e-7 if by_eda else 1e-6,
        decay=1.0,
    )


@dataclass(frozen=True)
class Labels:
    """The samples that are kept, in this order, and their pseudo-labels, 0 or 1."""

    kept: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]

    def changes(self, before: Labels, size: int) -> int:
        """Returns how many of `size` samples have another label, or are newly kept or dropped."""
        return int((self._dense(size) != before._dense(size)).sum())

    def _dense(self, size: int) -> npt.NDArray[np.int64]:
        dense = np.full(size, -1, dtype=np.int64)
        dense[self.kept] = self.labels
        return dense


def filter_labels(
    scores: npt.NDArray[np.floating], threshold: float, doubtful: Doubtful = "drop"
) -> Labels:
    """Pseudo-labels by score; with `change`, the doubtful stand behind the others, as good."""
    sure = (scores <= threshold) | (scores >= 1.0 - threshold)
    kept, others = np.flatnonzero(sure), np.flatnonzero(~sure)
    labels = (scores[kept] > 0.5).astype(np.int64)
    if doubtful == "change":
        kept = np.concatenate([kept, others])
        labels = np.concatenate([labels, np.ones(len(others), dtype=np.int64)])
    return Labels(kept, labels)


SCORED_AT_ONCE = 4096

Matrix = Literal["identity", "uniform"]
"""The matrix M before training.

identity  a multiple of the identity: q^T M r is the similarity of both, and training improves on it
uniform   numbers between 0 and 1, as in the released code: q^T M r is noise to begin with, which
          with MiniLM is 25 times as large as what stands beside it
"""
IDENTITY = 0.3
"""q^T M r of MiniLM's vectors, about 4.4 long, is then at most 6."""


@dataclass(frozen=True)
class PairBatch:
    """Rows and what is put beside their queries.

    variants   number of the variant that stands for each row's response; -1: the response itself
    negatives  rows whose responses are wrong for these queries
    wrong      number of the variant that stands for each of those; -1: the response itself
    labelled   (row, variant, label): variants with pseudo-labels
    """

    rows: Numbers
    variants: Numbers
    negatives: Numbers
    wrong: Numbers
    labelled: npt.NDArray[np.int64]


@torch.no_grad()
def score_pairs(
    network: PairScorerNetwork, queries: torch.Tensor, responses: torch.Tensor
) -> npt.NDArray[np.float64]:
    """Returns scores from 0 to 1 in whatever mode the network is in, in bounded memory."""
    found = [
        network(queries[i : i + SCORED_AT_ONCE], responses[i : i + SCORED_AT_ONCE]).double()
        for i in range(0, len(queries), SCORED_AT_ONCE)
    ]
    return torch.sigmoid(torch.cat(found)).numpy()


Scores = npt.NDArray[np.float64]


def score_both(
    network: PairScorerNetwork, pairs: PairVectors, wrong: Numbers
) -> tuple[Scores, Scores]:
    """Returns the scores of the true responses, and of wrong ones: `wrong` are the rows whose
    responses stand in."""
    return (
        score_pairs(network, pairs.queries, pairs.responses),
        score_pairs(network, pairs.queries, pairs.responses[wrong]),
    )


def share_right(right: Scores, wrong: Scores) -> float:
    """Returns the mean of two shares: true responses accepted, wrong ones rejected."""
    return float(((right > 0.5).mean() + (wrong <= 0.5).mean()) / 2)


def accuracy(network: PairScorerNetwork, pairs: PairVectors, wrong: Numbers) -> float:
    return share_right(*score_both(network, pairs, wrong))


@dataclass(frozen=True)
class Agreement:
    """Correlations of the scores with the mean ratings; None where not defined."""

    pearson: float | None
    spearman: float | None
    n: int


def measure_agreement(
    network: PairScorerNetwork, rated: Sequence[RatedPairs]
) -> dict[str, Agreement]:
    """Measures agreement with people by data set."""
    network.eval()
    found = {}
    for pairs in rated:
        scores = score_pairs(network, pairs.queries, pairs.responses)
        both = correlations(scores, pairs.ratings, None, ["pearson", "spearman"])
        found[pairs.name] = Agreement(
            both["pearson"].value, both["spearman"].value, len(pairs.ratings)
        )
    return found


class PairScorerLearner(NetworkLearner):
    """A scorer, pairs to learn from and pairs to validate on.

    held_out        pairs to validate on, `wrong` the rows whose responses are wrong for them
    labels          None: all variants are right, and one of them may stand for the response
    edit_negatives  whether variants stand for wrong responses as often as for right ones
    random_every    every N-th epoch has random negatives, as in the released code; 0: none
    epochs_before   those of earlier stages, which count for `random_every`
    """

    network: PairScorerNetwork

    def __init__(
        self,
        network: PairScorerNetwork,
        pairs: PairVectors,
        sampler: NegativeSampler,
        held_out: PairVectors,
        wrong: Numbers,
        *,
        seed: int,
        batch: int = 256,
        sampler_name: SamplerName | None = None,
        edit_negatives: bool = True,
        random_every: int = 0,
        epochs_before: int = 0,
        labels: Labels | None = None,
    ) -> None:
        self.network = network
        self._pairs = pairs
        self._sampler = sampler
        self._held_out = held_out
        self._wrong = wrong
        self._seed = seed
        self._batch = batch
        self._sampler_name = sampler_name
        self._edit_negatives = edit_negatives
        self._random_every = random_every
        self._epochs_before = epochs_before
        self._labels = None if labels is None else _by_row(labels, variants_of(pairs), len(pairs))

    def batches(self, epoch: int) -> list[PairBatch]:
        generator = np.random.default_rng([self._seed, epoch])
        often = self._random_every
        at_random = often and (epoch + self._epochs_before) % often == 0
        name: SamplerName | None = "random" if at_random else self._sampler_name
        negatives = self._sampler.sample(generator, name)
        itself = np.full(len(self._pairs), -1, dtype=np.int64)
        if self._labels is None:
            chosen = self._choose(generator)
            labelled = np.empty((len(self._pairs), 0), dtype=np.int64)
            wrong = self._choose(generator, negatives)
        else:
            chosen = itself
            labelled = _choose_labelled(self._labels, generator)
            # A query has its response and one variant, so every second right answer is edited.
            edited = generator.random(len(self._pairs)) < 0.5
            wrong = np.where(edited, self._choose(generator, negatives, own=False), -1)
        if not self._edit_negatives:
            wrong = itself
        order = generator.permutation(len(self._pairs))
        return [
            PairBatch(rows, chosen[rows], negatives[rows], wrong[rows], _given(labelled[rows]))
            for rows in (order[i : i + self._batch] for i in range(0, len(order), self._batch))
        ]

    def _choose(
        self, generator: np.random.Generator, rows: Numbers | None = None, own: bool = True
    ) -> Numbers:
        """For each of `rows` one of its variants or, if `own`, as likely as any of them the
        response itself: -1."""
        rows = np.arange(len(self._pairs)) if rows is None else rows
        if not self._pairs.of_pair:
            return np.full(len(rows), -1, dtype=np.int64)
        lots = generator.random(len(rows))
        found = np.empty(len(rows), dtype=np.int64)
        for place, (row, lot) in enumerate(zip(rows.tolist(), lots.tolist(), strict=True)):
            numbers = self._pairs.of_pair[row]
            choices = (-1, *numbers) if own or not numbers else numbers
            found[place] = choices[int(lot * len(choices))]
        return found

    def loss(self, batch: PairBatch) -> torch.Tensor:
        self.network.train()
        queries = self._pairs.queries[batch.rows]
        right = self._pairs.edited(batch.rows, batch.variants)
        wrong = self._pairs.edited(batch.negatives, batch.wrong)
        ones, zeros = torch.ones(len(batch.rows)), torch.zeros(len(batch.rows))
        all_queries, responses, labels = [queries, queries], [right, wrong], [ones, zeros]
        if len(batch.labelled):
            all_queries.append(self._pairs.queries[batch.labelled[:, 0]])
            responses.append(self._pairs.variant_rows(batch.labelled[:, 1]))
            labels.append(torch.from_numpy(batch.labelled[:, 2]).float())
        logits = self.network(torch.cat(all_queries), torch.cat(responses))
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.cat(labels))

    def validate(self) -> Validation:
        self.network.eval()
        right, wrong = score_both(self.network, self._held_out, self._wrong)
        tiny = 1e-12  # log 0 of a score that 64 bits round to 0 or 1
        loss = -(np.log(right + tiny).mean() + np.log(1.0 - wrong + tiny).mean()) / 2
        correct = share_right(right, wrong)
        return Validation(float(loss), {"validation_accuracy": correct}, error=1.0 - correct)


def variants_of(pairs: PairVectors) -> npt.NDArray[np.int64]:
    """(row, variant) of every variant of every pair, in the order of the rows."""
    found = [(row, n) for row, numbers in enumerate(pairs.of_pair) for n in numbers]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def score_variants(network: PairScorerNetwork, pairs: PairVectors) -> npt.NDArray[np.float64]:
    """Returns scores of `variants_of(pairs)`, a block at a time."""
    found = [np.empty(0)]
    rows = variants_of(pairs)
    for start in range(0, len(rows), SCORED_AT_ONCE):
        block = rows[start : start + SCORED_AT_ONCE]
        queries = pairs.queries[block[:, 0]]
        found.append(score_pairs(network, queries, pairs.variant_rows(block[:, 1])))
    return np.concatenate(found)


def _by_row(
    labels: Labels, variants: npt.NDArray[np.int64], rows: int
) -> list[npt.NDArray[np.int64]]:
    """Returns the kept variants of each row: (row, variant, label)."""
    kept = np.column_stack([variants[labels.kept], labels.labels])
    kept = kept[np.argsort(kept[:, 0], kind="stable")]
    edges = np.searchsorted(kept[:, 0], np.arange(rows + 1))
    return [kept[edges[row] : edges[row + 1]] for row in range(rows)]


def _choose_labelled(
    by_row: Sequence[npt.NDArray[np.int64]], generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Returns one kept variant of each row as (row, variant, label); row -1 where there is none."""
    found = np.full((len(by_row), 3), -1, dtype=np.int64)
    lots = generator.random(len(by_row))
    for row, kept in enumerate(by_row):
        if len(kept):
            found[row] = kept[int(lots[row] * len(kept))]
    return found


def _given(labelled: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if not labelled.shape[1]:
        return np.empty((0, 3), dtype=np.int64)
    return labelled[labelled[:, 0] >= 0]


def make_network(
    dimensions: int, hidden: Sequence[int], dropout: float, seed: int, matrix: Matrix
) -> PairScorerNetwork:
    """Makes a network with random weights that depend on the seed alone, and M as asked for."""
    with seeded(seed):
        network = PairScorerNetwork(dimensions, hidden, dropout)
    if matrix == "identity":
        with torch.no_grad():
            network.bilinear.copy_(torch.eye(dimensions) * IDENTITY)
    return network


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
    with seeded(seed):
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
