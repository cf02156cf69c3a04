"""The scorers of RUBER, BERT-RUBER and PONE: does this response fit this query?

In BERT-RUBER and PONE (Lan et al., 2020, 3.3.3), both are vectors of a frozen encoder. With a
learned matrix M,

    x = [q ; q^T M r ; r]      x -> 256 -> 512 -> 128 -> 1, ReLU and dropout after each hidden layer

and the sigmoid of the last number is the score. BERT-RUBER and PONE are this one network; they
differ in what it learns from.

What the encoder reads is here too, since a trained network knows nothing else: the last 100 words
of an utterance, and how the utterances before a response become one query.

`PairScorer` answers `Judge`: it asks an encoder for the vectors of the turns and of the response.
`Embed` is passed on to the same encoder, so that the referenced half of BERT-RUBER needs no other
name.

RUBER's unreferenced scorer (Tao et al., AAAI 2018, 3.2):

    q = final states of a bi-directional GRU over the words of the query; r likewise, a GRU of its
        own over the words of the response
    x = [q ; q^T M r ; r]      x -> tanh layer -> 1, dropout in between

and the sigmoid of the last number is the score. As in PONE's code (Lan et al., 2020), the final
states of both directions are added. Words come as vectors that are not trained; all words without
one share a vector that is.

To answer `Judge`, `RuberScorer` asks a table of word vectors for the words of both, as many as it
was trained with: the end of a query, the beginning of a response. A text without words is read as
one unknown word. `WordVectors` are passed on to the same table, so that the referenced half of
RUBER needs no other name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from dialeval.errors import UsageError
from dialeval.model_store.scorer_directory import choice, field, load_network, read_scorer
from dialeval.models.loading import batches_by_length, choose_device
from dialeval.question import Answer, Embed, Judge, Judgement, Question, WordVectors, cannot_answer
from dialeval.text import UNSPACED, treebank_words

ContextRule = Literal["sum", "weighted", "last"]
"""How utterance vectors become the query.

sum       all of them, as in the released code
weighted  their mean, each turn counting half as much as the one after it
last      the last one, whatever was said before
"""

CONTEXT_RULES: tuple[ContextRule, ...] = get_args(ContextRule)

HIDDEN = (256, 512, 128)

UNKNOWN = "[UNK]"
"""What the released code encodes instead of a blank utterance."""

_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
"""A Chinese or Japanese character, or a run of other letters: those scripts have no spaces."""


class PairScorerNetwork(torch.nn.Module):
    """`dimensions` of a vector, sizes of the `hidden` layers. Outputs are logits."""

    def __init__(
        self, dimensions: int, hidden: Sequence[int] = HIDDEN, dropout: float = 0.5
    ) -> None:
        super().__init__()
        self.bilinear = torch.nn.Parameter(torch.rand(dimensions, dimensions))
        sizes = [2 * dimensions + 1, *hidden]
        self.hidden = torch.nn.ModuleList(
            torch.nn.Linear(size, following) for size, following in pairwise(sizes)
        )
        self.out = torch.nn.Linear(sizes[-1], 1)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, query: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
        """Logits, one per row of both."""
        logits: torch.Tensor = self.out(self.pair_vectors(query, response)).squeeze(-1)
        return logits

    def pair_vectors(self, query: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
        """Returns what the last layer reads of each pair: the plane where it is 0 divides good from
        bad."""
        match = ((query @ self.bilinear) * response).sum(dim=-1, keepdim=True)
        x = torch.cat([query, match, response], dim=-1)
        for layer in self.hidden:
            x = self.dropout(torch.relu(layer(x)))
        return x


def context_vector(vectors: torch.Tensor, rule: ContextRule) -> torch.Tensor:
    """Returns the query, from one row per turn, the last turn last. No turn at all is the zero
    vector."""
    turns = len(vectors)
    if not turns:
        return vectors.new_zeros(vectors.shape[-1])
    if rule == "last":
        return vectors[-1]
    if rule == "sum":
        return vectors.sum(dim=0)
    weights = 0.5 ** torch.arange(turns - 1, -1, -1, dtype=vectors.dtype, device=vectors.device)
    return (weights / weights.sum()) @ vectors


def too_long(text: str, words: int) -> bool:
    """Returns whether `last_words` leaves something out."""
    return sum(1 for _ in _WORD.finditer(text)) > words


def last_words(text: str, words: int) -> str:
    """Returns the last words of a text, in Chinese its last characters."""
    starts = [word.start() for word in _WORD.finditer(text)]
    if not starts:
        return UNKNOWN
    return text[starts[-words] if len(starts) > words else starts[0] :].rstrip()


def words_of_cut(turns: Sequence[str], response: str, most: int) -> tuple[int, int]:
    """Returns how many words are read of what `last_words` cuts: of each turn, and of the
    response."""
    return most * any(too_long(turn, most) for turn in turns), most * too_long(response, most)


def check_dimensions(judge: str, rows: torch.Tensor, dimensions: int, encoder: str) -> None:
    """Raises an error if vectors are not those of the encoder that the judge was trained with."""
    if rows.shape[-1] != dimensions:
        raise UsageError(
            f"the {judge} reads vectors of {dimensions} numbers, but those of {encoder!r} have"
            f" {rows.shape[-1]}: it is not the encoder that it was trained with"
        )


Pooling = Literal["mean", "cls", "max"]
BATCH = 1024


@dataclass(frozen=True)
class PairScorerConfig:
    """`encoder` names a model whose vectors have `dimensions` numbers; `context` is the rule by
    which turns become a query; the last `truncate_words` words of a text are read."""

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
    """Loads the scorer in a directory that `dialeval train pone` or `train bert-ruber` made."""
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
        """Returns the vectors of the turns that count, then that of the response."""
        return [[self._embed(text) for text in self._texts(question)] for question in questions]

    def _texts(self, question: Question) -> tuple[str, ...]:
        match question:
            case Judge():
                turns = question.turns[-1:] if self._config.context == "last" else question.turns
                return (*turns, question.response)
            case Embed():
                return (question.text,)
        raise cannot_answer(question, "a scorer of pairs")

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
                *turns, response = self._texts(questions[position])
                cut = words_of_cut(turns, response, self._config.truncate_words)
                yield position, Judgement(score, *cut).answer()

    def _scores(self, answers: Sequence[Sequence[Answer]]) -> Any:
        vectors = [torch.from_numpy(np.array(own, dtype=np.float32)) for own in answers]
        for rows in vectors:
            check_dimensions("scorer", rows, self._config.dimensions, self._config.encoder)
        queries = [context_vector(rows[:-1], self._config.context) for rows in vectors]
        device = self._network.bilinear.device
        with torch.inference_mode():
            logits = self._network(
                torch.stack(queries).to(device),
                torch.stack([rows[-1] for rows in vectors]).to(device),
            )
        return logits.double().sigmoid().cpu().numpy()


RUBER_UNITS, RUBER_HIDDEN = 96, 96


class RuberNetwork(torch.nn.Module):
    """`dimensions` of a word vector, `units` of a GRU, size of the `hidden` layer. Outputs are
    logits."""

    def __init__(
        self,
        dimensions: int,
        units: int = RUBER_UNITS,
        hidden: int = RUBER_HIDDEN,
        dropout: float = 0.5,
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
    units: int = RUBER_UNITS
    hidden: int = RUBER_HIDDEN
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


def load_ruber(directory: Path, *, device: str = "auto") -> RuberScorer:
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
