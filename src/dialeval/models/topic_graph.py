"""The networks over a graph of topics: of MME-CRS's topic coherence, and of GRADE.

`TopicGraph` is GRADE's graph branch alone (Huang et al., 2020, 3.2):

    h_i = v_i + W1 (mean of the nearest words, one hop away) + W2 (mean of those two hops away)
    h_i <- ELU( W h_i + [ sum_j A_ij a_ij V h_j ; four heads ] ),   three times
    a_ij = softmax over the neighbours j of i of LeakyReLU( u . V h_i + w . V h_j )
    mean over the nodes -> 512 -> 128 -> 1, and the sigmoid of the last number is the score

Nodes are the keywords of the context and of the response, and two more, for the beginning and the
end, so that no graph is empty. An edge joins a keyword of the context with one of the response, its
weight is 1 / (1 + hops between them in ConceptNet), and A = D^-1/2 (E + I) D^-1/2.

The released code of GRADE differs: it drops a fifth of the edges at random, even when it scores,
multiplies the logits of the attention by A, takes the softmax over the wrong axis, and gives all
nodes the same vector for their surroundings. Here A weighs what is sent and not the logits, where
a softmax would take away again what tells a near word from a far one; nothing is dropped, and
padding is no node.

To answer `Judge`, the model finds the keywords of the last turns and of the response
(`tagger`), asks a table of word vectors for them and for the words around them in
ConceptNet, and passes the graph to its network. It looks at words alone, not at sentences.

A directory holds, beside the weights, `idf.json`, and `conceptnet.npz` if it was trained with
another graph than the one that ships with dialeval.

`Grade` reads the text of a dialogue and a graph of its topics together (Huang et al., 2020, 3).

    v_text  = ELU( W [ c ; r ; |c - r| ; c * r ] )      c, r: vectors of a frozen sentence encoder
    v_topic = ELU( U mean over the nodes )              the graph above
    [ v_text ; v_topic ] -> width -> 128 -> 1, ELU, and the sigmoid of the last number is the score

c is the mean of the last turns, the last one counting twice. In the paper v_text is the pooled
state of BERT, tuned along, and both branches have 512 numbers.

To answer `Judge`, `Grade` asks a table of word vectors and a sentence encoder. The directory is
that of a topic graph; `scorer.json` also names the encoder, and says which word vectors were read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from dialeval.errors import UsageError
from dialeval.lexicon.conceptnet import ConceptNet, load_conceptnet
from dialeval.model_store.locate import fingerprint, locate
from dialeval.model_store.scorer_directory import (
    DESCRIPTION,
    choice,
    field,
    load_network,
    read_scorer,
)
from dialeval.models.loading import batches_by_length, choose_device
from dialeval.models.pair_scorer import check_dimensions, last_words, words_of_cut
from dialeval.models.sentence_head import pair_features, weighted_context
from dialeval.models.tagger import Frequencies, TagText, keywords, make_tagger
from dialeval.question import Answer, Embed, Judge, Judgement, Question, WordVectors, cannot_answer

HIDDEN = (512, 128)
SLOPE = 0.2


def normalised(edges: torch.Tensor) -> torch.Tensor:
    """D^-1/2 (E + I) D^-1/2 of (..., nodes, nodes); D sums the rows of E + I."""
    looped = edges + torch.eye(edges.shape[-1], dtype=edges.dtype, device=edges.device)
    scale = looped.sum(dim=-1).rsqrt()
    return scale[..., :, None] * looped * scale[..., None, :]


class GraphAttention(torch.nn.Module):
    """One layer. `units` is split among the heads."""

    def __init__(self, size: int, units: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.own = torch.nn.Linear(size, units)
        self.message = torch.nn.Linear(size, units)
        self.receiver = torch.nn.Parameter(torch.empty(heads, units // heads))
        self.sender = torch.nn.Parameter(torch.empty(heads, units // heads))
        torch.nn.init.xavier_uniform_(self.receiver)
        torch.nn.init.xavier_uniform_(self.sender)

    def forward(self, nodes: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        """(graphs, nodes, size) and (graphs, nodes, nodes) -> (graphs, nodes, units).

        A weight of 0 in `adjacency` is no edge. Every node must have one, if only to itself.
        """
        sent = self.message(nodes).unflatten(-1, (self.heads, -1))
        receiver = (sent * self.receiver).sum(-1).transpose(1, 2)
        sender = (sent * self.sender).sum(-1).transpose(1, 2)
        both = receiver[..., :, None] + sender[..., None, :]
        logits = torch.nn.functional.leaky_relu(both, SLOPE)
        weights = adjacency[:, None]
        attention = logits.masked_fill(weights == 0, -torch.inf).softmax(dim=-1)
        received = ((attention * weights) @ sent.transpose(1, 2)).transpose(1, 2).flatten(-2)
        return torch.nn.functional.elu(self.own(nodes) + received)


class GraphBody(torch.nn.Module):
    """The graph without what is made of it. `dimensions` of a word vector, `units` of a layer."""

    def __init__(
        self, dimensions: int, units: int, heads: int, layers: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.unknown = torch.nn.Parameter(torch.zeros(dimensions))
        self.ends = torch.nn.Parameter(0.1 * torch.randn(2, dimensions))
        self.near = torch.nn.Linear(dimensions, dimensions, bias=False)
        self.beyond = torch.nn.Linear(dimensions, dimensions, bias=False)
        sizes = [dimensions, *[units] * layers]
        self.layers = torch.nn.ModuleList(
            GraphAttention(size, units, heads) for size in sizes[:layers]
        )
        self.dropout = torch.nn.Dropout(dropout)

    def pooled(self, words: torch.Tensor, edges: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Returns the mean over the nodes of each graph.

        words  (graphs, keywords, 3, dimensions): of each keyword its vector, the mean of the words
               one hop away, and of those two hops away; NaN where there is none
        edges  (graphs, keywords, keywords): weights, 0 where there is no edge
        real   (graphs, keywords): which keywords are no padding
        """
        nodes = torch.cat([self.ends.expand(len(words), -1, -1), self._nodes(words)], dim=1)
        adjacency = normalised(torch.nn.functional.pad(edges, (2, 0, 2, 0)))
        real = torch.nn.functional.pad(real, (2, 0), value=True).to(nodes.dtype)
        for layer in self.layers:
            nodes = layer(self.dropout(nodes), adjacency)
        mean: torch.Tensor = (nodes * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
        return mean

    def _nodes(self, words: torch.Tensor) -> torch.Tensor:
        word, near, beyond = words.unbind(dim=2)
        known = torch.where(word.isnan(), self.unknown, word)
        summed: torch.Tensor = (
            known + self.near(near.nan_to_num()) + self.beyond(beyond.nan_to_num())
        )
        return summed


class TopicGraphNetwork(GraphBody):
    """The graph alone. Outputs are logits."""

    def __init__(
        self, dimensions: int, units: int, heads: int, layers: int, dropout: float = 0.0
    ) -> None:
        super().__init__(dimensions, units, heads, layers, dropout)
        self.hidden = torch.nn.ModuleList(
            torch.nn.Linear(*pair) for pair in zip((units, *HIDDEN), HIDDEN, strict=False)
        )
        self.out = torch.nn.Linear(HIDDEN[-1], 1)

    def forward(self, words: torch.Tensor, edges: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
        """Logits of graphs, as `pooled` takes them."""
        mean = self.pooled(words, edges, real)
        for layer in self.hidden:
            mean = self.dropout(torch.nn.functional.elu(layer(mean)))
        logits: torch.Tensor = self.out(mean).squeeze(-1)
        return logits


GRAPH = "conceptnet.npz"
FURTHEST, UNREACHED = 4, 20
"""Hops beyond which two words count as not joined, and what then stands for 1 + hops (GRADE)."""

Edges = Literal["hops", "idf"]
"""What an edge weighs: 1 / (1 + hops), or that times the lower idf of its two words, so that words
that everybody says join little."""

WORDS_PER_BATCH = 4096
REMEMBERED = 16384

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TopicGraphConfig:
    """`vectors` names a table with `dimensions` columns. The last `turns` of a context are read,
    and `keywords` of each side, the last of the context, the first of the response: with the two
    ends 18 nodes at most, as in GRADE. `graph` is the
    digest of the graph of concepts that it learned with. Words that are more than `furthest` hops
    apart count as not joined."""

    vectors: str
    dimensions: int
    graph: str
    units: int = 64
    heads: int = 4
    layers: int = 3
    turns: int = 2
    keywords: int = 8
    tagger: str = "lexicon"
    furthest: int = FURTHEST
    edges: Edges = "hops"

    @classmethod
    def read(cls, directory: Path) -> TopicGraphConfig:
        record: dict[str, Any] = read_scorer(directory)
        sizes = ("units", "heads", "layers", "turns", "keywords")
        # Judges of earlier releases say nothing about their edges: they were these.
        record.setdefault("furthest", FURTHEST)
        record.setdefault("edges", "hops")
        return cls(
            record["vectors"],
            **{name: field(directory, record, name, str) for name in ("graph", "tagger")},
            **{
                name: field(directory, record, name, int)
                for name in ("dimensions", "furthest", *sizes)
            },
            edges=choice(directory, record, "edges", get_args(Edges)),
        )

    def to_record(self) -> dict[str, Any]:
        return {"kind": "topic-graph", "metric": "mme-topic", **asdict(self)}

    def network(self, dropout: float = 0.0) -> TopicGraphNetwork:
        return TopicGraphNetwork(self.dimensions, self.units, self.heads, self.layers, dropout)


@dataclass(frozen=True)
class Topics:
    """The keywords on the two sides of a graph."""

    context: tuple[str, ...]
    response: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return (*self.context, *self.response)


class TopicFinder:
    """From texts to topics; remembers the turns that it read last."""

    def __init__(self, config: TopicGraphConfig, frequencies: Frequencies, tagger: TagText) -> None:
        self._config = config
        self._frequencies = frequencies
        self._tagger = tagger
        self.weight = lru_cache(maxsize=REMEMBERED)(self._weight)
        self._keywords = lru_cache(maxsize=REMEMBERED)(self._read)

    def topics(self, turns: Sequence[str], response: str) -> Topics:
        read = [word for turn in turns[-self._config.turns :] for word in self._keywords(turn)]
        most = self._config.keywords
        return Topics(tuple(read[-most:]), self._keywords(response)[:most])

    def _weight(self, word: str) -> float:
        return word_weight(self._config.edges, self._frequencies, word)

    def _read(self, text: str) -> tuple[str, ...]:
        return keywords(self._tagger([text])[0], self._frequencies)


def words_around(concepts: ConceptNet, word: str) -> tuple[str, ...]:
    """Returns what is looked up for a keyword: itself, the words one hop away, the words two hops
    away."""
    return (word, *concepts.nearest(word), *concepts.nearest_beyond(word))


def word_features(concepts: ConceptNet, word: str, rows: npt.NDArray[np.floating]) -> Floats:
    """Its vector and the two means, from the rows of `words_around`; NaN where there is none."""
    near = 1 + len(concepts.nearest(word))
    found = np.full((3, rows.shape[1]), np.nan, dtype=np.float32)
    found[0] = rows[0]
    for place, part in ((1, rows[1:near]), (2, rows[near:])):
        known = part[~np.isnan(part[:, 0])]
        if len(known):
            found[place] = known.mean(axis=0, dtype=np.float64)
    return found


def edge_weight(hops: int | None) -> float:
    """1 / (1 + hops): 1 for the same word."""
    return 1.0 / (UNREACHED if hops is None else 1 + hops)


def word_weight(edges: Edges, frequencies: Frequencies, word: str) -> float:
    """Returns the largest factor of an edge of the word: its idf as a share of the highest that
    there is."""
    if edges == "hops":
        return 1.0
    highest = math.log10(max(2, frequencies.utterances))
    return max(0.0, frequencies.idf(word) / highest)


def topic_edges(
    concepts: ConceptNet,
    topics: Topics,
    furthest: int = FURTHEST,
    weight: Callable[[str], float] = lambda word: 1.0,
) -> Floats:
    """Weights between context and response, symmetric; none within a side."""
    size, first = len(topics.words), len(topics.context)
    edges = np.zeros((size, size), dtype=np.float32)
    for row, one in enumerate(topics.context):
        for column, other in enumerate(topics.response, start=first):
            near = edge_weight(concepts.hops(one, other, furthest))
            edges[row, column] = near * min(weight(one), weight(other))
    return edges + edges.T


def load_graph(directory: Path, digest: str) -> ConceptNet:
    """Loads the graph that a judge learned with: its own, or the one that ships with dialeval."""
    own = directory / GRAPH
    concepts = load_conceptnet(own if own.exists() else None)
    if concepts.digest != digest:
        raise UsageError(
            f"{directory / DESCRIPTION}: graph: learned with another ConceptNet than the one here."
            " Train it again."
        )
    return concepts


def load(directory: Path, *, device: str = "auto") -> TopicGraph:
    """Loads the judge in a directory that `dialeval train mme-topic` made."""
    config = TopicGraphConfig.read(directory)
    network = config.network()
    load_network(network, directory)
    finder = TopicFinder(config, Frequencies.read(directory), make_tagger(config.tagger))
    concepts = load_graph(directory, config.graph)
    return TopicGraph(network.to(choose_device(device)), config, finder, concepts)


class TopicGraph:
    """A network, the way to its graphs, and the name of the table whose vectors it reads."""

    def __init__(
        self,
        network: GraphBody,
        config: TopicGraphConfig,
        finder: TopicFinder,
        concepts: ConceptNet,
    ) -> None:
        self._network = network.eval()
        self._config = config
        self._finder = finder
        self._concepts = concepts
        self._around = lru_cache(maxsize=REMEMBERED)(self._ask_for)

    def asks(self, questions: Sequence[Question]) -> list[list[Question]]:
        """Returns the vectors of the words around each keyword."""
        return [[self._around(word) for word in self._topics(one).words] for one in questions]

    def _topics(self, question: Question) -> Topics:
        if not isinstance(question, Judge):
            raise cannot_answer(question, "a judge of topics")
        return self._finder.topics(question.turns, question.response)

    def _ask_for(self, word: str) -> WordVectors:
        return WordVectors(self._config.vectors, words_around(self._concepts, word))

    def answer(
        self, questions: Sequence[Question], answers: Sequence[Sequence[Answer]] = ()
    ) -> Iterator[tuple[int, Answer]]:
        topics = [self._topics(question) for question in questions]
        features = self._all_features(topics, answers)
        lengths = [2 + len(found.words) for found in topics]
        for batch in batches_by_length(lengths, WORDS_PER_BATCH):
            scores = self._scores([topics[number] for number in batch], features)
            for number, score in zip(batch, scores, strict=True):
                yield number, score[None]

    def _all_features(
        self, topics: Sequence[Topics], answers: Sequence[Sequence[Answer]]
    ) -> dict[str, Floats]:
        """Returns the features of every keyword, from the answers about those of each question."""
        features: dict[str, Floats] = {}
        for found, rows in zip(topics, answers, strict=True):
            for word, own in zip(found.words, rows, strict=True):
                if word not in features:
                    features[word] = self._features(word, own)
        return features

    def _features(self, word: str, rows: Answer) -> Floats:
        assert not isinstance(rows, str)
        if rows.shape[1] != self._config.dimensions:
            raise UsageError(
                f"the judge reads vectors of {self._config.dimensions} numbers, but those of"
                f" {self._config.vectors!r} have {rows.shape[1]}: they are not those that it was"
                " trained with"
            )
        return word_features(self._concepts, word, rows)

    def _scores(self, topics: Sequence[Topics], features: Mapping[str, Floats]) -> Any:
        with torch.inference_mode():
            logits = self._network(*self._graphs(topics, features))
        return logits.double().sigmoid().cpu().numpy()

    def _graphs(
        self, topics: Sequence[Topics], features: Mapping[str, Floats]
    ) -> list[torch.Tensor]:
        """Words, edges and what is real, as the network takes them."""
        size = max(len(found.words) for found in topics)
        words = np.zeros((len(topics), size, 3, self._config.dimensions), dtype=np.float32)
        edges = np.zeros((len(topics), size, size), dtype=np.float32)
        real = np.zeros((len(topics), size), dtype=np.bool_)
        for row, found in enumerate(topics):
            count = len(found.words)
            real[row, :count] = True
            edges[row, :count, :count] = topic_edges(
                self._concepts, found, self._config.furthest, self._finder.weight
            )
            for place, word in enumerate(found.words):
                words[row, place] = features[word]
        device = self._network.ends.device
        return [torch.from_numpy(array).to(device) for array in (words, edges, real)]


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


def load_grade(directory: Path, *, device: str = "auto") -> Grade:
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
        check_dimensions("judge", rows, self._config.text_dimensions, self._config.encoder)
        counts = torch.tensor([len(rows) - 1])
        return weighted_context(rows[None, :-1], counts)[0], rows[-1]

    def _cut(self, question: Question) -> tuple[int, int]:
        """Returns how many words are read of what was cut: of each turn, and of the response."""
        assert isinstance(question, Judge)
        turns = question.turns[-self._config.turns :]
        return words_of_cut(turns, question.response, self._config.truncate_words)
