"""GRADE: the text of a dialogue and a graph of its topics, read together (Huang et al., 2020, 3).

    v_text  = ELU( W [ c ; r ; |c - r| ; c * r ] )      c, r: vectors of a frozen sentence encoder
    v_topic = ELU( U mean over the nodes )              the graph of `models/topic_graph.py`
    [ v_text ; v_topic ] -> width -> 128 -> 1, ELU, and the sigmoid of the last number is the score

c is the mean of the last turns, the last one counting twice. In the paper v_text is the pooled
state of BERT, tuned along, and both branches have 512 numbers. What the released code does
otherwise in its graph stands in `topic_graph`.

To answer `Judge`, the model asks a table of word vectors and a sentence encoder. The directory is
that of a topic graph; `scorer.json` also names the encoder, and says which word vectors were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialeval.errors import UsageError
from dialeval.model_store.locate import fingerprint, locate
from dialeval.model_store.scorer_directory import field, load_network, read_scorer
from dialeval.models.loading import batches_by_length, choose_device
from dialeval.models.pair_scorer import last_words, too_long
from dialeval.models.sentence_head import pair_features, weighted_context
from dialeval.models.tagger import Frequencies, make_tagger
from dialeval.models.topic_graph import (
    HIDDEN,
    WORDS_PER_BATCH,
    GraphBody,
    TopicFinder,
    TopicGraph,
    TopicGraphConfig,
    load_graph,
)
from dialeval.question import Answer, Embed, Judge, Judgement, Question


class GradeNetwork(GraphBody):
    """Both branches. `text_dimensions` of a sentence vector, `width` of a branch. Outputs are
    logits."""

    def __init__(
        self,
        dimensions: int,
        units: int,
        heads: int,
        layers: int,
        text_dimensions: int,
        width: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(dimensions, units, heads, layers, dropout)
        self.topic = torch.nn.Linear(units, width)
        self.text = torch.nn.Linear(4 * text_dimensions, width)
        self.hidden = torch.nn.ModuleList(
            torch.nn.Linear(*pair) for pair in pairwise((2 * width, width, HIDDEN[-1]))
        )
        self.out = torch.nn.Linear(HIDDEN[-1], 1)

    def forward(
        self,
        words: torch.Tensor,
        edges: torch.Tensor,
        real: torch.Tensor,
        context: torch.Tensor,
        response: torch.Tensor,
    ) -> torch.Tensor:
        """Logits of graphs as `pooled` takes them, and of sentence vectors, one row each."""
        elu = torch.nn.functional.elu
        topic = elu(self.topic(self.pooled(words, edges, real)))
        text = elu(self.text(self.dropout(pair_features(context, response))))
        x = torch.cat([text, topic], dim=-1)
        for layer in self.hidden:
            x = self.dropout(elu(layer(x)))
        logits: torch.Tensor = self.out(x).squeeze(-1)
        return logits


@dataclass(frozen=True)
class GradeConfig(TopicGraphConfig):
    """`encoder` names a model whose vectors have `text_dimensions` numbers; `vectors_are` is the
    fingerprint of the word vectors."""

    encoder: str = ""
    text_dimensions: int = 0
    width: int = 128
    truncate_words: int = 100
    vectors_are: str = ""

    @classmethod
    def read(cls, directory: Path) -> GradeConfig:
        record = read_scorer(directory)
        return cls(
            **asdict(TopicGraphConfig.read(directory)),
            encoder=record["encoder"],
            vectors_are=field(directory, record, "vectors_are", str),
            **{
                name: field(directory, record, name, int)
                for name in ("text_dimensions", "width", "truncate_words")
            },
        )

    def to_record(self) -> dict[str, Any]:
        return {"kind": "grade", "metric": "grade", **asdict(self)}

    def network(self, dropout: float = 0.0) -> GradeNetwork:  # type: ignore[override]
        return GradeNetwork(
            self.dimensions,
            self.units,
            self.heads,
            self.layers,
            self.text_dimensions,
            self.width,
            dropout,
        )


def load(directory: Path, *, device: str = "auto") -> Grade:
    """Loads the judge in a directory that `dialeval train grade` made."""
    config = GradeConfig.read(directory)
    if fingerprint(locate(config.vectors)) != config.vectors_are:
        raise UsageError(
            f"{directory}: learned with other word vectors than {config.vectors!r} are here. Train"
            " it again."
        )
    network = config.network()
    load_network(network, directory)
    finder = TopicFinder(config, Frequencies.read(directory), make_tagger(config.tagger))
    concepts = load_graph(directory, config.graph)
    return Grade(network.to(choose_device(device)), config, finder, concepts)


class Grade(TopicGraph):
    """A topic graph that reads the text as well."""

    _config: GradeConfig

    def asks(self, questions: Sequence[Question]) -> list[list[Question]]:
        """Returns the vectors of the words around each keyword, then those of the last turns, then
        that of the response."""
        return [
            [*words, *(Embed(self._config.encoder, text) for text in self._texts(question))]
            for words, question in zip(super().asks(questions), questions, strict=True)
        ]

    def _texts(self, question: Question) -> list[str]:
        assert isinstance(question, Judge)  # `asks` refused all others
        read = (*(question.turns[-self._config.turns :] or ("",)), question.response)
        return [last_words(text, self._config.truncate_words) for text in read]

    def answer(
        self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]] = ()
    ) -> Iterator[tuple[int, Answer]]:
        topics = [self._topics(question) for question in questions]
        counts = [len(found.words) for found in topics]
        both = list(zip(answers, counts, strict=True))
        features = self._all_features(topics, [own[:count] for own, count in both])
        texts = [self._vectors(own[count:]) for own, count in both]
        for batch in batches_by_length([2 + count for count in counts], WORDS_PER_BATCH):
            graphs = self._graphs([topics[number] for number in batch], features)
            context, response = (
                torch.stack([texts[number][side] for number in batch]).to(graphs[0].device)
                for side in (0, 1)
            )
            with torch.inference_mode():
                logits = self._network(*graphs, context, response)
            for number, score in zip(batch, logits.double().sigmoid().tolist(), strict=True):
                yield number, Judgement(score, *self._cut(questions[number])).answer()

    def _vectors(self, own: Sequence[Answer]) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.from_numpy(np.array(own, dtype=np.float32))
        if rows.shape[-1] != self._config.text_dimensions:
            raise UsageError(
                f"the judge reads vectors of {self._config.text_dimensions} numbers, but those of"
                f" {self._config.encoder!r} have {rows.shape[-1]}: it is not the encoder that it"
                " was trained with"
            )
        counts = torch.tensor([len(rows) - 1])
        return weighted_context(rows[None, :-1], counts)[0], rows[-1]

    def _cut(self, question: Question) -> tuple[int, int]:
        """Returns how many words are read of what was cut: of each turn, and of the response."""
        assert isinstance(question, Judge)
        most = self._config.truncate_words
        turns = any(too_long(turn, most) for turn in question.turns[-self._config.turns :])
        return most * turns, most * too_long(question.response, most)
