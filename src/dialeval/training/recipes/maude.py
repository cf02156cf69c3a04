"""`dialeval train maude`: what people said next, against what is broken or said elsewhere.

(Sinha et al., ACL 2020, sections 3.1 and 4.1) Every response is right after its turns. Wrong are

    random   an utterance of another dialogue
    drop     the response, each word of which is dropped with probability .5
    order    its words in another order
    repeat   its first word or its first two, the last of them repeated to the same length

The first `edits` pairs have an edited response besides the random one, by the three rules in turn;
their texts have to be embedded. Both classes of a batch have the same weight. The released code
also draws back-translations (right ones and random ones) and responses of models: they need a
translator and chatbots of the corpus, and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.options import option
from dialeval.training.recipe import held_out_option
from dialeval.training.recipes.sentence_head import HeadExamples, SentenceHead

if TYPE_CHECKING:
    import numpy as np

    from dialeval.training.examples.pair_corpus import Example, Pair, PairCorpus

RULES = ("drop", "order", "repeat")


@dataclass(frozen=True, kw_only=True)
class Maude(SentenceHead):
    """Teach MAUDE to tell responses of people from broken and random ones."""

    name = "maude"
    metric = "maude"
    head = "turns"
    balanced = True

    pairs: int = option(15_000, "Learn from at most this many pairs; 0: from all.", low=0)
    edits: int = option(6_000, "Edit the responses of this many of these pairs.", low=0)
    held_out: int = held_out_option(600, "pairs each")

    units: tuple[int, ...] = field(default=(80, 200))
    """Width of the turns and of the LSTM (300 in the paper: 8 MB), and of the hidden layer."""

    @property
    def about(self) -> str:
        return (
            "Would people say this next? MAUDE: a recurrent network over frozen sentence vectors"
            " that learned right responses against edited and random ones."
        )

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.training.examples.pair_corpus import (
            ExampleSets,
            corpus_facts,
            drawn,
            load_pairs,
            with_random_responses,
        )

        corpus = load_pairs(data, "weighted")
        pairs = drawn(corpus.train, self.pairs or None, np.random.default_rng([self.seed, 1]))
        edited = _edited(corpus, pairs[: self.edits], np.random.default_rng([self.seed, 2]))

        def of_epoch(epoch: int) -> list[Example]:
            generator = np.random.default_rng([self.seed, 3 + epoch])
            return [*with_random_responses(corpus.texts, pairs, generator), *edited]

        def held_out(own: Sequence[Pair]) -> tuple[list[Example], list[Example]]:
            generator = np.random.default_rng(0)
            some = drawn(own, self.held_out, generator)
            right_or_random = with_random_responses(corpus.texts, some, generator)
            return right_or_random, _edited(corpus, some, generator)

        validation, test = held_out(corpus.validation), held_out(corpus.test)
        of_test = {
            rule: [*test[0][::2], *test[1][place :: len(RULES)]] for place, rule in enumerate(RULES)
        }
        return HeadExamples(
            ExampleSets(
                of_epoch,
                [*validation[0], *validation[1]],
                corpus.digest(),
                corpus_facts(corpus)
                | {"pairs to learn from": len(pairs), "edited responses": len(edited)},
                measured={
                    "test, random utterances": test[0],
                    **{f"test, words by rule {rule}": own for rule, own in of_test.items()},
                },
            ),
            corpus.texts,
        )


def drop_words(words: Sequence[str], generator: np.random.Generator) -> list[str]:
    """Drops each word with probability .5; one word stays."""
    kept = [word for word in words if generator.random() < 0.5]
    return kept or [words[int(generator.integers(len(words)))]]


def shuffle_words(words: Sequence[str], generator: np.random.Generator) -> list[str]:
    return [words[place] for place in generator.permutation(len(words)).tolist()]


def repeat_words(words: Sequence[str], generator: np.random.Generator) -> list[str]:
    """Repeats one of the first two words from its place on, to the same number of words."""
    start = int(generator.integers(min(2, len(words))))
    return [*words[:start], *[words[start]] * (len(words) - start)]


def _edited(
    corpus: PairCorpus, pairs: Sequence[Pair], generator: np.random.Generator
) -> list[Example]:
    """Returns an edited response of each pair, by the rules in turn."""
    from dialeval.training.examples.pair_corpus import Example

    rules = (drop_words, shuffle_words, repeat_words)
    found = []
    for place, pair in enumerate(pairs):
        words = corpus.texts[pair.response].split()
        text = " ".join(rules[place % len(rules)](words, generator))
        # A response of one or two words can stay what it was: then it is no wrong one.
        target = float(text == " ".join(words))
        found.append(Example(_turns(corpus, pair), text, target))
    return found


def _turns(corpus: PairCorpus, pair: Pair) -> tuple[str, ...]:
    return tuple(corpus.texts[number] for number in pair.context)
