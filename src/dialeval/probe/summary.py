"""What became of a probe, counted: for people, and for the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dialeval.probe.answers import Gaps
from dialeval.probe.exchange import Exchange

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
    """What became of a probe.

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
    """The first there is: that of an earlier probe was not kept."""
    given = (exchange.failure.advice for exchange in exchanges if exchange.failure)
    return next(filter(None, given), "")
