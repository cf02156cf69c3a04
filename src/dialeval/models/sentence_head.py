"""Small heads on frozen sentence vectors: what `deb`, `maude`, `dyna-eval`, `flow-score`, `usr` and
`predictive-engage` learn.

An encoder gives a vector for every turn and for the response, and is not trained. A head makes one
logit of them; its sigmoid is the score. c is the context, r the response:

    pair   c = mean of the turns, each with half the weight of the next one
           [c ; r ; |c - r| ; c * r] -> units -> 1, ReLU: next-utterance classification
    turns  p_i = P u_i, r' = P r; c = W max over i of biLSTM(p_1 ... p_n)_i, two layers
           [c ; r' ; |c - r'| ; c * r'] -> units -> 1, ReLU: MAUDE (Sinha et al., 2020, Eq. 3 to 5)
    graph  h = biLSTM of all turns and the response; g_1 and g_2 by two steps over a graph of them
           mean over the turns of [h ; g_2] -> 1: DynaEval (Zhang et al., 2021), see `GraphHead`
    mean   (q + r) / 2 -> 64 -> 32 -> 8 -> 1, tanh; q is the last turn: Predictive Engagement
           (Ghazarian et al., 2020). The softmax over two classes of the paper is the sigmoid of the
           difference of their logits
    flow   an LSTM foretells the vector of each turn from those before it; the score says how near
           it comes: FlowScore (Li et al., 2021), see `FlowHead`

The papers fine-tune BERT or read it frozen; a head of 50 to 400 thousand numbers learns in minutes
on one core, and what `bert-ruber` and `pone` embed is not embedded again.

`SentenceHead` answers `Judge`. It asks the encoder for the vectors through the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dialeval.model_store.scorer_directory import choice, field, load_network, read_scorer
from dialeval.models.loading import choose_device
from dialeval.models.pair_scorer import check_dimensions, last_words, words_of_cut
from dialeval.question import Answer, Embed, Judge, Judgement, Question, cannot_answer

HeadName = Literal["pair", "turns", "graph", "mean", "flow"]
BATCH = 512


class PairHead(torch.nn.Module):
    """`units` are the sizes of the hidden layers. Outputs are logits."""

    def __init__(self, dimensions: int, units: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = _layers([4 * dimensions, *units])
        self.dropout = torch.nn.Dropout(dropout)

    def forward(
        self, turns: torch.Tensor, counts: torch.Tensor, response: torch.Tensor
    ) -> torch.Tensor:
        """Logits of rows.

        turns     (rows, turns, dimensions): the first turn first, padded behind the last
        counts    (rows,): how many turns are real, at least one
        response  (rows, dimensions)
        """
        x = pair_features(weighted_context(turns, counts), response)
        for layer in self.layers[:-1]:
            x = self.dropout(torch.relu(layer(x)))
        logits: torch.Tensor = self.layers[-1](x).squeeze(-1)
        return logits


class TurnsHead(torch.nn.Module):
    """`units` are the width of turns and LSTM, and the size of the hidden layer."""

    def __init__(self, dimensions: int, units: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        width, hidden = units
        self.project = torch.nn.Linear(dimensions, width)
        self.lstm = torch.nn.LSTM(
            width, width, num_layers=2, bidirectional=True, batch_first=True, dropout=dropout
        )
        self.context = torch.nn.Linear(2 * width, width)
        self.layers = _layers([4 * width, hidden])
        self.dropout = torch.nn.Dropout(dropout)

    def forward(
        self, turns: torch.Tensor, counts: torch.Tensor, response: torch.Tensor
    ) -> torch.Tensor:
        """As `PairHead.forward`."""
        packed = pack_padded_sequence(
            self.dropout(self.project(turns)), counts.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, padding_value=-torch.inf
        )
        context = self.context(states.amax(dim=1))
        x = pair_features(context, self.project(response))
        x = self.dropout(torch.relu(self.layers[0](x)))
        logits: torch.Tensor = self.layers[1](x).squeeze(-1)
        return logits


WINDOW = 4
"""Turns before and after one that it is joined to, in a graph of the turns."""


class GraphHead(torch.nn.Module):
    """The turns of a dialogue as a graph, the response the last of them.

        a_ij = softmax over j of h_i . W_e h_j                      j from i - 4 to i + 4
        g1_i = relu( sum over j of a_ij / c_i,r(ij) W_r(ij) h_j  +  a_ii W_0 h_i )
        g2_i = relu( mean over j of W_1 g1_j  +  W_2 g1_i )

    r(ij) is one of eight relations: who speaks turn i, who speaks turn j, and whether j comes after
    i. c_i,r is how many turns i is joined to by r. Two speakers take turns. `units` is the width of
    one direction of the LSTM.
    """

    def __init__(self, dimensions: int, units: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        [hidden] = units
        width = 2 * hidden
        self.lstm = torch.nn.LSTM(dimensions, hidden, bidirectional=True, batch_first=True)
        self.edges = torch.nn.Linear(width, width, bias=False)
        self.relations = torch.nn.Linear(width, 8 * width, bias=False)
        self.itself = torch.nn.Linear(width, width)
        self.neighbours = torch.nn.Linear(width, width, bias=False)
        self.again = torch.nn.Linear(width, width)
        self.layers = _layers([2 * width])
        self.dropout = torch.nn.Dropout(dropout)

    def forward(
        self, turns: torch.Tensor, counts: torch.Tensor, response: torch.Tensor
    ) -> torch.Tensor:
        """As `PairHead.forward`."""
        rows = torch.arange(len(turns), device=turns.device)
        nodes = torch.cat([turns, torch.zeros_like(turns[:, :1])], dim=1)
        nodes[rows, counts] = response.to(nodes.dtype)
        packed = pack_padded_sequence(
            nodes, counts.cpu() + 1, batch_first=True, enforce_sorted=False
        )
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        h = self.dropout(h)
        count = h.shape[1]
        place = torch.arange(count, device=h.device)
        real = place <= counts[:, None]
        near = (place[:, None] - place).abs() <= WINDOW
        joined = near & real[:, :, None] & real[:, None, :]
        # A turn that is padding is joined to itself, so that no softmax is empty.
        joined = joined | torch.eye(count, dtype=torch.bool, device=h.device)
        weights = (h @ self.edges(h).transpose(1, 2)).masked_fill(~joined, -torch.inf).softmax(-1)
        # The speaker of the response is 0, the one before it 1.
        speaker = (counts[:, None] - place) % 2
        later = (place > place[:, None]).long()
        relation = 4 * speaker[:, :, None] + 2 * speaker[:, None, :] + later
        which = torch.nn.functional.one_hot(relation, 8) * joined[..., None]
        share = which / which.sum(dim=2, keepdim=True).clamp(min=1)
        messages = self.relations(h).unflatten(-1, (8, -1))
        g = torch.einsum("bij,bijr,bjrw->biw", weights, share, messages)
        own = weights.diagonal(dim1=1, dim2=2)[..., None]
        g = torch.relu(g + own * self.itself(h))
        mean = joined / joined.sum(dim=2, keepdim=True)
        g = torch.relu(self.neighbours(mean.to(g.dtype) @ g) + self.again(g))
        states = torch.cat([h, self.dropout(g)], dim=-1) * real[..., None]
        whole = states.sum(dim=1) / (counts[:, None] + 1)
        logits: torch.Tensor = self.layers[0](whole).squeeze(-1)
        return logits


class MeanHead(torch.nn.Module):
    """`units` are the sizes of the hidden layers."""

    def __init__(self, dimensions: int, units: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = _layers([dimensions, *units])
        self.dropout = torch.nn.Dropout(dropout)

    def forward(
        self, turns: torch.Tensor, counts: torch.Tensor, response: torch.Tensor
    ) -> torch.Tensor:
        """As `PairHead.forward`."""
        last = turns[torch.arange(len(turns), device=turns.device), counts - 1]
        x = (last + response) / 2
        for layer in self.layers[:-1]:
            x = self.dropout(torch.tanh(layer(x)))
        logits: torch.Tensor = self.layers[-1](x).squeeze(-1)
        return logits


FIRST_FORETOLD = 3
"""Turns before the first one that counts in a FlowScore."""

LEAST = 1e-6
"""The smallest (x + 1) / 2: its logarithm is finite even for the opposite of what was foretold."""


class FlowHead(torch.nn.Module):
    """What each turn says, foretold from the turns before it; the response is the last of them.

        f_k = W LSTM(u_1 ... u_k-1)
        x_k = cos(u_k, f_k) min(|u_k|, |f_k|)^2 / (|u_k| |f_k|)
        g = exp( mean over k of ln((x_k + 1) / 2) )

    k runs over the turns of the speaker of the response with three turns before them or more, or
    over the response alone where there is no such turn. Two speakers take turns. The output is the
    logit of g. `units` is the width of the LSTM.
    """

    def __init__(self, dimensions: int, units: Sequence[int], dropout: float = 0.0) -> None:
        super().__init__()
        [width] = units
        self.lstm = torch.nn.LSTM(dimensions, width, batch_first=True)
        self.foretell = torch.nn.Linear(width, dimensions)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(
        self, turns: torch.Tensor, counts: torch.Tensor, response: torch.Tensor
    ) -> torch.Tensor:
        """As `PairHead.forward`."""
        said, foretold, place = self._flow(turns, counts, response)
        x = flow_similarity(said, foretold)
        counted = (place >= FIRST_FORETOLD) & ((counts[:, None] - place) % 2 == 0)
        counted = (counted & (place <= counts[:, None])) | (place == counts[:, None])
        logarithms = ((x + 1) / 2).clamp(LEAST, 1 - LEAST).log() * counted
        mean = logarithms.sum(dim=1) / counted.sum(dim=1)
        return mean - torch.log1p(-mean.exp())

    def distances(
        self, turns: torch.Tensor, counts: torch.Tensor, response: torch.Tensor
    ) -> torch.Tensor:
        """Returns |u_k - f_k|^2 of all turns but the first, of all rows one after the other."""
        said, foretold, place = self._flow(turns, counts, response)
        return (said - foretold).square().sum(dim=-1)[place <= counts[:, None]]

    def _flow(
        self, turns: torch.Tensor, counts: torch.Tensor, response: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns what was said and what was foretold, and the place of both from 1 on."""
        rows = torch.arange(len(turns), device=turns.device)
        nodes = torch.cat([turns, torch.zeros_like(turns[:, :1])], dim=1)
        nodes[rows, counts] = response.to(nodes.dtype)
        # What is behind the response is padding, and nothing before it hears of it.
        states, _ = self.lstm(nodes[:, :-1])
        place = torch.arange(1, nodes.shape[1], device=turns.device).expand(len(turns), -1)
        return nodes[:, 1:], self.foretell(self.dropout(states)), place


def flow_similarity(said: torch.Tensor, foretold: torch.Tensor) -> torch.Tensor:
    """Returns cos(a, b) min(|a|, |b|)^2 / (|a| |b|) of the last dimension; 0 where one is 0."""
    one, other = (vector.square().sum(dim=-1).sqrt() for vector in (said, foretold))
    product = one * other
    cosine = (said * foretold).sum(dim=-1) / product.clamp(min=1e-12)
    return cosine * torch.minimum(one, other).square() / product.clamp(min=1e-12)


HEADS: Mapping[HeadName, Callable[..., torch.nn.Module]] = {
    "pair": PairHead,
    "turns": TurnsHead,
    "graph": GraphHead,
    "mean": MeanHead,
    "flow": FlowHead,
}


def _layers(sizes: Sequence[int]) -> torch.nn.ModuleList:
    """Linear layers of these sizes, and one to a single number behind them."""
    return torch.nn.ModuleList(torch.nn.Linear(*pair) for pair in pairwise([*sizes, 1]))


def pair_features(context: torch.Tensor, response: torch.Tensor) -> torch.Tensor:
    """Returns [c ; r ; |c - r| ; c * r]."""
    return torch.cat([context, response, (context - response).abs(), context * response], dim=-1)


def weighted_context(turns: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """Returns the mean of the real turns, each with half the weight of the next one."""
    place = torch.arange(turns.shape[1], device=turns.device)
    behind = counts[:, None] - 1 - place
    weights = torch.where(behind >= 0, 0.5 ** behind.clamp(min=0).to(turns.dtype), 0.0)
    weights = weights / weights.sum(dim=1, keepdim=True)
    return (weights[:, None] @ turns)[:, 0]


@dataclass(frozen=True)
class SentenceHeadConfig:
    """`encoder` names a model whose vectors have `dimensions` numbers. The last `turns` turns are
    read, and of each text its last `truncate_words` words."""

    metric: str
    encoder: str
    head: HeadName
    dimensions: int
    units: tuple[int, ...]
    turns: int
    truncate_words: int = 100

    @classmethod
    def read(cls, directory: Path) -> SentenceHeadConfig:
        record = read_scorer(directory)
        units = field(directory, record, "units", list)
        return cls(
            field(directory, record, "metric", str),
            record["encoder"],
            choice(directory, record, "head", get_args(HeadName)),
            units=tuple(field(directory, {"units": size}, "units", int) for size in units),
            **{
                name: field(directory, record, name, int)
                for name in ("dimensions", "turns", "truncate_words")
            },
        )

    def to_record(self) -> dict[str, Any]:
        return {"kind": "sentence-head", **asdict(self)}

    def network(self, dropout: float = 0.0) -> torch.nn.Module:
        return HEADS[self.head](self.dimensions, self.units, dropout)

    def texts(self, turns: Sequence[str], response: str) -> tuple[str, ...]:
        """Returns what is embedded: the turns that are read, then the response."""
        read = (*turns[-self.turns :], response)
        return tuple(last_words(text, self.truncate_words) for text in read)


def load(directory: Path, *, device: str = "auto") -> SentenceHead:
    """Loads the head in a directory that `dialeval train deb` and its like made."""
    config = SentenceHeadConfig.read(directory)
    network = config.network()
    load_network(network, directory)
    return SentenceHead(network.to(choose_device(device)), config)


class SentenceHead:
    """A network, and the name of the encoder whose vectors it reads."""

    def __init__(self, network: torch.nn.Module, config: SentenceHeadConfig) -> None:
        self._network = network.eval()
        self._config = config

    def asks(self, questions: Sequence[Question]) -> list[list[Question]]:
        """Returns the vectors of the turns that are read, then that of the response."""
        return [
            [Embed(self._config.encoder, text) for text in self._texts(one)] for one in questions
        ]

    def _texts(self, question: Question) -> tuple[str, ...]:
        if not isinstance(question, Judge):
            raise cannot_answer(question, "a head on sentence vectors")
        # A response to nothing is read after an unknown turn.
        return self._config.texts(question.turns or ("",), question.response)

    def answer(
        self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]] = ()
    ) -> Iterator[tuple[int, Answer]]:
        for start in range(0, len(questions), BATCH):
            places = range(start, min(start + BATCH, len(questions)))
            scores = self._scores([answers[place] for place in places])
            for place, score in zip(places, scores, strict=True):
                yield place, Judgement(score, *self._cut(questions[place])).answer()

    def _cut(self, question: Question) -> tuple[int, int]:
        """Returns how many words are read of what was cut: of each turn, and of the response."""
        assert isinstance(question, Judge)
        turns = question.turns[-self._config.turns :]
        return words_of_cut(turns, question.response, self._config.truncate_words)

    def _scores(self, answers: Sequence[Sequence[Answer]]) -> Any:
        size = self._config.dimensions
        rows = [torch.from_numpy(np.array(own, dtype=np.float32)) for own in answers]
        for own in rows:
            check_dimensions("head", own, size, self._config.encoder)
        counts = torch.tensor([len(own) - 1 for own in rows])
        turns = torch.zeros(len(rows), int(counts.max()), size)
        for place, own in enumerate(rows):
            turns[place, : len(own) - 1] = own[:-1]
        response = torch.stack([own[-1] for own in rows])
        device = next(self._network.parameters()).device
        with torch.inference_mode():
            logits = self._network(turns.to(device), counts.to(device), response.to(device))
        return logits.double().sigmoid().cpu().numpy()
