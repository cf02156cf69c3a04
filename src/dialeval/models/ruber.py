"""RUBER's unreferenced scorer: does this response fit this query? (Tao et al., AAAI 2018, 3.2)

    q = final states of a bi-directional GRU over the words of the query; r likewise, a GRU of its
        own over the words of the response
    x = [q ; q^T M r ; r]      x -> tanh layer -> 1, dropout in between

and the sigmoid of the last number is the score. As in PONE's code (Lan et al., 2020), the final
states of both directions are added. Words come as vectors that are not trained; all words without
one share a vector that is.

To answer `Judge`, the scorer asks a table of word vectors for the words of both, as many as it was
trained with: the end of a query, the beginning of a response. A text without words is read as one
unknown word. `WordVectors` are passed on to the same table, so that the referenced half of RUBER
needs no other name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dialeval.model_store.scorer_directory import field, load_network, read_scorer
from dialeval.models.loading import batches_by_length, choose_device
from dialeval.question import Answer, Judge, Judgement, Question, WordVectors, cannot_answer
from dialeval.text import treebank_words

UNITS, HIDDEN = 96, 96


class RuberNetwork(torch.nn.Module):
    """`dimensions` of a word vector, `units` of a GRU, size of the `hidden` layer. Outputs are
    logits."""

    def __init__(
        self, dimensions: int, units: int = UNITS, hidden: int = HIDDEN, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.unknown = torch.nn.Parameter(torch.zeros(dimensions))
        self.query = torch.nn.GRU(dimensions, units, batch_first=True, bidirectional=True)
        self.response = torch.nn.GRU(dimensions, units, batch_first=True, bidirectional=True)
        self.bilinear = torch.nn.Parameter(torch.empty(units, units))
        torch.nn.init.xavier_uniform_(self.bilinear)
        self.hidden = torch.nn.Linear(2 * units + 1, hidden)
        self.out = torch.nn.Linear(hidden, 1)
        self.dropout = torch.nn.Dropout(dropout)

    def encode_queries(self, words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """(texts, words, dimensions), NaN where a word is unknown -> (texts, units)."""
        return self._encode(self.query, words, lengths)

    def encode_responses(self, words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return self._encode(self.response, words, lengths)

    def forward(self, query: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
        """Logits of encoded queries and responses, one per row of both."""
        match = ((query @ self.bilinear) * response).sum(dim=-1, keepdim=True)
        x = torch.tanh(self.hidden(torch.cat([query, match, response], dim=-1)))
        logits: torch.Tensor = self.out(self.dropout(x)).squeeze(-1)
        return logits

    def _encode(
        self, gru: torch.nn.GRU, words: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        known = torch.where(words.isnan(), self.unknown, words)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            known, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        _, states = gru(packed)
        summed: torch.Tensor = states.sum(dim=0)
        return summed


WORDS_PER_BATCH = 8192
"""Pairs times words of the longest."""

NO_WORDS = ("",)
"""What is looked up for a text without words: a word that no table has."""


@dataclass(frozen=True)
class RuberConfig:
    """`vectors` names a table with `dimensions` columns; at most `words` of a text are read."""

    vectors: str
    dimensions: int
    units: int = UNITS
    hidden: int = HIDDEN
    words: int = 40

    @classmethod
    def read(cls, directory: Path) -> RuberConfig:
        record = read_scorer(directory)
        sizes = ("dimensions", "units", "hidden", "words")
        return cls(record["vectors"], *(field(directory, record, name, int) for name in sizes))

    def to_record(self) -> dict[str, Any]:
        return {"kind": "ruber", "metric": "ruber", **asdict(self)}

    def network(self) -> RuberNetwork:
        return RuberNetwork(self.dimensions, self.units, self.hidden)


def query_words(text: str, most: int) -> tuple[str, ...]:
    return tuple(treebank_words(text.lower())[-most:]) or NO_WORDS


def response_words(text: str, most: int) -> tuple[str, ...]:
    return tuple(treebank_words(text.lower())[:most]) or NO_WORDS


def load(directory: Path, *, device: str = "auto") -> RuberScorer:
    """Loads the scorer in a directory that `dialeval train ruber` made."""
    config = RuberConfig.read(directory)
    network = config.network()
    load_network(network, directory)
    return RuberScorer(network.to(choose_device(device)), config)


class RuberScorer:
    """A network, and the name of the table whose vectors it reads."""

    def __init__(self, network: RuberNetwork, config: RuberConfig) -> None:
        self._network = network.eval()
        self._config = config

    def asks(self, questions: Sequence[Question]) -> list[list[Question]]:
        """Returns the words of the query and of the response, or what is to be passed on."""
        return [self._asks(question) for question in questions]

    def _asks(self, question: Question) -> list[Question]:
        vectors, most = self._config.vectors, self._config.words
        match question:
            case Judge():
                query = question.turns[-1] if question.turns else ""
                return [
                    WordVectors(vectors, query_words(query, most)),
                    WordVectors(vectors, response_words(question.response, most)),
                ]
            case WordVectors():
                return [WordVectors(vectors, question.words)]
        raise cannot_answer(question, "a scorer on word vectors")

    def _cut(self, question: Question) -> tuple[int, int]:
        """Returns how many words are read of what was cut: of the last turn, and of the
        response."""
        assert isinstance(question, Judge)
        most = self._config.words
        *turn, response = (
            most * (len(treebank_words(text.lower())) > most)
            for text in (*question.turns[-1:], question.response)
        )
        return sum(turn), response

    def answer(
        self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]] = ()
    ) -> Iterator[tuple[int, Answer]]:
        judged = []
        for position, question in enumerate(questions):
            if isinstance(question, WordVectors):
                yield position, answers[position][0]
            else:
                judged.append(position)
        pairs = [[to_tensor(rows) for rows in answers[position]] for position in judged]
        lengths = [len(query) + len(response) for query, response in pairs]
        for batch in batches_by_length(lengths, WORDS_PER_BATCH):
            scores = self._scores([pairs[number] for number in batch])
            for number, score in zip(batch, scores, strict=True):
                question = questions[judged[number]]
                yield judged[number], Judgement(score, *self._cut(question)).answer()

    def _scores(self, pairs: Sequence[Sequence[torch.Tensor]]) -> Any:
        device = self._network.bilinear.device
        queries, responses = ([pair[side] for pair in pairs] for side in (0, 1))
        with torch.inference_mode():
            logits = self._network(
                self._network.encode_queries(*padded(queries, device)),
                self._network.encode_responses(*padded(responses, device)),
            )
        return logits.double().sigmoid().cpu().numpy()


def to_tensor(rows: Answer) -> torch.Tensor:
    assert not isinstance(rows, str)
    return torch.from_numpy(np.array(rows, dtype=np.float32))


def padded(
    texts: Sequence[torch.Tensor], device: torch.device | str = "cpu"
) -> tuple[torch.Tensor, torch.Tensor]:
    """(texts, words, dimensions), and how many words of each text are words."""
    lengths = torch.tensor([len(rows) for rows in texts])
    words = torch.nn.utils.rnn.pad_sequence(list(texts), batch_first=True)
    return words.to(device), lengths
