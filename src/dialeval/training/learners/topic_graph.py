"""The topic graph learns to put the response that was given before one given to somebody else.

    margin         mean of max(0, .1 - s(c, r) + s(c, r'))          (GRADE; the default: on 30 000
                   pairs of DailyDialog and after 2 epochs it puts the right response first in 66%
                   of unseen cases, cross-entropy in 65%)
    cross-entropy  of both graphs, with the labels 1 and 0

The wrong responses r' of an epoch are random ones, hard ones, or half of each. As in GRADE half of
the hard ones are alike in words and half in meaning: responses that share a keyword with the right
one (GRADE asks Lucene), and responses whose mean word vector is near to its own (the weighted rule
of `examples.sampling`). A response with the very same keywords makes the same graph and is not
drawn for its words.

Everything about the corpus is made once: keywords as numbers, their vectors with those around them,
and the weight of an edge between any two.

GRADE (`GradeLearner`) learns in the same way, and reads sentence vectors too. The loss is the
margin of the scores of the response that was given and of a wrong one. The vectors of the last
turns, as one, and of the responses are made before the training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import torch

from dialeval.errors import UsageError
from dialeval.lexicon.conceptnet import ConceptNet, load_conceptnet
from dialeval.models.pair_scorer import last_words
from dialeval.models.tagger import Frequencies, keywords, make_tagger
from dialeval.models.topic_graph import (
    FURTHEST,
    GradeConfig,
    GraphBody,
    TopicGraphConfig,
    Topics,
    edge_weight,
    word_features,
    word_weight,
    words_around,
)
from dialeval.models.word_vectors import WordVectorTable
from dialeval.text import treebank_words
from dialeval.training.examples.pair_corpus import WHOLE, Pair, PairCorpus, load_pairs
from dialeval.training.examples.pair_vectors import PairVectors, embed, pair_vectors
from dialeval.training.examples.sampling import NegativeSampler, Numbers, SamplerOptions
from dialeval.training.loop import NetworkLearner, Validation, similar_batches
from dialeval.training.recipe import Progress

if TYPE_CHECKING:
    from dialeval.training.recipes.topic_graph import MmeTopic

Negatives = Literal["mixed", "random", "hard"]

MARGIN = 0.1
SIMILAR = 4
"""Graphs whose sizes differ by fewer keywords are alike."""

HARD_SHARE: Mapping[Negatives, float] = {"mixed": 0.5, "random": 0.0, "hard": 1.0}


class TopicTables:
    """The words of a corpus by number: features of each, and weights of edges between any two.

    Hops are kept for the words that the graph has, one byte for each two of them.
    """

    def __init__(
        self,
        words: Sequence[str],
        concepts: ConceptNet,
        table: WordVectorTable,
        furthest: int = FURTHEST,
        weight: Callable[[str], float] = lambda word: 1.0,
    ) -> None:
        self.numbers = {word: number for number, word in enumerate(words)}
        rows = (table.look_up(words_around(concepts, word)) for word in words)
        features = [word_features(concepts, *pair) for pair in zip(words, rows, strict=True)]
        self.features = torch.from_numpy(np.stack(features))
        known = [word for word in words if word in concepts]
        # The last row and column stand for all words that the graph does not have.
        hops = np.full((len(known) + 1, len(known) + 1), furthest + 1, dtype=np.uint8)
        hops[:-1, :-1] = concepts.hops_among(known, furthest)
        places = {word: place for place, word in enumerate(known)}
        self._hops = torch.from_numpy(hops)
        self._rows = torch.tensor([places.get(word, len(known)) for word in words])
        weights = [edge_weight(n) for n in range(furthest + 1)] + [edge_weight(None)]
        self._weights = torch.tensor(weights)
        self._of_word = torch.tensor([weight(word) for word in words])

    def graphs(self, topics: Sequence[Topics]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Words, edges and what is real, as the network takes them."""
        size = max(1, *(len(found.words) for found in topics))
        words = np.zeros((len(topics), size), dtype=np.int64)
        side = np.zeros((len(topics), size), dtype=np.int64)
        for row, found in enumerate(topics):
            words[row, : len(found.words)] = [self.numbers[word] for word in found.words]
            side[row, : len(found.words)] = 2
            side[row, : len(found.context)] = 1
        numbers, sides = torch.from_numpy(words), torch.from_numpy(side)
        rows = self._rows[numbers]
        weights = self._weights[self._hops[rows[:, :, None], rows[:, None, :]].long()]
        weights[numbers[:, :, None] == numbers[:, None, :]] = edge_weight(0)
        own = self._of_word[numbers]
        weights = weights * torch.minimum(own[:, :, None], own[:, None, :])
        across = sides[:, :, None] + sides[:, None, :] == 3  # 1 and 2, not 0 and anything
        return self.features[numbers], weights * across, sides > 0


@dataclass(frozen=True)
class TopicPairs:
    """Keywords of contexts and of the responses that were given, and which responses are drawn."""

    contexts: tuple[tuple[str, ...], ...]
    responses: tuple[tuple[str, ...], ...]
    sampler: NegativeSampler

    def topics(self, pairs: Numbers, responses: Numbers) -> list[Topics]:
        return [
            Topics(self.contexts[pair], self.responses[response])
            for pair, response in zip(pairs.tolist(), responses.tolist(), strict=True)
        ]


@dataclass(frozen=True)
class TopicBatch:
    """Numbers of pairs, and for each the numbers of its wrong responses."""

    pairs: Numbers
    wrong: Numbers


@dataclass(frozen=True)
class Scored:
    """Logits of right and wrong responses."""

    right: torch.Tensor
    wrong: torch.Tensor


class TopicGraphLearner(NetworkLearner):
    """Right responses against wrong ones."""

    network: GraphBody

    def __init__(
        self,
        network: GraphBody,
        tables: TopicTables,
        train: TopicPairs,
        validation: TopicPairs,
        recipe: MmeTopic,
    ) -> None:
        self.network = network
        self._tables = tables
        self._train = train
        self._recipe = recipe
        self._validation = validation
        self._wrong = fixed_negatives(validation)

    def batches(self, epoch: int) -> list[TopicBatch]:
        generator = np.random.default_rng([self._recipe.seed, 1 + epoch])
        wrong = self._draw(generator)
        both = zip(self._train.contexts, self._train.responses, strict=True)
        # Graphs of similar size share a batch, so that little of it is padding.
        sizes = [(len(context) + len(response)) // SIMILAR for context, response in both]
        batches = map(np.array, similar_batches(sizes, self._recipe.batch, generator))
        return [TopicBatch(rows, wrong[rows]) for rows in batches]

    def _draw(self, generator: np.random.Generator) -> Numbers:
        wrong = self._train.sampler.sample(generator, "random")
        lots, hard = generator.random(len(wrong)), HARD_SHARE[self._recipe.negatives]
        if not hard:
            return wrong
        near = self._train.sampler.sample(generator, "weighted")
        wrong = np.where(lots < hard, near, wrong)
        return sharing_a_keyword(
            self._train.responses, np.flatnonzero(lots < hard / 2), wrong, generator
        )

    def loss(self, batch: TopicBatch) -> torch.Tensor:
        self.network.train()
        return self._loss(self._score(self._train, batch.pairs, batch.wrong))

    def validate(self) -> Validation:
        found = {name: self.score(self._validation, w) for name, w in self._wrong.items()}
        loss = float(torch.stack([self._loss(scored) for scored in found.values()]).mean())
        measures = {f"validation_ranking_{name}": ranking(one) for name, one in found.items()}
        return Validation(loss, measures)

    @torch.no_grad()
    def score(self, pairs: TopicPairs, wrong: Numbers) -> Scored:
        self.network.eval()
        every, size = np.arange(len(wrong)), 4 * self._recipe.batch
        found = [
            self._score(pairs, every[start : start + size], wrong[start : start + size])
            for start in range(0, len(every), size)
        ]
        return Scored(
            torch.cat([scored.right for scored in found]),
            torch.cat([scored.wrong for scored in found]),
        )

    def _score(self, pairs: TopicPairs, rows: Numbers, wrong: Numbers) -> Scored:
        topics = [*pairs.topics(rows, rows), *pairs.topics(rows, wrong)]
        return Scored(*self.network(*self._tables.graphs(topics)).chunk(2))

    def _loss(self, scored: Scored) -> torch.Tensor:
        if self._recipe.loss == "margin":
            return margin_loss(scored.right.sigmoid(), scored.wrong.sigmoid())
        logits = torch.cat([scored.right, scored.wrong])
        labels = torch.cat([torch.ones_like(scored.right), torch.zeros_like(scored.wrong)])
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)


def sharing_a_keyword(
    responses: Sequence[tuple[str, ...]],
    rows: Numbers,
    wrong: Numbers,
    generator: np.random.Generator,
) -> Numbers:
    """`wrong`, where for these rows it is a response that shares a keyword with the right one.

    The keyword is drawn at random, then one of the responses with it. Where that one has the same
    keywords, or there is none, the row stays as it is.
    """
    holders: dict[str, list[int]] = {}
    for number, words in enumerate(responses):
        for word in words:
            holders.setdefault(word, []).append(number)
    found = wrong.copy()
    lots = generator.random((len(rows), 2))
    for row, (which, whose) in zip(rows.tolist(), lots.tolist(), strict=True):
        if words := responses[row]:
            same = holders[words[int(which * len(words))]]
            other = same[int(whose * len(same))]
            if responses[other] != words:
                found[row] = other
    return found


def margin_loss(right: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """MarginRankingLoss of scores between 0 and 1."""
    return torch.relu(MARGIN - right + wrong).mean()


def fixed_negatives(pairs: TopicPairs) -> dict[str, Numbers]:
    """Returns the wrong responses that a judge is measured with, the same for every training."""
    return {
        "random": pairs.sampler.sample(np.random.default_rng(0), "random"),
        "hard": pairs.sampler.sample(np.random.default_rng(1), "weighted"),
    }


def ranking(scored: Scored) -> float:
    """Returns how often the right response scores higher; a tie, such as of two responses without
    keywords, counts half."""
    ahead = (scored.right > scored.wrong).double() + 0.5 * (scored.right == scored.wrong).double()
    return float(ahead.mean())


def mean_vectors(
    responses: Sequence[Sequence[str]], table: WordVectorTable
) -> npt.NDArray[np.float32]:
    """Returns the mean of the word vectors of each response; 0 where no word has one."""
    numbers: dict[str, int] = {}
    texts = [[numbers.setdefault(word, len(numbers)) for word in words] for words in responses]
    rows = np.nan_to_num(np.array(table.look_up(list(numbers)), dtype=np.float32))
    means = [rows[text].mean(axis=0) if text else np.zeros(rows.shape[1]) for text in texts]
    return np.array(means, dtype=np.float32)


# Dialogues as keywords: what the topic graph of `mme-topic` learns from.
#
# Everything about a corpus is computed once: keywords of every utterance, chosen by frequencies of
# the utterances that are learned from, and the tables that the graphs are made of.


@dataclass(frozen=True)
class TopicData:
    """A corpus as keywords, and the frequencies by which they were chosen."""

    corpus: PairCorpus
    frequencies: Frequencies
    tables: TopicTables
    train: TopicPairs
    validation: TopicPairs
    test: TopicPairs


def read_graph(path: Path | None) -> ConceptNet:
    if path is not None and not path.is_file():
        raise UsageError(f"{path}: no such file; scripts/build_conceptnet.py makes one")
    try:
        return load_conceptnet(path)
    except (ValueError, KeyError, OSError) as error:
        raise UsageError(f"{path}: not a graph of concepts ({error})") from error


def load_topics(
    data: Sequence[Path],
    config: TopicGraphConfig,
    table: WordVectorTable,
    concepts: ConceptNet,
    most: int | None = None,
    progress: Progress | None = None,
) -> TopicData:
    """Keywords of every utterance, with frequencies from those that are learned from."""
    say = (progress or Progress()).say
    corpus = load_pairs(data, "sum", words=WHOLE, most=most)
    if not corpus.train:
        raise UsageError(f"{corpus.name}: no pairs to learn from")
    say(f"{corpus.name}: {len(corpus.train):,} pairs to learn from")
    splits = (corpus.train, corpus.validation, corpus.test)
    used = sorted({n for pairs in splits for pair in pairs for n in (*pair.context, pair.response)})
    read = make_tagger(config.tagger)([corpus.texts[number] for number in used])
    tagged = dict(zip(used, read, strict=True))
    learned = sorted({n for pair in corpus.train for n in (*pair.context, pair.response)})
    frequencies = Frequencies.count(tagged[number] for number in learned)
    found = {number: keywords(words, frequencies) for number, words in tagged.items()}
    vocabulary = sorted({word for words in found.values() for word in words})
    if not vocabulary:
        raise UsageError(f"{corpus.name}: no utterance has a keyword")
    per_turn = np.mean([len(words) for words in found.values()])
    say(f"{len(vocabulary):,} keywords, {per_turn:.1f} per turn")
    sides = {
        split: _pairs(getattr(corpus, split), corpus.texts, found, config, table)
        for split in ("train", "validation", "test")
    }
    return TopicData(
        corpus,
        frequencies,
        TopicTables(
            vocabulary,
            concepts,
            table,
            config.furthest,
            lambda word: word_weight(config.edges, frequencies, word),
        ),
        **sides,
    )


def _pairs(
    pairs: Sequence[Pair],
    texts: Sequence[str],
    found: Mapping[int, tuple[str, ...]],
    config: TopicGraphConfig,
    table: WordVectorTable,
) -> TopicPairs:
    most = config.keywords
    contexts = [
        [word for turn in pair.context[-config.turns :] for word in found[turn]] for pair in pairs
    ]
    responses = [texts[pair.response] for pair in pairs]
    means = mean_vectors([treebank_words(text.lower()) for text in responses], table)
    return TopicPairs(
        tuple(tuple(words[-most:]) for words in contexts),
        tuple(found[pair.response][:most] for pair in pairs),
        NegativeSampler(SamplerOptions("weighted"), responses, lambda rows: means[rows]),
    )


@dataclass(frozen=True)
class GradePairs(TopicPairs):
    """Keywords and sentence vectors, row by row."""

    vectors: PairVectors


class GradeLearner(TopicGraphLearner):
    """Right responses against wrong ones, by topics and by text."""

    def _score(self, pairs: TopicPairs, rows: Numbers, wrong: Numbers) -> Scored:
        assert isinstance(pairs, GradePairs)
        topics = [*pairs.topics(rows, rows), *pairs.topics(rows, wrong)]
        context = pairs.vectors.queries[rows]
        responses = pairs.vectors.responses
        logits = self.network(
            *self._tables.graphs(topics),
            torch.cat([context, context]),
            torch.cat([responses[rows], responses[wrong]]),
        )
        return Scored(*logits.chunk(2))


def add_vectors(topics: TopicData, config: GradeConfig, progress: Progress) -> TopicData:
    """Returns the data with the sentence vectors of every pair. Texts are those that other recipes
    embed, the last words of each utterance, so that a corpus is embedded once for all."""
    texts = [last_words(text, config.truncate_words) for text in topics.corpus.texts]
    different = list(dict.fromkeys(texts))
    places = {text: place for place, text in enumerate(different)}
    progress.say(f"vectors of {len(different):,} texts")
    with progress.counting("vectors") as count:
        vectors = embed(different, config.encoder, progress=count)
    of_text = [places[text] for text in texts]

    def with_vectors(found: TopicPairs, of_corpus: Sequence[Pair]) -> GradePairs:
        pairs = [
            Pair(
                tuple(of_text[number] for number in pair.context[-config.turns :]),
                of_text[pair.response],
            )
            for pair in of_corpus
        ]
        own = pair_vectors(pairs, vectors, "weighted")
        return GradePairs(found.contexts, found.responses, found.sampler, own)

    corpus = topics.corpus
    return replace(
        topics,
        train=with_vectors(topics.train, corpus.train),
        validation=with_vectors(topics.validation, corpus.validation),
        test=with_vectors(topics.test, corpus.test),
    )
