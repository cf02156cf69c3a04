"""`dialeval train grade`: which response was given, by its text and by its topics? (Huang et al.,
EMNLP 2020)

What is written, learned from and kept is as in `train mme-topic`, GRADE's graph alone: the margin
loss, wrong responses that share a keyword or are near in meaning (the paper's lexical and
embedding-based negatives), and, unless `--negatives hard`, random ones besides. A text branch on
frozen sentence vectors learns along.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dialeval.model_store.presets import PRESETS
from dialeval.options import option
from dialeval.training.recipes.mme_topic import MmeTopic, PreparedTopics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dialeval.models.topic_graph import TopicGraphConfig
    from dialeval.training.learners.topic_graph import TopicData, TopicGraphLearner
    from dialeval.training.recipe import Progress


@dataclass(frozen=True, kw_only=True)
class Grade(MmeTopic):
    """Teach GRADE which response was given, by its text and by its topics."""

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
        from dataclasses import asdict

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
