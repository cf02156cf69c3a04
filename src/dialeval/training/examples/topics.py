"""Dialogues as keywords: what the topic graph of `mme-topic` learns from.

Everything about a corpus is computed once: keywords of every utterance, chosen by frequencies of
the utterances that are learned from, and the tables that the graphs are made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dialeval.errors import UsageError
from dialeval.lexicon.conceptnet import ConceptNet, load_conceptnet
from dialeval.models.tagger import Frequencies, keywords, make_tagger
from dialeval.models.topic_graph import TopicGraphConfig, word_weight
from dialeval.models.word_vectors import WordVectorTable
from dialeval.text import treebank_words
from dialeval.training.examples.negatives import NegativeSampler, SamplerOptions
from dialeval.training.examples.pair_corpus import WHOLE, Pair, PairCorpus, load_pairs
from dialeval.training.learners.topic_graph import TopicPairs, TopicTables, mean_vectors
from dialeval.training.recipe import Progress


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
    tagged = make_tagger(config.tagger)(corpus.texts)
    learned = sorted({n for pair in corpus.train for n in (*pair.context, pair.response)})
    frequencies = Frequencies.count(tagged[number] for number in learned)
    found = [keywords(words, frequencies) for words in tagged]
    vocabulary = sorted({word for words in found for word in words})
    if not vocabulary:
        raise UsageError(f"{corpus.name}: no utterance has a keyword")
    say(f"{len(vocabulary):,} keywords, {np.mean([len(words) for words in found]):.1f} per turn")
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
    found: Sequence[tuple[str, ...]],
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
