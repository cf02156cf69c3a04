"""The recipes that learn from graphs of topics: `mme-topic` and `grade`.

`dialeval train mme-topic`: a graph network learns which topics follow which (MME-CRS, GRADE).

    scorer.json          what is read and how: vectors, tagger, turns, sizes, digest of the graph
    scorer.safetensors   the weights, 16 bits
    idf.json             in how many utterances each word was found

The epoch with the lowest loss on held-out dialogues is kept, as in MME-CRS.

`dialeval train grade`: which response was given, by its text and by its topics? (Huang et al.,
EMNLP 2020)

What is written, learned from and kept is as in `train mme-topic`, GRADE's graph alone: the margin
loss, wrong responses that share a keyword or are near in meaning (the paper's lexical and
embedding-based negatives), and, unless `--negatives hard`, random ones besides. A text branch on
frozen sentence vectors learns along.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dialeval.errors import UsageError
from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipe import (
    Measures,
    Prepared,
    Progress,
    Recipe,
    Settings,
    epochs_option,
    patience_option,
    schedule_option,
    seeded,
    settings_of,
)

if TYPE_CHECKING:
    from dialeval.models.topic_graph import TopicGraphConfig
    from dialeval.training.learners.topic_graph import TopicData, TopicGraphLearner


@dataclass
class PreparedTopics(Prepared[Any]):
    """The learner, the topics of the data, and the configuration that is saved."""

    learner: TopicGraphLearner
    topics: TopicData
    described: TopicGraphConfig


@dataclass(frozen=True, kw_only=True)
class MmeTopic(Recipe[PreparedTopics]):
    """Teach the topic graph of MME-CRS which topics follow each other."""

    name = "mme-topic"
    metric = "mme-topic"

    model: str = option(
        PRESETS["default"]["word-vectors"], "Read these word vectors, which are not trained."
    )
    tagger: str = option(
        "lexicon",
        "Find nouns, verbs and adjectives with this tagger: lexicon (WordNet, nothing to fetch), or"
        " a spaCy pipeline such as spacy-en-sm.",
    )
    graph: str = option("", "Read another graph of concepts, made by scripts/build_conceptnet.py.")
    loss: Literal["margin", "cross-entropy"] = option(
        "margin", "Minimise this loss. margin: GRADE's. cross-entropy: right or wrong."
    )
    negatives: Literal["mixed", "random", "hard"] = option(
        "mixed",
        "Choose wrong responses. hard: similar to the right one. mixed: half hard, half random.",
    )
    layers: int = option(3, "Set the number of layers.", low=1)
    heads: int = option(4, "Set the number of heads of each layer.", low=1)
    units: int = option(64, "Set the width of a layer, all heads together.", low=1)
    turns: int = option(2, "Read this many turns of the context.", low=1)
    hops: int = option(4, "Join words that are at most this many hops apart in ConceptNet.", low=1)
    edges: Literal["hops", "idf"] = option(
        "hops",
        "Weight edges. hops: 1 / (1 + hops). idf: that times the lower idf of its two words.",
    )
    epochs: int = epochs_option(6)
    patience: int = patience_option(3)
    pairs: int | None = option(None, "Learn from at most this many pairs.", low=20)
    batch: int = option(64, "Take this many pairs per step.", low=1)
    learning_rate: float = option(2e-3, "Set the highest learning rate.", low=0.0)
    schedule: Literal["linear", "constant"] = schedule_option()
    dropout: float = option(0.1, "Drop this share of units while learning.", low=0.0, high=0.9)

    def __post_init__(self) -> None:
        if self.units % self.heads:
            raise UsageError(f"{self.units} units cannot be shared among {self.heads} heads")

    def settings(self) -> Settings:
        return settings_of(self)

    @property
    def about(self) -> str:
        """Returns a summary of the judge and its models, for the card."""
        return (
            "Topic coherence of MME-CRS: a graph attention network over the keywords of a context"
            f" and a response, joined by ConceptNet, on word vectors ({self.model})."
        )

    def judge_config(self, dimensions: int, graph: str) -> TopicGraphConfig:
        """Returns what the judge reads, and its sizes."""
        from dialeval.models.topic_graph import TopicGraphConfig

        return TopicGraphConfig(
            self.model,
            dimensions,
            graph,
            self.units,
            self.heads,
            self.layers,
            self.turns,
            tagger=self.tagger,
            furthest=self.hops,
            edges=self.edges,
        )

    def with_texts(
        self, topics: TopicData, config: TopicGraphConfig, progress: Progress
    ) -> TopicData:
        """Returns the data with what is read besides keywords: nothing."""
        return topics

    def learner_class(self) -> type[TopicGraphLearner]:
        from dialeval.training.learners.topic_graph import TopicGraphLearner

        return TopicGraphLearner

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedTopics:
        from dialeval.models.source import Models
        from dialeval.models.tagger import make_tagger
        from dialeval.training.examples.pair_vectors import load_word_vectors
        from dialeval.training.learners.topic_graph import load_topics, read_graph

        table = load_word_vectors(self.model, self.name)
        concepts = read_graph(Path(self.graph) if self.graph else None)
        make_tagger(self.tagger)  # one that is not here is an error before anything is read
        config = self.judge_config(table.vectors.shape[1], concepts.digest)
        topics = load_topics(data, config, table, concepts, self.pairs, progress)
        topics = self.with_texts(topics, config, progress)
        corpus = topics.corpus
        with seeded(self.seed):
            network = config.network(self.dropout)
        learner = self.learner_class()(
            network, topics.tables, topics.train, topics.validation, self
        )
        return PreparedTopics(
            learner,
            self.about,
            self.model,
            {
                "corpus": corpus.name,
                "sha256": corpus.digest(),
                "pairs to learn from": len(corpus.train),
                "pairs for validation": len(corpus.validation),
                "pairs for test": len(corpus.test),
                "keywords": len(topics.tables.numbers),
                "words of the graph of concepts": len(concepts.words),
                **corpus.left_out.facts(),
            },
            {
                "data": corpus.digest(),
                "vectors": Models().fingerprint(self.model),
                "config": config.to_record(),
            },
            topics,
            config,
            config=asdict(config),
        )

    def save(self, prepared: PreparedTopics, out: Path) -> None:
        from dialeval.model_store.scorer_directory import save_scorer
        from dialeval.models.topic_graph import GRAPH

        prepared.topics.frequencies.write(out)
        if self.graph:
            shutil.copyfile(self.graph, out / GRAPH)
        save_scorer(out, prepared.described.to_record(), prepared.learner.network)

    def measure(self, prepared: PreparedTopics, progress: Progress) -> Measures:
        from dialeval.training.learners.topic_graph import fixed_negatives, ranking

        topics = prepared.topics
        return Measures(
            {
                f"{split}_ranking_{name}": ranking(prepared.learner.score(pairs, wrong))
                for split, pairs in {"validation": topics.validation, "test": topics.test}.items()
                for name, wrong in fixed_negatives(pairs).items()
            }
        )


@dataclass(frozen=True, kw_only=True)
class Grade(MmeTopic):
    """Teach GRADE to recognise the response of a dialogue by its text and its topics."""

    name = "grade"
    metric = "grade"

    encoder: str = option(
        PRESETS["default"]["encoder"], "Read texts with this encoder, which is not trained."
    )
    width: int = option(128, "Set the width of each branch (512 in the paper).", low=1)

    @property
    def about(self) -> str:
        return (
            "GRADE: does a response fit? A graph attention network over keywords, joined by"
            f" ConceptNet, on word vectors ({self.model}), and a text branch on sentence vectors"
            f" ({self.encoder})."
        )

    def judge_config(self, dimensions: int, graph: str) -> TopicGraphConfig:
        from dialeval.models.source import Models
        from dialeval.models.text_judge import load_encoder
        from dialeval.models.topic_graph import GradeConfig

        encoder, _ = load_encoder(self.encoder)
        return GradeConfig(
            **asdict(super().judge_config(dimensions, graph)),
            encoder=self.encoder,
            text_dimensions=encoder.config.hidden_size,
            width=self.width,
            vectors_are=Models().fingerprint(self.model),
        )

    def with_texts(
        self, topics: TopicData, config: TopicGraphConfig, progress: Progress
    ) -> TopicData:
        from dialeval.models.topic_graph import GradeConfig
        from dialeval.training.learners.topic_graph import add_vectors

        assert isinstance(config, GradeConfig)
        return add_vectors(topics, config, progress)

    def learner_class(self) -> type[TopicGraphLearner]:
        from dialeval.training.learners.topic_graph import GradeLearner

        return GradeLearner

    def prepare(self, data: Sequence[Path], progress: Progress) -> PreparedTopics:
        from dialeval.models.source import Models

        prepared = super().prepare(data, progress)
        identity = prepared.identity | {"encoder": Models().fingerprint(self.encoder)}
        return replace(prepared, base=self.encoder, identity=identity)
