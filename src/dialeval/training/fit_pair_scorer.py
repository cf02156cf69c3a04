"""From a corpus to a trained scorer: the data as vectors, the stages of the training.

    stage 0      pairs, variants as if all were right, negatives by the sampler
    stage 1 ...  rounds of the label filter: label the variants, train on, label again

The first stage ends with the weights of its best epoch. A round of the filter ends with those of
its last one, whatever validation says: labels that stay the same because the training was undone
would not have converged.

A stage is one training of the shared loop with a checkpoint of its own, which stays until all are
done. A training that was killed runs through its finished stages again, each of which ends at once
with the weights that it had, and goes on inside the unfinished one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from dialeval.errors import JobError
from dialeval.models.pair_scorer import HIDDEN, ContextRule, PairScorerNetwork
from dialeval.question import ModelSource
from dialeval.training.examples.embeddings import Pooling, embed
from dialeval.training.examples.negatives import (
    NegativeSampler,
    Numbers,
    SamplerName,
    SamplerOptions,
)
from dialeval.training.examples.pair_corpus import PairCorpus, load_pairs
from dialeval.training.examples.positives import make_positives
from dialeval.training.learners.label_filter import FilterOptions, Labels, filter_labels
from dialeval.training.learners.pair_scorer import (
    Matrix,
    PairScorerRecipe,
    PairVectors,
    make_network,
    pair_vectors,
    score_variants,
)
from dialeval.training.loop import Progress, Report, Settings, train

PairMetric = Literal["pone", "bert-ruber"]


@dataclass(frozen=True)
class PairScorerOptions:
    """What is learned and from what; the defaults are PONE's.

    pairs           pairs to learn from, drawn by lot; None: all of the corpus
    positives       `eda`, `ctg`, `ctg:model=DIR` or `none`, `variants` of each response
    edit_negatives  whether wrong responses are edited as often as right ones
    random_every    every so many epochs negatives are random (2, 3 or 5 in the released code)
    """

    metric: PairMetric = "pone"
    encoder: str = "minilm-l6"
    pooling: Pooling = "mean"
    context: ContextRule = "weighted"
    truncate_words: int = 100
    pairs: int | None = 45_000
    sampler: SamplerOptions = field(default_factory=SamplerOptions)
    random_every: int = 2
    edit_negatives: bool = True
    positives: str = "eda"
    variants: int = 5
    filter: FilterOptions = field(default_factory=FilterOptions)
    hidden: tuple[int, ...] = HIDDEN
    matrix: Matrix = "identity"
    dropout: float = 0.5
    batch: int = 256

    def as_bert_ruber(self) -> PairScorerOptions:
        """Random negatives, nothing augmented, nothing filtered."""
        return replace(
            self,
            metric="bert-ruber",
            sampler=replace(self.sampler, name="random"),
            random_every=0,
            positives="none",
            filter=replace(self.filter, mode="none"),
        )


@dataclass(frozen=True)
class PairData:
    """A corpus as vectors; `answers` are the texts of the responses to learn from."""

    corpus: PairCorpus
    train: PairVectors
    validation: PairVectors
    test: PairVectors
    answers: tuple[str, ...]

    @property
    def dimensions(self) -> int:
        return self.train.queries.shape[1]

    def used(self, options: PairScorerOptions) -> PairScorerOptions:
        """The options as far as they apply: without variants there are no labels to filter."""
        if len(self.train.variants):
            return options
        return replace(options, filter=replace(options.filter, mode="none"))


@dataclass(frozen=True)
class Round:
    """A round of the label filter: variants kept, those of them called wrong, labels changed."""

    kept: int
    wrong: int
    changed: int


@dataclass(frozen=True)
class Fitted:
    """A trained network, the curves of all stages end to end, and the rounds."""

    network: PairScorerNetwork
    curve: list[dict[str, float]]
    rounds: tuple[Round, ...]


def prepare(
    data: Sequence[Path],
    options: PairScorerOptions,
    *,
    source: ModelSource | None = None,
    say: Callable[[str], None] = lambda line: None,
    progress: Progress = lambda done, total: None,
) -> PairData:
    """Pairs, variants and all vectors."""
    words = options.truncate_words
    corpus = load_pairs(data, options.context, words=words, most=options.pairs)
    say(f"{corpus.name}: {len(corpus.train):,} pairs to learn from")
    positives = make_positives(
        options.positives,
        corpus.train,
        corpus.texts,
        variants=options.variants,
        words=words,
        progress=progress,
    )

    def vectors_of(texts: Sequence[str]) -> Any:
        return embed(
            texts, options.encoder, pooling=options.pooling, source=source, progress=progress
        )

    say(f"vectors of {len(corpus.texts):,} utterances")
    vectors = vectors_of(corpus.texts)
    variants = None
    if positives.texts:
        say(f"vectors of {len(positives.texts):,} variants of responses")
        variants = vectors_of(positives.texts)
    rule = options.context
    return PairData(
        corpus,
        pair_vectors(corpus.train, vectors, rule, variants, positives.of_pair),
        pair_vectors(corpus.validation, vectors, rule),
        pair_vectors(corpus.test, vectors, rule),
        tuple(corpus.texts[pair.response] for pair in corpus.train),
    )


def fit(
    data: PairData,
    options: PairScorerOptions,
    settings: Settings,
    stages: Path,
    identity: Mapping[str, Any],
    *,
    say: Callable[[str], None] = lambda line: None,
    report: Report = lambda state, steps: None,
) -> Fitted:
    """Trains one scorer; `stages` holds the checkpoints, `identity` says what must be equal for
    them to be continued."""
    options = data.used(options)
    seed = settings.seed
    network = make_network(data.dimensions, options.hidden, options.dropout, seed, options.matrix)
    sampler = NegativeSampler(
        options.sampler, data.answers, lambda rows: data.train.responses[rows].numpy()
    )
    wrong = random_negatives(data.corpus, "validation")
    released = options.filter.mode == "released"

    def stage(
        number: int, settings: Settings, labels: Labels | None, epochs_before: int = 0
    ) -> list[dict[str, float]]:
        recipe = PairScorerRecipe(
            network,
            data.train,
            sampler,
            data.validation,
            wrong,
            seed=seed + 1000 * number,
            batch=options.batch,
            sampler_name=first_sampler(options) if labels is None else None,
            edit_negatives=options.edit_negatives,
            random_every=options.random_every,
            epochs_before=epochs_before,
            labels=labels,
        )
        facts = {**identity, "options": asdict(options), "stage": number}
        return train(recipe, settings, stages / str(number), facts, report).curve

    curve = stage(0, settings, None)
    rounds: list[Round] = []
    if options.filter.mode == "none":
        return Fitted(network, curve, ())
    size = sum(map(len, data.train.of_pair))
    before = Labels(np.arange(size), np.ones(size, dtype=np.int64))
    for number in range(1, options.filter.rounds + 1):
        labels = _pseudo_labels(network, data.train, options.filter, seed + number)
        _check_kept(labels, size, number, options.filter.threshold)
        changed = labels.changes(before, size)
        rounds.append(Round(len(labels.kept), int((labels.labels == 0).sum()), changed))
        say(
            f"label filter, round {number}: {len(labels.kept):,} of {size:,} variants kept,"
            f" {changed:,} labels changed"
        )
        if not changed and not released:
            break
        before = labels
        later = replace(
            settings,
            epochs=options.filter.epochs,
            learning_rate=options.filter.learning_rate * options.filter.decay ** (number - 1),
            weight_decay=0.0,
            patience=0,
            keep="last",
        )
        done = int(curve[-1]["epoch"]) + 1
        curve = _append(curve, stage(number, later, labels, done))
    if rounds[-1].changed and not released:
        say(
            f"label filter: round {len(rounds)}, the last one, still changed"
            f" {rounds[-1].changed:,} of {size:,} labels. --rounds N allows more"
        )
    return Fitted(network, curve, tuple(rounds))


def first_sampler(options: PairScorerOptions) -> SamplerName:
    """Of stage 0: the released code learns its first labels from random negatives."""
    return "random" if options.filter.mode == "released" else options.sampler.name


def random_negatives(corpus: PairCorpus, split: Literal["validation", "test"]) -> Numbers:
    """Wrong responses for held-out pairs, the same for every training: rows of the same split."""
    texts = [corpus.texts[pair.response] for pair in getattr(corpus, split)]
    sampler = NegativeSampler(SamplerOptions("random"), texts, lambda rows: np.empty((0, 0)))
    return sampler.sample(np.random.default_rng(0))


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


def _append(curve: list[dict[str, float]], more: list[dict[str, float]]) -> list[dict[str, float]]:
    """A later stage begins where the curve ends; its first entry is that end itself."""
    step, epoch = curve[-1]["step"], curve[-1]["epoch"]
    moved = [
        {**entry, "step": entry["step"] + step, "epoch": entry["epoch"] + epoch + 1}
        for entry in more[1:]
    ]
    return [*curve, *moved]
