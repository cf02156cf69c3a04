"""Plans what to ask, and turns the answers into samples: two protocols of
HolisticEval (Pang et al., ACL 2020), sections 3.3 and 3.4.

diversity    the query, and each variant of it in its place: same history, other words. Do the
             answers vary?
consistency  the query, and when it is answered, a variant as the next turn of the same dialogue:
             history, query, answer, paraphrase. Does the second answer contradict the first?

Both start with the query itself, which is asked once. A variant with a context of its own
(`random`) is another dialogue: it is asked for diversity, and never put again.

A query that was asked in several variants gives one sample with `variants`, the query itself first;
without a response of its own, so that metrics of single answers leave it alone. A query that was
put again gives one sample for each time: its context is history, query, answer and paraphrase, its
response the second answer. Samples of one query share `dialogue`, the query's id.

holistic     both, for all four metrics of the paper on the same dialogues. The answer to the query
             itself is a sample, too, and so it is asked where a query has no variant; and each
             augmenter has a group and paraphrases of its own, as the paper tells WS from CTG.

| sample                 | what it is                                  | scored by              |
|------------------------|---------------------------------------------|------------------------|
| `chat-1/first`         | the answer to the query                     | coherence, fluency,    |
|                        |                                             | consistency (plain)    |
| `chat-1/diversity-ws`  | the answers to the query and to its         | diversity              |
|                        | variants of `ws`                            |                        |
| `chat-1/consistency-ws-1` | the answer to the first variant of `ws`, | consistency            |
|                        | put after the answer to the query           | (augmented)            |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dialeval.augment.queries import Query, QueryVariant
from dialeval.sample import Sample, Turn, Variant
from dialeval.systems.system import INSTRUCTIONS, with_speakers

Protocol = Literal["diversity", "consistency", "both", "holistic"]
ORIGINAL = "original"
GIVEN = "given"
"""The augmenter that is named for variants that came with a file of queries."""

PLAIN, BASELINE = "plain", "random"
"""The column of answers without a variant, and the augmenter that only gives a baseline."""


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
    """What is asked of each query; `paraphrases` variants of it are put again (holistic: of each
    augmenter)."""

    protocol: Protocol = "both"
    paraphrases: int = 1

    def asks(self, query: Query) -> bool:
        """Whether there is something to learn from this query."""
        return self.protocol == "holistic" or bool(query.variants)

    def opening(self, query: Query) -> list[Ask]:
        """Returns what can be asked at once."""
        asks = [Ask(query.id, ORIGINAL, _history(query, query.query))]
        if self.protocol != "consistency":
            asks += [
                Ask(query.id, variant_name(number), _history(query, variant.query, variant.context))
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
        if self.protocol == "diversity":
            return ()
        groups = [
            [variant for variant in group if variant.context is None]
            for group in self.groups(query).values()
        ]
        return [variant for group in groups for variant in group[: self.paraphrases]]

    def groups(self, query: Query) -> dict[str, list[QueryVariant]]:
        """Returns the variants that belong together: all of them, or (holistic) those of an
        augmenter."""
        found: dict[str, list[QueryVariant]] = {}
        for variant in query.variants:
            by = (variant.by or GIVEN) if self.protocol == "holistic" else ""
            found.setdefault(by, []).append(variant)
        return found

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


def _history(query: Query, words: str, context: tuple[Turn, ...] | None = None) -> tuple[Turn, ...]:
    told = (Turn("\n".join(query.facts), INSTRUCTIONS),) if query.facts else ()
    before = query.history[:-1] if context is None else context
    return (*told, *with_speakers((*before, Turn(words, "user"))))


Answer = Callable[[tuple[str, str]], "str | None"]
"""The reply to (query, what), None where there is none."""

FEWEST_ANSWERS = 2
"""One answer cannot differ from anything."""


@dataclass
class Gaps:
    """Counts of what could not become part of a sample, because replies are missing."""

    first: int = 0
    """Queries without an answer of their own (holistic)."""
    variants: int = 0
    """Variants that are missing in a sample of diversity."""
    diversity: int = 0
    """Queries without a sample of diversity."""
    consistency: int = 0
    """Queries put again without a sample of consistency."""


def samples_of(
    queries: Iterable[Query], plan: ProbePlan, answer: Answer, system: str, gaps: Gaps
) -> Iterator[Sample]:
    """Yields the samples, in the order of the queries."""
    for query in queries:
        if plan.protocol == "holistic":
            yield from _first(query, answer, system, gaps)
        if plan.protocol != "consistency":
            yield from _diversity(query, plan, answer, system, gaps)
        yield from _consistency(query, plan, answer, system, gaps)


def _first(query: Query, answer: Answer, system: str, gaps: Gaps) -> Iterator[Sample]:
    reply = answer((query.id, ORIGINAL))
    if reply is None:
        gaps.first += 1
        return
    yield replace(_blank(query, FIRST, system), context=dialogue(query), response=reply)


def _diversity(
    query: Query, plan: ProbePlan, answer: Answer, system: str, gaps: Gaps
) -> Iterator[Sample]:
    names = {id(variant): variant_name(n) for n, variant in enumerate(query.variants, 1)}
    for by, group in plan.groups(query).items():
        asked = [(ORIGINAL, query.query), *((names[id(one)], one.query) for one in group)]
        replies = [(words, answer((query.id, what))) for what, words in asked]
        variants = tuple(Variant(words, reply) for words, reply in replies if reply is not None)
        if len(variants) < FEWEST_ANSWERS:
            gaps.diversity += 1
            continue
        gaps.variants += len(asked) - len(variants)
        other = any(variant.context is not None for variant in group)
        yield replace(
            _blank(query, _kind("diversity", by), system),
            context=() if other else dialogue(query)[:-1],
            variants=variants,
        )


def _consistency(
    query: Query, plan: ProbePlan, answer: Answer, system: str, gaps: Gaps
) -> Iterator[Sample]:
    first = answer((query.id, ORIGINAL))
    times: dict[str, int] = {}
    for number, paraphrase in enumerate(plan.put_again(query), 1):
        by = (paraphrase.by or GIVEN) if plan.protocol == "holistic" else ""
        times[by] = times.get(by, 0) + 1
        second = answer((query.id, again_name(number)))
        if first is None or second is None:
            gaps.consistency += 1
            continue
        said = (*dialogue(query), Turn(first, "system"), Turn(paraphrase.query, "user"))
        blank = _blank(query, f"{_kind('consistency', by)}-{times[by]}", system)
        yield replace(blank, context=said, response=second)


FIRST = "first"


def _kind(kind: str, by: str) -> str:
    return f"{kind}-{by}" if by else kind


def _blank(query: Query, kind: str, system: str) -> Sample:
    name = f"{query.id}/{kind}"
    return Sample(name, facts=query.facts, system=system, dialogue=query.id, item=name)


@dataclass(frozen=True)
class SampleKind:
    """The purpose of a sample of a probe; `by` is the augmenter, if groups are told apart."""

    kind: Literal["first", "diversity", "consistency"]
    by: str = ""


def kind_of(sample: Sample) -> SampleKind | None:
    """Reads it off the id; None for a sample that is of no probe."""
    if not sample.id.startswith(f"{sample.dialogue}/"):
        return None
    name = sample.id.removeprefix(f"{sample.dialogue}/")
    if name == FIRST:
        return SampleKind("first")
    kind, _, rest = name.partition("-")
    if kind == "diversity":
        return SampleKind("diversity", rest)
    if kind == "consistency" and rest:
        return SampleKind("consistency", rest.rpartition("-")[0])
    return None
