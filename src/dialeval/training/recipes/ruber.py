"""The scorers that learn which response fits its query: `ruber`, `bert-ruber` and `pone`.

`dialeval train ruber`: a scorer on word vectors learns which response fits its query.

The losses are in `learners/ruber.py`.

`dialeval train bert-ruber`: does a response fit its query? Learned against random ones.

    scorer.json          what is read and how: encoder, pooling, rule for the context, sizes
    scorer.safetensors   the weights, 16 bits
    seeds.json           every seed that was trained: accuracies, agreement with people
    seeds/N              the scorer of each seed, where there are several
    labels.svg           how many labels each round of the filter changed, if there was one (PONE)
    boundary.svg         where the scorer separates good from bad (learners/decision_boundary.py)

Of several seeds the one with the highest accuracy on held-out pairs is kept. Rated sets that are on
this machine are reported one by one, and as mean and deviation over the seeds; nothing is chosen by
them. The vectors of a corpus are computed once and stored in the cache. `pone` extends this recipe:
what it adds is fixed here to nothing.

`dialeval train pone`: BERT-RUBER with hard negatives, augmented positives and filtered labels.

Lan et al. (TOIS 2020): negatives near to the true response, more positives by EDA or a
generator (`examples/sampling.py`), and a filter for their labels (`learners/pair_scorer.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dialeval.errors import UsageError
from dialeval.metrics.word_vectors import chinese_words
from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.question import ModelSource
from dialeval.text import RUNS_TOGETHER, runs_together
from dialeval.training.recipe import (
    Measures,
    Prepared,
    Progress,
    Recipe,
    Settings,
    epochs_option,
    patience_option,
    seeded,
    settings_of,
)

if TYPE_CHECKING:
    from dialeval.models.pair_scorer import PairScorerConfig, PairScorerNetwork, RuberConfig
    from dialeval.training.examples.pair_corpus import PairCorpus
    from dialeval.training.examples.pair_vectors import PairData, RatedPairs, Split
    from dialeval.training.examples.sampling import NegativeSampler, SamplerName, SamplerOptions
    from dialeval.training.learners.pair_scorer import Agreement, FilterOptions, TrainedScorer
    from dialeval.training.learners.ruber import RuberLearner
    from dialeval.training.run import Training


SEEN_FIRST = 100
"""Texts by which the language of a corpus is told."""


@dataclass
class PreparedRuber(Prepared[Any]):
    """The learner, the corpus of pairs, and the configuration that is saved."""

    learner: RuberLearner
    corpus: PairCorpus
    described: RuberConfig


@dataclass(frozen=True, kw_only=True)
class Ruber(Recipe[PreparedRuber]):
    """Teach the scorer of RUBER which response fits which query."""

    name = "ruber"
    metric = "ruber:blend=unreferenced"
    usage = "dialeval score FILE -m ruber:model={out}"

    model: str = option(
        PRESETS["default"]["word-vectors"], "Read these word vectors, which are not trained."
    )
    loss: Literal["cross-entropy", "margin"] = option(
        "cross-entropy", "Minimise this loss. cross-entropy: PONE's code. margin: the paper's."
    )
    epochs: int = epochs_option(8)
    patience: int = patience_option(3)
    pairs: int | None = option(None, "Learn from at most this many pairs.", low=20)
    units: int = option(96, "Set the width of the network.", low=1)
    words: int = option(40, "Read at most this many words of a text.", low=1)
    tokenize: Literal["treebank", "jieba"] = option(
        "treebank",
        "Find words in this way. jieba: Chinese words (pip install 'dialeval[chinese]'); then use"
        " the result with ruber:tokenize=jieba.",
    )
    batch: int = option(256, "Take this many pairs per step.", low=2)
    learning_rate: float = option(2e-3, "Set the highest learning rate.", low=0.0)

    delta: float = 0.5

    def settings(self) -> Settings:
        return settings_of(self)

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedRuber:
        from dialeval.models.pair_scorer import RuberConfig
        from dialeval.models.source import Models
        from dialeval.training.examples.pair_corpus import WHOLE, load_pairs
        from dialeval.training.examples.pair_vectors import load_word_vectors
        from dialeval.training.learners.ruber import RuberLearner, WordNumbers

        table = load_word_vectors(self.model, self.name)
        corpus = load_pairs(data, "last", words=WHOLE, most=self.pairs)
        progress.say(f"{corpus.name}: {len(corpus.train):,} pairs to learn from")
        config = RuberConfig(self.model, table.vectors.shape[1], self.units, self.units, self.words)
        texts: Sequence[str] = corpus.texts
        if self.tokenize == "jieba":
            texts = [" ".join(chinese_words(text)) for text in texts]
        elif runs_together(*texts[:SEEN_FIRST]):
            raise UsageError(
                f"{corpus.name}: {RUNS_TOGETHER}: use --tokenize jieba and word vectors of the"
                " language (--model)"
            )
        numbers = WordNumbers(texts, table, self.words)
        unknown, read = numbers.without_vector()
        if 2 * unknown > read:
            progress.say(
                f"warning: {self.model} has no vector for {unknown:,} of {read:,} words: little can"
                " be learned. If it is another language, name word vectors of it with --model."
            )
        with seeded(self.seed):
            network = config.network()
        return PreparedRuber(
            RuberLearner(network, numbers, corpus.train, corpus.validation, self),
            "RUBER's unreferenced scorer: two GRUs and a bilinear match over word vectors"
            f" ({self.model}), trained to tell the response that was given from a random one.",
            self.model,
            {
                "corpus": corpus.name,
                "sha256": corpus.digest(),
                "pairs to learn from": len(corpus.train),
                "pairs for validation": len(corpus.validation),
                "pairs for test": len(corpus.test),
                "words without a vector": f"{unknown:,} of {read:,}",
                **corpus.left_out.facts(),
            },
            {"data": corpus.digest(), "vectors": Models().fingerprint(self.model)},
            corpus,
            config,
            config=asdict(config) | {"tokenize": self.tokenize},
        )

    def save(self, prepared: PreparedRuber, out: Path) -> None:
        from dialeval.model_store.scorer_directory import save_scorer

        save_scorer(out, prepared.described.to_record(), prepared.learner.network)

    def measure(self, prepared: PreparedRuber, progress: Progress) -> Measures:
        from dialeval.training.learners.ruber import measures

        score, corpus = prepared.learner.score, prepared.corpus
        return Measures(
            {
                **measures(score(corpus.validation), "validation"),
                **measures(score(corpus.test), "test"),
            }
        )


FEW_TEST_PAIRS = 100
"""Fewer pairs leave an accuracy uncertain by up to 10 points (95 %)."""


@dataclass(frozen=True)
class TrainedSeed:
    """One seed: its network, and what was measured of the weights as they are saved."""

    seed: int
    fitted: TrainedScorer
    accuracy: Mapping[str, float]
    agreement: Mapping[str, Agreement]

    def to_record(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "accuracy": dict(self.accuracy),
            "agreement": {name: asdict(found) for name, found in self.agreement.items()},
            "rounds": [asdict(one) for one in self.fitted.rounds],
        }


@dataclass
class PreparedPairs(Prepared[Any]):
    """Every seed has a learner of its own: `learner` is None, and `seeds` are those trained."""

    pairs: PairData
    rated: Sequence[RatedPairs]
    seeds: list[TrainedSeed] = field(default_factory=list)

    @property
    def best(self) -> TrainedSeed:
        return max(self.seeds, key=lambda one: one.accuracy["validation"])


@dataclass(frozen=True, kw_only=True)
class BertRuber(Recipe[PreparedPairs]):
    """Teach BERT-RUBER to tell the response of a query from random ones."""

    name: ClassVar[str] = "bert-ruber"
    metric: ClassVar[str] = "bert-ruber"
    title: ClassVar[str] = "BERT-RUBER"

    model: str = option(
        PRESETS["default"]["encoder"], "Read texts with this encoder, which is not trained."
    )
    context: Literal["last", "sum", "weighted"] = option(
        "weighted",
        "Choose the query. last: the turn before the response. sum: the sum of the vectors of all"
        " turns before it. weighted: their mean, each with half the weight of the next one.",
    )
    pairs: int = option(
        45_000, "Learn from at most this many pairs, drawn at random; 0: from all.", low=0
    )
    matrix: Literal["identity", "uniform"] = option(
        "identity",
        "Initialise the matrix of the scorer. uniform: random numbers between 0 and 1, as in the"
        " released code.",
    )
    epochs: int = epochs_option(100)
    patience: int = patience_option(10)
    seeds: int = option(1, "Train with this many seeds and keep the best on held-out pairs.", low=1)

    pooling: Literal["mean", "cls", "max"] = "mean"
    truncate_words: int = 100
    hidden: tuple[int, ...] = (256, 512, 128)
    dropout: float = 0.5
    batch: int = 256
    rate: float = 1e-3
    source: ModelSource | None = field(default=None, repr=False, compare=False)

    # `pone` has options for these.
    positives = "none"
    variants = 5
    random_every = 0
    edit_negatives = True
    compare_with = ""

    @property
    def sampler_options(self) -> SamplerOptions:
        """Returns the options of the sampler that draws wrong responses."""
        from dialeval.training.examples.sampling import SamplerOptions

        return SamplerOptions("random")

    @property
    def filter_options(self) -> FilterOptions:
        """Returns the rule by which labels of variants are filtered."""
        from dialeval.training.learners.pair_scorer import FilterOptions

        return FilterOptions("none")

    def filter_for(self, data: PairData) -> FilterOptions:
        """Returns the filter as far as it applies: without variants there are no labels to
        filter."""
        from dialeval.training.learners.pair_scorer import FilterOptions

        return self.filter_options if len(data.train.variants) else FilterOptions("none")

    def first_sampler(self, data: PairData) -> SamplerName:
        """Returns the sampler of stage 0: the released code learns its first labels from random
        ones."""
        released = self.filter_for(data).mode == "released"
        return "random" if released else self.sampler_options.name

    def settings(self) -> Settings:
        """Returns the settings of the paper: Adam at 1e-3 throughout, gradients clipped at 10."""
        return Settings(
            epochs=self.epochs,
            learning_rate=self.rate,
            weight_decay=1e-4,
            clip=10.0,
            patience=self.patience,
            seed=self.seed,
            optimizer="adam",
            schedule="constant",
        )

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedPairs:
        from dialeval.model_store.locate import locate
        from dialeval.models.source import Models
        from dialeval.training.examples.pair_vectors import load_pair_data, load_rated

        if self.source is None and (role := locate(self.model).role) != "encoder":
            raise UsageError(
                f"model {self.model!r} has the role {role}: a pair scorer reads vectors of an"
                " encoder. See: dialeval models"
            )
        self._compared()  # one that cannot be compared is an error before anything is computed
        pairs = load_pair_data(data, self, progress)
        corpus = pairs.corpus
        return PreparedPairs(
            None,
            "",
            self.model,
            {
                "corpus": corpus.name,
                "sha256": corpus.digest(),
                "pairs to learn from": len(corpus.train),
                **_variety(sum(map(len, pairs.train.of_pair)), len(pairs.train.variants)),
                "pairs for validation": len(corpus.validation),
                "pairs for test": len(corpus.test),
                **corpus.left_out.facts(),
            },
            {
                "data": corpus.digest(),
                "encoder": (self.source or Models()).fingerprint(self.model),
            },
            pairs,
            load_rated(self, progress),
            config=_prefixed("sampler", asdict(self.sampler_options))
            | _prefixed("filter", asdict(self.filter_for(pairs)))
            | {"sampler of the first stage": self.first_sampler(pairs)},
        )

    def learn(self, prepared: PreparedPairs, training: Training) -> Sequence[Mapping[str, float]]:
        from dialeval.training.learners.pair_scorer import fit

        for seed in range(self.seed, self.seed + self.seeds):
            if self.seeds > 1:
                training.progress.say(f"seed {seed}")
            fitted = fit(prepared.pairs, self, seed, training)
            prepared.seeds.append(_measured(seed, fitted, prepared))
            training.progress.finished(len(prepared.seeds), self.seeds)
        best = prepared.best
        seeds = ", ".join(str(one.seed) for one in prepared.seeds)
        prepared.seed = best.seed
        prepared.summary = (
            f"{self.title} scorer on {self.model}: does a response fit its query?"
            f" Seed {best.seed} of {seeds}, the best on held-out pairs."
        )
        return best.fitted.curve

    def save(self, prepared: PreparedPairs, out: Path) -> None:
        import numpy as np

        from dialeval.model_store.scorer_directory import save_scorer
        from dialeval.models.pair_scorer import PairScorerConfig
        from dialeval.pictures import line_chart
        from dialeval.storage import write_json, write_text
        from dialeval.training.learners.decision_boundary import draw_boundaries

        best = prepared.best.fitted
        config = PairScorerConfig(
            self.name,
            self.model,
            self.pooling,
            self.context,
            prepared.pairs.dimensions,
            self.hidden,
            self.truncate_words,
        )
        save_scorer(out, config.to_record(), best.network)
        for one in prepared.seeds if len(prepared.seeds) > 1 else ():
            save_scorer(out / "seeds" / str(one.seed), config.to_record(), one.fitted.network)
        write_json(out / "seeds.json", [one.to_record() for one in prepared.seeds])
        networks = {**self._compared(), self.title: best.network}
        drawing = draw_boundaries(networks, prepared.pairs, np.random.default_rng(0))
        write_text(out / "boundary.svg", drawing.svg())
        if best.rounds:
            changes = [(float(n), float(one.changed)) for n, one in enumerate(best.rounds, 1)]
            chart = line_chart(
                {"labels that changed": changes},
                title="Label filter",
                x_label="round",
                y_label="labels of variants",
            )
            write_text(out / "labels.svg", chart.svg())

    def measure(self, prepared: PreparedPairs, progress: Progress) -> Measures:
        best, rounds = prepared.best, prepared.best.fitted.rounds
        scores: dict[str, float | None] = {
            f"accuracy on {what}": value for what, value in best.accuracy.items()
        }
        if (n := len(prepared.pairs.corpus.test)) < FEW_TEST_PAIRS:
            points = 100 * 1.96 * math.sqrt(0.25 / n) if n else 100
            progress.say(f"{n} test pairs are few: an accuracy on them is +-{points:.0f} points")
            scores[f"test pairs (few: accuracy is +-{points:.0f} points)"] = n
        if rounds:
            scores |= {
                "label filter: rounds": len(rounds),
                "label filter: labels that changed in the last round": rounds[-1].changed,
            }
        if len(prepared.seeds) > 1:
            accuracies = [one.accuracy["validation"] for one in prepared.seeds]
            scores["accuracy on validation: mean over the seeds"] = fmean(accuracies)
        table = [{"round": number, **asdict(one)} for number, one in enumerate(rounds, start=1)]
        return Measures(scores, tables={"Label filter": table})

    def agreement(
        self, prepared: PreparedPairs, out: Path, progress: Progress
    ) -> dict[str, float | None]:
        """Measures the agreement of the scorer alone, seed by seed: the vectors of rated answers
        are at hand."""
        from dialeval.training.card import title

        scores: dict[str, float | None] = {}
        for rated in prepared.rated:
            name = title(rated.name, rated.quality, len(rated.ratings))
            values = [one.agreement[rated.name].spearman for one in prepared.seeds]
            known = [value for value in values if value is not None]
            scores[name] = prepared.best.agreement[rated.name].spearman
            if len(known) > 1:
                scores |= {
                    f"{name}: mean over {len(known)} seeds": fmean(known),
                    f"{name}: standard deviation": stdev(known),
                }
        return scores

    def _compared(self) -> dict[str, PairScorerNetwork]:
        """Returns another trained scorer whose boundary is drawn for comparison, by its title."""
        if not self.compare_with:
            return {}
        from dialeval.training.recipes import find_recipe

        config, network = load_scorer(Path(self.compare_with))
        if (config.encoder, config.pooling) != (self.model, self.pooling):
            raise UsageError(
                f"{self.compare_with} cannot be compared: it reads {config.pooling} vectors of"
                f" {config.encoder!r}, not {self.pooling} vectors of {self.model!r}"
            )
        recipe: Any = find_recipe(config.metric)
        return {recipe.title: network}


def _variety(written: int, different: int) -> dict[str, Any]:
    """Says how many positives were made, and whether they are the same few again and again."""
    facts: dict[str, Any] = {"variants of responses": written}
    if written:
        facts["different texts among the variants"] = different
        facts["share of different texts"] = round(different / written, 4)
    return facts


def load_scorer(directory: Path) -> tuple[PairScorerConfig, PairScorerNetwork]:
    """Loads what a trained directory holds."""
    from dialeval.model_store.scorer_directory import DESCRIPTION, load_network, read_scorer
    from dialeval.models.pair_scorer import PairScorerConfig, PairScorerNetwork

    if not (directory / DESCRIPTION).exists():
        raise UsageError(f"{directory} holds no trained pair scorer: there is no {DESCRIPTION}")
    if (kind := read_scorer(directory)["kind"]) != "pair-scorer":
        raise UsageError(
            f"{directory} holds a {kind}; expected a result of train bert-ruber or train pone"
        )
    config = PairScorerConfig.read(directory)
    network = PairScorerNetwork(config.dimensions, config.hidden)
    load_network(network, directory)
    return config, network


def _measured(seed: int, fitted: TrainedScorer, prepared: PreparedPairs) -> TrainedSeed:
    """Measures the weights rounded to 16 bits, as they are saved."""
    import torch

    from dialeval.training.examples.sampling import NegativeSampler, SamplerOptions
    from dialeval.training.learners.pair_scorer import measure_agreement

    network, data = fitted.network.eval(), prepared.pairs
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(parameter.half())
    answers = [data.corpus.texts[pair.response] for pair in data.corpus.test]
    weighted = NegativeSampler(
        SamplerOptions("weighted"), answers, lambda rows: data.test.responses[rows].numpy()
    )
    found = {
        "validation": _accuracy(network, data, "validation"),
        "test": _accuracy(network, data, "test"),
        "test, weighted negatives": _accuracy(network, data, "test", weighted),
    }
    return TrainedSeed(seed, fitted, found, measure_agreement(network, prepared.rated))


def _accuracy(
    network: PairScorerNetwork, data: PairData, split: Split, sampler: NegativeSampler | None = None
) -> float:
    import numpy as np

    from dialeval.training.learners.pair_scorer import accuracy

    drawn = sampler.sample(np.random.default_rng(0)) if sampler else data.random_negatives(split)
    return accuracy(network, getattr(data, split), drawn)


def _prefixed(name: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the record with prefixed names, such as `sampler temperature`."""
    return {f"{name} {inner}": value for inner, value in record.items()}


@dataclass(frozen=True, kw_only=True)
class Pone(BertRuber):
    """Teach PONE which responses fit a query: hard negatives, augmented positives, filtered labels.

    The vectors of a corpus are computed once and stored in the cache.
    """

    name: ClassVar[str] = "pone"
    metric: ClassVar[str] = "pone"
    title: ClassVar[str] = "PONE"

    sampler: Literal["weighted", "random", "middle", "bm25"] = option(
        "weighted",
        "Choose where wrong responses come from. weighted: near the true one (PONE). middle: the"
        " middle of ten by similarity (MME-CRS). bm25: words in common with the true one.",
    )
    candidates: int = option(200, "With --sampler weighted, draw this many candidates (h).", low=1)
    temperature: float = option(
        0.05, "With --sampler weighted, use this t in softmax(cosine / t).", low=0.001
    )
    random_every: int = option(
        2,
        "Draw random wrong responses in every N-th epoch, as the released code does; 0: never.",
        low=0,
    )
    edit_negatives: bool = option(True, "Edit wrong responses as often as right ones.")
    positives: str = option(
        "eda",
        "Make more right responses (variants) by eda (changed words), ctg (a generator, slow;"
        " ctg:model=DIR samples, ctg:model=DIR,method=beam takes its beams) or none.",
    )
    variants: int = option(5, "Make this many variants per response (k).", low=1)
    filter: Literal["paper", "released", "none"] = option(
        "paper",
        "Filter the labels of variants. paper: the scorer labels all variants until no label"
        " changes. released: it labels them on a schedule, with dropout active and tiny steps."
        " none: all variants are right.",
    )
    threshold: float | None = option(
        None,
        "Keep labels whose score is nearer to 0 or 1 than this; 0.5 keeps all (default: 0.5, with"
        " --filter released 0.05).",
        low=0.0,
        high=0.5,
    )
    doubtful: Literal["drop", "change"] = option(
        "drop",
        "Choose what happens to variants whose label is not kept. drop: the scorer does not learn"
        " from them. change: they count as right, which is an option of the released code.",
    )
    rounds: int | None = option(
        None,
        "Stop the label filter after this many rounds (default: 100, with --filter released 75"
        " epochs of them).",
        low=1,
    )
    compare_with: str = option(
        "", "Draw another trained scorer, such as BERT-RUBER, in boundary.svg for comparison."
    )

    filter_epochs: int | None = None
    filter_rate: float | None = None
    filter_decay: float | None = None

    @property
    def sampler_options(self) -> SamplerOptions:
        from dialeval.training.examples.sampling import SamplerOptions

        return SamplerOptions(self.sampler, self.candidates, self.temperature)

    @property
    def filter_options(self) -> FilterOptions:
        from dialeval.training.learners.pair_scorer import FilterOptions, released_filter

        if self.filter == "released":
            usual = released_filter(self.positives, self.threshold, self.rounds, self.doubtful)
        else:
            threshold = 0.5 if self.threshold is None else self.threshold
            usual = FilterOptions(self.filter, threshold, self.doubtful, rounds=self.rounds or 100)
        own = {
            "epochs": self.filter_epochs,
            "learning_rate": self.filter_rate,
            "decay": self.filter_decay,
        }
        given = {name: value for name, value in own.items() if value is not None}
        return replace(usual, **given)  # type: ignore[arg-type]
