"""What `mme-fluency` is taught: which responses were broken (see `fluency_examples`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from dialeval.training.card import licence_of
from dialeval.training.examples.fluency import fluency_example
from dialeval.training.examples.pair_corpus import Pair, PairCorpus, load_pairs
from dialeval.training.examples.stopwords import STOPWORDS
from dialeval.training.learners.judge_recipe import Example
from dialeval.training.train_text_judge import Lesson, corpus_facts

WHOLE = 10_000
"""Words of an utterance that are kept of the corpus; the judge reads far fewer."""


def fluency_lesson(
    data: Sequence[Path], *, examples: int | None, held_out: int, seed: int, licence: str | None
) -> Lesson:
    """`examples` per epoch (None: one of each response), `held_out` to validate and to test."""
    corpus = load_pairs(data, "last", words=WHOLE)
    responses = _responses(corpus, corpus.train)

    def spoiled(texts: Iterable[str], generator: np.random.Generator) -> list[Example]:
        made = (fluency_example(text, generator, STOPWORDS) for text in texts)
        return [Example((), text, float(label)) for text, label in made]

    def of_epoch(epoch: int) -> list[Example]:
        generator = np.random.default_rng([seed, epoch])
        return spoiled(drawn(responses, examples, generator), generator)

    def held(pairs: Sequence[Pair]) -> list[Example]:
        generator = np.random.default_rng(0)
        return spoiled(drawn(_responses(corpus, pairs), held_out, generator), generator)

    return Lesson(
        summary="Is a response fluent? Learned from responses of people, half of them broken:"
        " words shuffled, dropped, repeated.",
        examples=of_epoch,
        validation=held(corpus.validation),
        measured={"test": held(corpus.test)},
        digest=corpus.digest(),
        data=corpus_facts(corpus)
        | {"responses to learn from": len(responses), "examples per epoch": len(of_epoch(0))},
        licence=licence or licence_of(data),
        by_source={name: held(own) for name, own in corpus.test_by_corpus.items() if own},
    )


def drawn(texts: Sequence[str], most: int | None, generator: np.random.Generator) -> list[str]:
    """At most so many, by lot."""
    return [texts[i] for i in generator.permutation(len(texts))[:most].tolist()]


def _responses(corpus: PairCorpus, pairs: Sequence[Pair]) -> list[str]:
    return [corpus.texts[number] for number in dict.fromkeys(pair.response for pair in pairs)]
