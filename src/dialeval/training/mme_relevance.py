"""What `mme-relevance` is taught: which response was given to these turns (MME-CRS, section 3.2).

One as often as the other, an example is right or wrong:

    1   the response that was given; half of the time each of its stop words goes with probability
        .5, so that words without meaning do not give it away
    0   of ten responses drawn by lot the middle one by similarity to the one that was given
        (cosine of mean word vectors): neither obviously wrong nor perhaps right

`negatives` can be another sampler of `negative_sampling` instead, or `batch`: all examples are
right ones, and the judge makes wrong ones of them itself (see `twin_judge`). What is held out has
wrong responses by the rule above, whatever was learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from dialeval.models.word_vectors import WordVectorTable
from dialeval.training.card import licence_of
from dialeval.training.examples.fluency import drop_stopwords, words_of
from dialeval.training.examples.negatives import NegativeSampler, SamplerName, SamplerOptions
from dialeval.training.examples.pair_corpus import Pair, PairCorpus, load_pairs
from dialeval.training.examples.stopwords import STOPWORDS
from dialeval.training.learners.judge_recipe import Example
from dialeval.training.train_ruber import load_table
from dialeval.training.train_text_judge import Lesson, corpus_facts

Negatives = SamplerName | Literal["batch"]

WHOLE = 10_000
"""Words of an utterance that are kept of the corpus; the judge reads far fewer."""


def relevance_lesson(
    data: Sequence[Path],
    *,
    examples: int | None,
    held_out: int,
    seed: int,
    licence: str | None,
    vectors: str = "glove-50d",
    negatives: Negatives = "middle",
) -> Lesson:
    """`examples` per epoch (None: one of each pair), `held_out` of them to validate and test."""
    corpus = load_pairs(data, "sum", words=WHOLE)
    table = load_table(vectors)

    def made(
        pairs: Sequence[Pair], generator: np.random.Generator, sampler: SamplerName
    ) -> list[Example]:
        texts = [corpus.texts[pair.response] for pair in pairs]
        draw = NegativeSampler(
            SamplerOptions(sampler),
            texts,
            lambda rows: mean_vectors([texts[i] for i in rows], table),
        )
        wrong = draw.sample(generator).tolist()
        return [
            _example(corpus, pair, texts[other], generator)
            for pair, other in zip(pairs, wrong, strict=True)
        ]

    def of_epoch(epoch: int) -> list[Example]:
        generator = np.random.default_rng([seed, epoch])
        pairs = _drawn(corpus.train, examples, generator)
        if negatives == "batch":
            return [_right(corpus, pair, generator) for pair in pairs]
        return made(pairs, generator, negatives)

    def held(pairs: Sequence[Pair], sampler: SamplerName = "middle") -> list[Example]:
        generator = np.random.default_rng(0)
        return made(_drawn(pairs, held_out, generator), generator, sampler)

    return Lesson(
        summary="Does a response fit the turns before it? Learned from dialogues of people, with"
        f" wrong responses by the rule `{negatives}`.",
        examples=of_epoch,
        validation=held(corpus.validation),
        measured={
            "test": held(corpus.test),
            "test, random negatives": held(corpus.test, "random"),
            "test, similar negatives": held(corpus.test, "weighted"),
        },
        digest=corpus.digest(),
        data=corpus_facts(corpus)
        | {"pairs to learn from": len(corpus.train), "examples per epoch": len(of_epoch(0))},
        licence=licence or licence_of(data),
        by_source={
            name: held(own)
            for name, own in corpus.test_by_corpus.items()
            if len({pair.response for pair in own}) > 1
        },
    )


def _example(corpus: PairCorpus, pair: Pair, wrong: str, generator: np.random.Generator) -> Example:
    if generator.random() < 0.5:
        return Example(_turns(corpus, pair), wrong, 0.0)
    return _right(corpus, pair, generator)


def _right(corpus: PairCorpus, pair: Pair, generator: np.random.Generator) -> Example:
    response = corpus.texts[pair.response]
    if generator.random() < 0.5:
        response = drop_stopwords(response, generator, STOPWORDS)
    return Example(_turns(corpus, pair), response, 1.0)


def _turns(corpus: PairCorpus, pair: Pair) -> tuple[str, ...]:
    return tuple(corpus.texts[number] for number in pair.context)


def _drawn(pairs: Sequence[Pair], most: int | None, generator: np.random.Generator) -> list[Pair]:
    return [pairs[i] for i in generator.permutation(len(pairs))[:most].tolist()]


def mean_vectors(texts: Sequence[str], table: WordVectorTable) -> npt.NDArray[np.float32]:
    """One row per text, the mean over its known words; zero where none is known."""
    found = np.zeros((len(texts), table.vectors.shape[1]), dtype=np.float32)
    for row, text in enumerate(texts):
        rows = [table.rows.get(word.text.lower(), -1) for word in words_of(text)]
        known = [number for number in rows if number >= 0]
        if known:
            found[row] = table.vectors[known].mean(axis=0)
    return found
