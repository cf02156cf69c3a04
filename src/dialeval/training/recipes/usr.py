"""`dialeval train usr-context`, `dialeval train usr-fact`: the two retrieval scorers of USR.

(Mehri and Eskenazi, ACL 2020, section 4.2) USR tunes RoBERTa on a corpus to tell the response that
was given from a random one, once after the context and once after the fact that the speaker was to
use. The third part of USR, a masked language model, is that of `train mme-specificity`; weights of
the three are those of the released regression (`metrics/usr.py`).

    usr-context   turns -> response, from any corpora
    usr-fact      the facts of a dialogue, as one text -> a response of the system, from dialogues
                  that come with facts, such as personachat
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dialeval.errors import UsageError
from dialeval.options import option
from dialeval.training.recipe import held_out_option
from dialeval.training.recipes.sentence_head import HeadExamples, SentenceHead

if TYPE_CHECKING:
    import numpy as np

    from dialeval.training.examples.corpora import LeftOut, RatedExchanges
    from dialeval.training.examples.pair_corpus import Example


@dataclass(frozen=True, kw_only=True)
class UsrContext(SentenceHead):
    """Teach the first retrieval scorer of USR which response belongs to which turns."""

    name = "usr-context"
    usage: ClassVar[str] = "dialeval score FILE -m usr:context={out}"

    pairs: int = option(30_000, "Learn from at most this many pairs; 0: from all.", low=0)
    held_out: int = held_out_option(2_000, "pairs each")

    @property
    def about(self) -> str:
        return (
            "Was this response given to these turns? The retrieval scorer DR-c of USR, as a head"
            " on frozen sentence vectors."
        )

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.training.examples.pair_corpus import (
            ExampleSets,
            Pair,
            corpus_facts,
            drawn,
            load_pairs,
            with_random_responses,
        )

        corpus = load_pairs(data, "weighted")
        pairs = drawn(corpus.train, self.pairs or None, np.random.default_rng([self.seed, 1]))

        def of_epoch(epoch: int) -> list[Example]:
            generator = np.random.default_rng([self.seed, 2 + epoch])
            return with_random_responses(corpus.texts, pairs, generator)

        def held_out(own: Sequence[Pair]) -> list[Example]:
            generator = np.random.default_rng(0)
            some = drawn(own, self.held_out, generator)
            return with_random_responses(corpus.texts, some, generator)

        return HeadExamples(
            ExampleSets(
                of_epoch,
                held_out(corpus.validation),
                corpus.digest(),
                corpus_facts(corpus) | {"pairs to learn from": len(pairs)},
                measured={"test, random responses": held_out(corpus.test)},
            ),
            corpus.texts,
        )


@dataclass(frozen=True, slots=True)
class Told:
    """The facts of a dialogue as one text, and what the one who knew them said."""

    fact: str
    responses: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class UsrFact(SentenceHead):
    """Teach the second retrieval scorer of USR which responses use a fact.

    The data are dialogues with facts, such as the personas of personachat.
    """

    name = "usr-fact"
    rated: ClassVar[Mapping[str, str]] = {}
    usage: ClassVar[str] = "dialeval score FILE -m usr:fact={out}"

    turns: int = 1

    @property
    def about(self) -> str:
        return (
            "Does a response belong to these facts? The retrieval scorer DR-f of USR, as a head on"
            " frozen sentence vectors."
        )

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.training.examples.corpora import known_exchanges
        from dialeval.training.examples.pair_corpus import ExampleSets

        told, left_out = load_told(data, known_exchanges())
        tenth = len(told) // 10
        test, validation, learn = told[:tenth], told[tenth : 2 * tenth], told[2 * tenth :]
        if tenth < 2:
            raise UsageError(
                f"{len(told)} dialogues with facts are too few to learn from: take a corpus whose"
                " dialogues have facts, such as personachat"
            )

        return HeadExamples(
            ExampleSets(
                lambda epoch: facts_and_responses(
                    learn, np.random.default_rng([self.seed, 1 + epoch])
                ),
                facts_and_responses(validation, np.random.default_rng(0)),
                _digest(told),
                {
                    "dialogues to learn from": len(learn),
                    "dialogues to validate on": len(validation),
                    "dialogues to test on": len(test),
                    "responses to learn from": sum(len(one.responses) for one in learn),
                    "sha256": _digest(told),
                    **left_out.facts(),
                },
                measured={
                    "test, random responses": facts_and_responses(test, np.random.default_rng(0))
                },
            )
        )


def load_told(data: Sequence[Path], rated: RatedExchanges) -> tuple[list[Told], LeftOut]:
    """Returns the dialogues with facts that no rated set shares, in the order of a digest."""
    from collections import Counter

    from dialeval.readers import load
    from dialeval.training.examples.corpora import LeftOut

    found: dict[Told, None] = {}
    by_set, count = Counter[str](), 0
    for path in data:
        for sample in load(path):
            turns = tuple(turn.text for turn in sample.turns)
            if names := rated.sets_with_dialogue(turns):
                by_set.update(names)
                count += 1
                continue
            said = [turn.text for turn in sample.turns if turn.speaker == "system"]
            if sample.response is not None and sample.response not in said:
                said.append(sample.response)
            responses = tuple(dict.fromkeys(text for text in said if text.strip()))
            if sample.facts and responses:
                found[Told(" ".join(sample.facts), responses)] = None
    ordered = sorted(found, key=lambda one: hashlib.sha256(_bytes(one)).digest())
    return ordered, LeftOut(rated, "dialogues", count, by_set)


def facts_and_responses(told: Sequence[Told], generator: np.random.Generator) -> list[Example]:
    """Returns each response once after its fact, and once after the fact of another dialogue."""
    from dialeval.training.examples.pair_corpus import Example

    found = []
    for place, one in enumerate(told):
        for response in one.responses:
            other = (place + 1 + int(generator.integers(len(told) - 1))) % len(told)
            found.append(Example((one.fact,), response, 1.0))
            found.append(Example((told[other].fact,), response, 0.0))
    return found


def _digest(told: Sequence[Told]) -> str:
    return hashlib.sha256(b"\x1e".join(map(_bytes, told))).hexdigest()


def _bytes(one: Told) -> bytes:
    return "\x1f".join((one.fact, *one.responses)).encode("utf-8", "surrogatepass")
