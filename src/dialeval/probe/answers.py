"""From exchanges to samples: what the metrics judge.

A query that was asked in several wordings gives one sample with `variants`, the query itself first;
without a response of its own, so that metrics of single answers leave it alone. A query that was
put again gives one sample for each time: its context is history, query, answer and paraphrase, its
response the second answer. Samples of one query share `dialogue`, the query's id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from dialeval.augment.query import Query
from dialeval.probe.plan import ORIGINAL, Plan, again_name, dialogue, variant_name
from dialeval.sample import Sample, Turn, Variant

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
    queries: Iterable[Query], plan: Plan, answer: Answer, system: str, gaps: Gaps
) -> Iterator[Sample]:
    """The samples, in the order of the queries."""
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
    query: Query, plan: Plan, answer: Answer, system: str, gaps: Gaps
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
