"""`dialeval train mme-topic`: a directory that `-m mme-topic:model=DIR` takes.

    scorer.json          what is read and how: vectors, tagger, turns, sizes, digest of the graph
    scorer.safetensors   the weights, 16 bits
    idf.json             in how many utterances each word was found
    card.json, card.md, curve.svg

The epoch with the lowest loss on held-out dialogues is kept, as in MME-CRS. The rated sets that are
here are reported on; nothing is chosen by them, and dialogues that share an exchange
with them were not learned from.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from dialeval.agreement.correlation import correlations
from dialeval.datasets import find_dataset
from dialeval.engine.answers import Answerer
from dialeval.errors import UsageError
from dialeval.lexicon.conceptnet import ConceptNet, load_conceptnet
from dialeval.model_store.scorer_directory import save_scorer
from dialeval.models.source import Models
from dialeval.models.topic_graph import (
    FURTHEST,
    GRAPH,
    Edges,
    TopicGraphConfig,
    TopicGraphNetwork,
    word_weight,
)
from dialeval.models.topic_keywords import Frequencies, keywords, make_tagger
from dialeval.models.word_vectors import WordVectorTable
from dialeval.question import Judge
from dialeval.training.card import Card, licence_of
from dialeval.training.examples.negatives import NegativeSampler, SamplerOptions
from dialeval.training.examples.pair_corpus import Pair, PairCorpus, load_pairs
from dialeval.training.examples.word_vectors import load_word_vectors as load_table
from dialeval.training.learners.topic_graph import (
    TopicGraphOptions,
    TopicGraphRecipe,
    TopicPairs,
    TopicTables,
    fixed_negatives,
    mean_vectors,
    ranking,
)
from dialeval.training.loop import Report, forget_checkpoint, train
from dialeval.training.recipe import RATED
from dialeval.training.run import exclusive, refuse_finished
from dialeval.training.settings import Settings
from dialeval.words import treebank_words

WHOLE = 10_000
"""Words of an utterance that are kept of the corpus: all of them."""


@dataclass(frozen=True)
class TopicData:
    """A corpus as keywords, and the frequencies by which they were chosen."""

    corpus: PairCorpus
    frequencies: Frequencies
    tables: TopicTables
    train: TopicPairs
    validation: TopicPairs
    test: TopicPairs


def train_topic(
    data: Sequence[Path],
    out: Path,
    *,
    vectors: str = "glove-50d",
    settings: Settings,
    options: TopicGraphOptions,
    units: int = 64,
    heads: int = 4,
    layers: int = 3,
    turns: int = 2,
    tagger: str = "lexicon",
    furthest: int = FURTHEST,
    edges: Edges = "hops",
    graph: Path | None = None,
    pairs: int | None = None,
    licence: str | None = None,
    command: str = "",
    say: Callable[[str], None] = lambda line: None,
    report: Report = lambda state, steps: None,
) -> Card:
    """Trains, saves and measures; continues where an earlier call into `out` was killed.

    graph  another graph of concepts than the one that ships, made by `scripts/build_conceptnet.py`
    pairs  learn from at most so many
    """
    refuse_finished(out)
    if units % heads:
        raise UsageError(f"{units} units cannot be shared among {heads} heads")
    table, concepts = load_table(vectors, "mme-topic"), read_graph(graph)
    make_tagger(tagger)  # one that is not here is an error before anything is read
    config = TopicGraphConfig(
        vectors,
        table.vectors.shape[1],
        concepts.digest,
        units,
        heads,
        layers,
        turns,
        tagger=tagger,
        furthest=furthest,
        edges=edges,
    )
    found = prepare(data, config, table, concepts, pairs, say)
    with exclusive(out):
        network = _fresh(config, options.dropout, settings.seed)
        recipe = TopicGraphRecipe(
            network, found.tables, found.train, found.validation, options, settings.seed
        )
        identity = {
            "data": found.corpus.digest(),
            "vectors": Models().fingerprint(vectors),
            "config": config.to_record(),
            "options": asdict(options),
        }
        state = train(recipe, settings, out, identity, report)
        network.half().float()  # what is measured is what is saved
        found.frequencies.write(out)
        if graph is not None:
            shutil.copyfile(graph, out / GRAPH)
        save_scorer(out, config.to_record(), network)
        card = Card(
            name=out.name,
            summary=(
                "Topic coherence of MME-CRS: a graph attention network over the keywords of a"
                f" context and a response, joined by ConceptNet, on word vectors ({vectors})."
            ),
            command=command,
            seed=settings.seed,
            base=vectors,
            licence=licence or licence_of(data),
            data={
                "corpus": found.corpus.name,
                "sha256": found.corpus.digest(),
                "pairs to learn from": len(found.corpus.train),
                "pairs for validation": len(found.corpus.validation),
                "pairs for test": len(found.corpus.test),
                "keywords": len(found.tables.numbers),
                "words of the graph of concepts": len(concepts.words),
                **found.corpus.left_out.facts(),
            },
            settings=asdict(settings) | asdict(options) | asdict(config),
            scores={
                **_measured(recipe, found.validation, "validation"),
                **_measured(recipe, found.test, "test"),
                **agreement(out),
            },
            curve=state.curve,
        )
        card.write(out)
        forget_checkpoint(out)
    return card


def read_graph(path: Path | None) -> ConceptNet:
    if path is not None and not path.is_file():
        raise UsageError(f"{path}: no such file; scripts/build_conceptnet.py makes one")
    try:
        return load_conceptnet(path)
    except (ValueError, KeyError, OSError) as error:
        raise UsageError(f"{path}: not a graph of concepts ({error})") from error


def prepare(
    data: Sequence[Path],
    config: TopicGraphConfig,
    table: WordVectorTable,
    concepts: ConceptNet,
    most: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> TopicData:
    """Keywords of every utterance, with frequencies from those that are learned from."""
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


def _fresh(config: TopicGraphConfig, dropout: float, seed: int) -> TopicGraphNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return config.network(dropout)


def _measured(recipe: TopicGraphRecipe, pairs: TopicPairs, split: str) -> dict[str, float]:
    return {
        f"{split}_ranking_{name}": ranking(recipe.score(pairs, wrong))
        for name, wrong in fixed_negatives(pairs).items()
    }


def agreement(out: Path) -> dict[str, float | None]:
    """Spearman with the mean ratings of the rated sets that are here, of the judge as saved."""
    from dialeval.readers import load

    model = str(out.resolve())  # a bare name could be that of a shipped model
    answerer, found = Answerer(Models("cpu"), None), {}
    for name, quality in RATED.items():
        if find_dataset(name) is None:
            continue
        asked: list[Judge] = []
        ratings: list[float] = []
        for sample in load(name):
            rating = sample.ratings.get(quality)
            if sample.response is None or rating is None or rating.mean is None:
                continue
            asked.append(Judge(model, tuple(turn.text for turn in sample.context), sample.response))
            ratings.append(rating.mean)
        answers = answerer.answer(asked)
        scores = [float(answers[question][0]) for question in asked]
        spearman = correlations(scores, ratings, None, ["spearman"])["spearman"].value
        title = f"Spearman, {name} {quality} ({len(ratings)})"
        found[title] = spearman
    return found
