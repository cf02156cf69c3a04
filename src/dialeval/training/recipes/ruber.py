"""`dialeval train ruber`: a scorer on word vectors learns which response fits its query.

The losses are in `learners/ruber.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.errors import UsageError
from dialeval.metrics.word_vectors import chinese_words
from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.text import RUNS_TOGETHER, runs_together
from dialeval.training.recipe import (
    Measures,
    Prepared,
    Progress,
    Recipe,
    Settings,
    epochs_option,
    patience_option,
    settings_of,
)

if TYPE_CHECKING:
    from dialeval.models.pair_scorer import RuberConfig
    from dialeval.training.examples.pair_corpus import PairCorpus
    from dialeval.training.learners.ruber import RuberLearner


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
    """Teach RUBER's scorer which response fits which query."""

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
        import torch

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
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
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
