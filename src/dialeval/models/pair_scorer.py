"""The scorers of BERT-RUBER and PONE answer `Judge`: does the response fit what was said before?

They ask an encoder for the vectors of the turns and of the response. What they read of a text, and
how turns become one query, is what they were trained with (see `pair_scorer_network`). `Embed` is
passed on to the same encoder, so that the referenced half of BERT-RUBER needs no other name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from dialeval.errors import UsageError
from dialeval.models.loading import choose_device
from dialeval.models.pair_scorer_network import (
    CONTEXT_RULES,
    ContextRule,
    PairScorerNetwork,
    context_vector,
    last_words,
    too_long,
)
from dialeval.models.scorer_directory import choice, field, load_network, read_scorer
from dialeval.question import Answer, Embed, Judge, Judgement, Question, cannot_answer

Pooling = Literal["mean", "cls", "max"]
BATCH = 1024


@dataclass(frozen=True)
class PairScorerConfig:
    """`encoder` names a model whose vectors have `dimensions` numbers; `context` is the rule by
    which turns become a query; so many words of a text are read, its last ones."""

    metric: str
    encoder: str
    pooling: Pooling
    context: ContextRule
    dimensions: int
    hidden: tuple[int, ...]
    truncate_words: int

    @classmethod
    def read(cls, directory: Path) -> PairScorerConfig:
        record = read_scorer(directory)
        hidden = field(directory, record, "hidden", list)
        return cls(
            field(directory, record, "metric", str),
            record["encoder"],
            choice(directory, record, "pooling", get_args(Pooling)),
            choice(directory, record, "context", CONTEXT_RULES),
            field(directory, record, "dimensions", int),
            tuple(field(directory, {"hidden": size}, "hidden", int) for size in hidden),
            field(directory, record, "truncate_words", int),
        )

    def to_record(self) -> dict[str, Any]:
        return {"kind": "pair-scorer", **asdict(self)}


def load(directory: Path, *, device: str = "auto") -> PairScorer:
    """The scorer in a directory that `dialeval train pone` or `train bert-ruber` made."""
    config = PairScorerConfig.read(directory)
    network = PairScorerNetwork(config.dimensions, config.hidden)
    load_network(network, directory)
    return PairScorer(network.to(choose_device(device)), config)


class PairScorer:
    """A network, and the name of the encoder whose vectors it reads."""

    def __init__(self, network: PairScorerNetwork, config: PairScorerConfig) -> None:
        self._network = network.eval()
        self._config = config

    def asks(self, questions: Sequence[Question]) -> list[list[Question]]:
        """The vectors of the turns that count, then that of the response."""
        return [[self._embed(text) for text in self._texts(question)] for question in questions]

    def _texts(self, question: Question) -> tuple[str, ...]:
        match question:
            case Judge():
                turns = question.turns[-1:] if self._config.context == "last" else question.turns
                return (*turns, question.response)
            case Embed():
                return (question.text,)
        raise cannot_answer(question, "a scorer of pairs")

    def _cut(self, question: Question) -> tuple[int, int]:
        """How many words are read of what was cut: of each turn, and of the response."""
        most = self._config.truncate_words
        *turns, response = (too_long(text, most) for text in self._texts(question))
        return most * any(turns), most * response

    def _embed(self, text: str) -> Embed:
        words = last_words(text, self._config.truncate_words)
        return Embed(self._config.encoder, words, self._config.pooling)

    def answer(
        self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]] = ()
    ) -> Iterator[tuple[int, Answer]]:
        judged = []
        for position, question in enumerate(questions):
            if isinstance(question, Embed):
                yield position, answers[position][0]
            else:
                judged.append(position)
        for start in range(0, len(judged), BATCH):
            some = judged[start : start + BATCH]
            for position, score in zip(some, self._scores([answers[p] for p in some]), strict=True):
                yield position, Judgement(score, *self._cut(questions[position])).answer()

    def _scores(self, answers: Sequence[Sequence[Answer]]) -> Any:
        vectors = [torch.from_numpy(np.array(own, dtype=np.float32)) for own in answers]
        for rows in vectors:
            if rows.shape[-1] != self._config.dimensions:
                raise UsageError(
                    f"the scorer reads vectors of {self._config.dimensions} numbers, but those of"
                    f" {self._config.encoder!r} have {rows.shape[-1]}: it is not the encoder that"
                    " it was trained with"
                )
        queries = [context_vector(rows[:-1], self._config.context) for rows in vectors]
        device = self._network.bilinear.device
        with torch.inference_mode():
            logits = self._network(
                torch.stack(queries).to(device),
                torch.stack([rows[-1] for rows in vectors]).to(device),
            )
        return logits.double().sigmoid().cpu().numpy()
