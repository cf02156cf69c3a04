"""`probe`: puts queries and their variants to a system, and keeps every answer.

    system = open_system("openai:http://localhost:8000/v1#my-bot")
    summary = probe(system, read_queries("queries.jsonl"), "runs/probe")

The same call goes on with a probe that was interrupted: it asks only what has no reply yet, which
includes what failed. A question that fails costs itself; the samples do without it. A variant that
is its query again, up to case and spacing, is not asked: it would make any system look consistent.
It is counted.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dialeval.augment.augmenter import Tally, augment_queries, make_augmenters, watched
from dialeval.augment.queries import Query, normalised_query, read_queries, write_queries
from dialeval.errors import UsageError
from dialeval.limits import OWN
from dialeval.probe.directory import ProbeDirectory
from dialeval.probe.exchange import Exchange, Recording, ask_all, write_exchanges
from dialeval.probe.plan import ORIGINAL, Ask, Gaps, ProbePlan, Protocol, kind_of, samples_of
from dialeval.systems.system import System

# The result of a probe in numbers: for people, and for the exit code.

EXAMPLES = 3
"""Failures of one kind that are shown."""


@dataclass(frozen=True)
class FailureCount:
    """Failures of one kind, what the first of them looked like, and what to do about them."""

    reason: str
    count: int
    examples: tuple[str, ...]
    advice: str = ""


@dataclass(frozen=True)
class ProbeSummary:
    """The result of a probe.

    asked     questions that were put now; the other replies were there already
    answered  questions that have a reply
    cut       replies of these that met a limit of tokens
    failures  why the others have none
    bare      queries without a variant, which were not asked
    variants  of the queries that were asked, by how they were made
    unchanged variants that were left out because they are the query again
    samples   per protocol, how many samples there are
    gaps      what is missing in them
    """

    directory: Path
    system: str
    queries: int
    asked: int
    answered: int
    cut: int
    failed: int
    failures: tuple[FailureCount, ...]
    bare: int
    variants: Mapping[str, int]
    unchanged: int
    samples: Mapping[str, int]
    gaps: Gaps
    damaged: int = 0
    """Recorded exchanges that could not be read, whose questions were asked again."""

    @property
    def scorable(self) -> bool:
        """Whether there is a sample."""
        return any(self.samples.values())


def count_failures(exchanges: Iterable[Exchange]) -> tuple[FailureCount, ...]:
    """Failures by reason, the most frequent first."""
    found: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        if exchange.failure:
            found.setdefault(exchange.failure.reason, []).append(exchange)
    return tuple(
        FailureCount(
            reason, len(group), tuple(_example(one) for one in group[:EXAMPLES]), _advice(group)
        )
        for reason, group in sorted(found.items(), key=lambda item: -len(item[1]))
    )


def _example(exchange: Exchange) -> str:
    detail = exchange.failure.detail if exchange.failure else ""
    return f"{exchange.query}, {exchange.what}" + (f": {detail}" if detail else "")


def _advice(exchanges: Iterable[Exchange]) -> str:
    """Returns the first advice there is: that of an earlier probe was not kept."""
    given = (exchange.failure.advice for exchange in exchanges if exchange.failure)
    return next(filter(None, given), "")


DEFAULT_AUGMENTER = "ws"


@dataclass(frozen=True, slots=True)
class ProbeProgress:
    """The progress of a probe: queries that have variants, or questions that ended, and failed."""

    stage: Literal["augmenting", "asking"]
    done: int
    total: int
    failed: int = 0


Watch = Callable[[ProbeProgress], None]


def probe(
    system: System,
    queries: Iterable[Query],
    out: str | Path,
    *,
    protocol: Protocol = "both",
    paraphrases: int = 1,
    augment: Sequence[str] | None = None,
    seed: int | None = None,
    name: str = "",
    overwrite: bool = False,
    watch: Watch = lambda progress: None,
) -> ProbeSummary:
    """Asks the system and returns what came of it; the directory `out` holds everything.

    protocol     see `plan.py`
    paraphrases  how many variants of a query are put again, for consistency
    augment      augmenters, such as `ws:mode=released`. None: WordNet substitution, unless the
                 queries have variants already
    seed         of the augmenters
    name         what the samples call the system
    overwrite    start again, whatever `out` holds
    watch        hears how far it is
    """
    given = list(queries)
    specs = _augmenters(given, augment)
    name = name or system.name
    settings = {
        "system": {"name": name, **system.settings},
        "queries": {"count": len(given), "sha256": queries_digest(given)},
        "augmented_with": {"specs": specs, "seed": seed},
        "protocol": protocol,
        "paraphrases": paraphrases,
    }
    directory, plan = ProbeDirectory(Path(out)), ProbePlan(protocol, paraphrases)
    with directory.exclusive(overwrite):
        if not directory.holds(settings):
            tally = Tally()
            write_queries(_augmented(given, specs, seed, tally, watch), directory.queries)
            directory.begin(settings, tally)
        asked = list(read_queries(directory.queries, format="queries", largest_record=OWN))
        return _Asker(system, directory, plan, asked, name).run(watch)


class _Asker:
    """One pass over a probe: asks what is missing, then writes the files in their final order."""

    def __init__(
        self,
        system: System,
        directory: ProbeDirectory,
        plan: ProbePlan,
        queries: Sequence[Query],
        name: str,
    ) -> None:
        self._system = system
        self._directory = directory
        self._plan = plan
        self._queries = {query.id: query for query in queries if plan.asks(query)}
        self._bare = len(queries) - len(self._queries)
        self._name = name
        self._recording = Recording(directory.exchanges)

    def run(self, watch: Watch) -> ProbeSummary:
        if not self._queries:
            raise UsageError(
                "no query has a variant, so there is nothing to compare. Choose another augmenter:"
                " --with ws, --with eda, or both; add --overwrite to start again"
            )
        asked = self._ask(watch)
        everything = [
            self._recording.exchanges[query.id, what]
            for query in self._queries.values()
            for what in self._plan.names(query)
            if (query.id, what) in self._recording.exchanges
        ]
        write_exchanges(self._directory.exchanges, everything)
        return self._finish(asked, everything)

    def _ask(self, watch: Watch) -> int:
        """Puts every question that has no reply yet; returns how many those were."""
        missing = self._missing()
        total = sum(len(self._plan.names(query)) for query in self._queries.values())
        done = total - len(missing) - self._not_yet(missing)
        asked = failed = 0

        def react(exchange: Exchange) -> list[Ask]:
            nonlocal done, total, asked, failed
            self._recording.add(exchange)
            query = self._queries[exchange.query]
            done, asked = done + 1, asked + 1
            failed += exchange.failure is not None
            opened: list[Ask] = []
            if exchange.what == ORIGINAL:
                if exchange.reply is None:
                    total -= len(self._plan.put_again(query))
                else:
                    opened = self._plan.following(query, exchange.reply)
            watch(ProbeProgress("asking", done, total, failed))
            return opened

        watch(ProbeProgress("asking", done, total))
        with self._recording:
            ask_all(self._system, missing, react)
        return asked

    def _missing(self) -> list[Ask]:
        asks: list[Ask] = []
        for query in self._queries.values():
            asks += self._plan.opening(query)
            if (first := self._recording.answer((query.id, ORIGINAL))) is not None:
                asks += self._plan.following(query, first)
        return [ask for ask in asks if self._recording.answer(ask.key) is None]

    def _not_yet(self, missing: Sequence[Ask]) -> int:
        """Questions that wait for the answer to a query."""
        waiting = (self._queries[ask.query] for ask in missing if ask.what == ORIGINAL)
        return sum(len(self._plan.put_again(query)) for query in waiting)

    def _finish(self, asked: int, exchanges: Sequence[Exchange]) -> ProbeSummary:
        gaps = Gaps()
        samples = list(
            samples_of(self._queries.values(), self._plan, self._recording.answer, self._name, gaps)
        )
        self._directory.write_samples(samples)
        failures = count_failures(exchanges)
        failed = sum(failure.count for failure in failures)
        kinds = Counter(str(kind.kind) for sample in samples if (kind := kind_of(sample)))
        wanted = {"holistic": ("first", "diversity", "consistency")}
        return ProbeSummary(
            directory=self._directory.path,
            system=self._name,
            queries=len(self._queries),
            asked=asked,
            answered=len(exchanges) - failed,
            cut=sum(exchange.cut for exchange in exchanges),
            failed=failed,
            failures=failures,
            bare=self._bare,
            variants=dict(
                Counter(v.how for query in self._queries.values() for v in query.variants)
            ),
            unchanged=self._directory.unchanged(),
            samples={
                kind: kinds[kind]
                for kind in wanted.get(self._plan.protocol, ("diversity", "consistency"))
            },
            gaps=gaps,
            damaged=len(self._recording.damaged),
        )


def _augmenters(queries: Sequence[Query], given: Sequence[str] | None) -> list[str]:
    if given is not None:
        return list(given)
    return [] if any(query.variants for query in queries) else [DEFAULT_AUGMENTER]


def _augmented(
    queries: Sequence[Query],
    specs: Sequence[str],
    seed: int | None,
    tally: Tally,
    watch: Watch,
) -> Iterable[Query]:
    if not specs:
        return _without_repeats(queries, tally)
    made = augment_queries(queries, make_augmenters(specs, seed), tally)
    return watched(
        _without_repeats(made, tally),
        lambda done, _: watch(ProbeProgress("augmenting", done, len(queries))),
    )


def _without_repeats(queries: Iterable[Query], tally: Tally) -> Iterator[Query]:
    """Leaves out variants that are the query itself; the rule of a release may have kept them."""
    for query in queries:
        same = normalised_query(query.query)
        kept = [variant for variant in query.variants if normalised_query(variant.query) != same]
        dropped = [variant for variant in query.variants if normalised_query(variant.query) == same]
        tally.unchanged.update(variant.how for variant in dropped)
        yield replace(query, variants=tuple(kept))


def queries_digest(queries: Iterable[Query]) -> str:
    digest = hashlib.sha256()
    for query in queries:
        record: Any = query.to_record()
        digest.update(json.dumps(record).encode("ascii") + b"\n")
    return digest.hexdigest()
