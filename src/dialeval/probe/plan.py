"""Plans what to ask, and turns the answers into samples: two protocols of
HolisticEval (Pang et al., ACL 2020), sections 3.3 and 3.4.

diversity    the query, and each variant of it in its place: same history, other words. Do the
             answers vary?
consistency  the query, and when it is answered, a variant as the next turn of the same dialogue:
             history, query, answer, paraphrase. Does the second answer contradict the first?

Both start with the query itself, which is asked once.

A query that was asked in several variants gives one sample with `variants`, the query itself first;
without a response of its own, so that metrics of single answers leave it alone. A query that was
put again gives one sample for each time: its context is history, query, answer and paraphrase, its
response the second answer. Samples of one query share `dialogue`, the query's id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dialeval.augment.queries import Query, QueryVariant
from dialeval.sample import Sample, Turn, Variant
from dialeval.systems.system import INSTRUCTIONS, with_speakers

Protocol = Literal["diversity", "consistency", "both"]
ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to the system. `what`: `original`, `variant 2` or `again 1` (from 1)."""

    query: str
    what: str
    history: tuple[Turn, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.query, self.what


@dataclass(frozen=True)
class ProbePlan:
    """What is asked of each query; `paraphrases` variants of it are put again."""

    protocol: Protocol = "both"
    paraphrases: int = 1

    def opening(self, query: Query) -> list[Ask]:
        """Returns what can be asked at once."""
        asks = [Ask(query.id, ORIGINAL, _history(query, query.query))]
        if self.protocol != "consistency":
            asks += [
                Ask(query.id, variant_name(number), _history(query, variant.query))
                for number, variant in enumerate(query.variants, 1)
            ]
        return asks

    def following(self, query: Query, answer: str) -> list[Ask]:
        """Returns what can be asked when the query itself has been answered."""
        said = (*_history(query, query.query), Turn(answer, "system"))
        return [
            Ask(query.id, again_name(number), (*said, Turn(variant.query, "user")))
            for number, variant in enumerate(self.put_again(query), 1)
        ]

    def put_again(self, query: Query) -> Sequence[QueryVariant]:
        return () if self.protocol == "diversity" else query.variants[: self.paraphrases]

    def names(self, query: Query) -> list[str]:
        """Returns the `what` of everything that is asked of this query, in order."""
        variants = 0 if self.protocol == "consistency" else len(query.variants)
        return [
            ORIGINAL,
            *(variant_name(number) for number in range(1, variants + 1)),
            *(again_name(number) for number in range(1, len(self.put_again(query)) + 1)),
        ]


def variant_name(number: int) -> str:
    return f"variant {number}"


def again_name(number: int) -> str:
    return f"again {number}"


def dialogue(query: Query) -> tuple[Turn, ...]:
    """Returns what was said up to and including the query; every speaker is `user` or `system`."""
    return with_speakers(query.history)


def _history(query: Query, words: str) -> tuple[Turn, ...]:
    told = (Turn("\n".join(query.facts), INSTRUCTIONS),) if query.facts else ()
    return (*told, *dialogue(query)[:-1], Turn(words, "user"))


Answer = Callable[[tuple[str, str]], "str | None"]
"""The reply to (query, what), None where there is none."""

FEWEST_ANSWERS = 2
"""One answer cannot differ from anything."""


@dataclass
class Gaps:
    """What could not become part of a sample because replies are missing."""

    variants: int = 0
    """Wordings that are missing in a sample of diversity."""
    diversity: int = 0
    """Queries without a sample of diversity."""
    consistency: int = 0
    """Queries put again without a sample of consistency."""


def samples_of(
    queries: Iterable[Query], plan: ProbePlan, answer: Answer, system: str, gaps: Gaps
) -> Iterator[Sample]:
    """Yields the samples, in the order of the queries."""
    for query in queries:
        if plan.protocol != "consistency":
            yield from _diversity(query, answer, system, gaps)
        yield from _consistency(query, plan, answer, system, gaps)


def _diversity(query: Query, answer: Answer, system: str, gaps: Gaps) -> Iterator[Sample]:
    asked = [(ORIGINAL, query.query)]
    asked += [(variant_name(n), variant.query) for n, variant in enumerate(query.variants, 1)]
    replies = [(words, answer((query.id, what))) for what, words in asked]
    variants = tuple(Variant(words, reply) for words, reply in replies if reply is not None)
    if len(variants) < FEWEST_ANSWERS:
        gaps.diversity += 1
        return
    gaps.variants += len(asked) - len(variants)
    yield replace(
        _blank(query, "diversity", system), context=dialogue(query)[:-1], variants=variants
    )


def _consistency(
    query: Query, plan: ProbePlan, answer: Answer, system: str, gaps: Gaps
) -> Iterator[Sample]:
    first = answer((query.id, ORIGINAL))
    for number, paraphrase in enumerate(plan.put_again(query), 1):
        second = answer((query.id, again_name(number)))
        if first is None or second is None:
            gaps.consistency += 1
            continue
        said = (*dialogue(query), Turn(first, "system"), Turn(paraphrase.query, "user"))
        blank = _blank(query, f"consistency-{number}", system)
        yield replace(blank, context=said, response=second)


def _blank(query: Query, kind: str, system: str) -> Sample:
    name = f"{query.id}/{kind}"
    return Sample(name, facts=query.facts, system=system, dialogue=query.id, item=name)
