"""A scored sample as plain values that a template can show: the chat, the scores, and why.

What a metric has to show for its number is found by the shape of its parts, not by its name, so
that a metric from a plugin is shown as well as one of ours:

    words         log_probs, starts, ends    the response, each word with its log-probability
    follow-ups    parts "as the next turn"   what a user could say next, the likeliest first
    pairs         contradictions, turns      the earlier turns that the response contradicts
    n-grams       entropy-n or distinct-n    those that occur more than once
    contributions a part with a weight       what each sub-metric adds to a composed score
    numbers       any other part
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dialeval.report.evidence import (
    Bar,
    NGram,
    Pair,
    Word,
    contributions,
    follow_ups,
    numbers,
    pairs,
    repeated_ngrams,
    words,
)

MOST_TURNS, MOST_CHARACTERS = 40, 4000
"""A chat shows its last turns, and of a turn the beginning; it says what it leaves out."""

SNIPPET = 110


@dataclass(frozen=True)
class TurnView:
    """One bubble. `number` counts from 1; `cut` characters of its end are not shown."""

    number: int
    speaker: str
    side: Literal["user", "system"]
    text: str
    cut: int = 0
    mark: str = ""
    """`contradicted` where the response most likely contradicts this turn."""


@dataclass(frozen=True)
class MetricView:
    """One score and what stands behind it; `note` says why there is none."""

    label: str
    direction: str
    value: float | None
    raw: float | None
    note: str
    words: tuple[Word, ...] = ()
    follow_ups: tuple[Bar, ...] = ()
    pairs: tuple[Pair, ...] = ()
    ngrams: tuple[NGram, ...] = ()
    contributions: tuple[Bar, ...] = ()
    numbers: tuple[Bar, ...] = ()

    @property
    def shows(self) -> bool:
        """Is there anything to see beside the number?"""
        found = (self.words, self.follow_ups, self.pairs, self.ngrams, self.contributions)
        return any(found) or bool(self.numbers)


@dataclass(frozen=True)
class RatingView:
    """What people said of one quality; `values` as given, None for silence."""

    quality: str
    mean: float | None
    values: tuple[float | None, ...]
    scale: tuple[float, float] | None


@dataclass(frozen=True)
class VariantView:
    """A wording of a probed query, and the answer to it."""

    query: str
    response: str
    contradiction: float | None = None


@dataclass(frozen=True)
class DialogueView:
    """Everything that `templates/dialogue.html` shows. All texts are as hostile as they came."""

    id: str
    system: str
    dialogue: str
    item: str
    level: Literal["turn", "dialogue"]
    earlier: int
    """Turns at the beginning that are not shown."""
    turns: tuple[TurnView, ...]
    response: TurnView | None
    references: tuple[str, ...]
    facts: tuple[str, ...]
    variants: tuple[VariantView, ...]
    metrics: tuple[MetricView, ...]
    ratings: tuple[RatingView, ...]
    snippet: str

    def value(self, label: str) -> float | None:
        return next((one.value for one in self.metrics if one.label == label), None)


def dialogue_view(
    row: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], most_turns: int = MOST_TURNS
) -> DialogueView:
    """`row` is one of `scores.parquet`, as `to_pylist` gives it; `metrics` those of the manifest,
    all or the ones to show. Of a long dialogue, the last `most_turns` are shown."""
    context: Sequence[Mapping[str, str]] = row["context"]
    response: str | None = row["response"]
    shown = tuple(_metric(row, metric) for metric in metrics)
    contradicted = _most_contradicted(shown) if response is not None else None
    by_place = {p.number: p.probability for one in shown for p in one.pairs}
    sides = _sides(context, response is not None)
    first = max(0, len(context) - most_turns)
    turns = tuple(
        _turn(place, turn["text"], turn["speaker"] or "", sides[place - 1], place == contradicted)
        for place, turn in enumerate(context, 1)
        if place > first
    )
    said = [one["response"] for one in row["variants"] or ()] or [t["text"] for t in context]
    last = response if response is not None else next(reversed(said), "")
    return DialogueView(
        id=row["id"],
        system=row["system"] or "",
        dialogue=row["dialogue"] or "",
        item=row["item"] or "",
        level="dialogue" if response is None else "turn",
        earlier=first,
        turns=turns,
        response=None
        if response is None
        else _turn(len(context) + 1, response, row["system"] or "system", "system"),
        references=tuple(text[:MOST_CHARACTERS] for text in row["references"] or ()),
        facts=tuple(text[:MOST_CHARACTERS] for text in row["facts"] or ()),
        variants=tuple(
            VariantView(
                one["query"][:MOST_CHARACTERS],
                one["response"][:MOST_CHARACTERS],
                by_place.get(place) if response is None else None,
            )
            for place, one in enumerate(row["variants"] or (), 1)
        ),
        metrics=shown,
        ratings=tuple(_rating(quality, given) for quality, given in row["ratings"] or ()),
        snippet=_snippet(last),
    )


def _snippet(text: str) -> str:
    """The beginning, on one line, cut between words where there are any."""
    start = " ".join(text[: 4 * SNIPPET].split())
    if len(start) <= SNIPPET:
        return start
    return (start[:SNIPPET].rpartition(" ")[0] or start[:SNIPPET]) + " …"


def _metric(row: Mapping[str, Any], metric: Mapping[str, Any]) -> MetricView:
    label = metric["label"]
    parts = {
        part["name"]: found
        for part in metric["parts"]
        if (found := row.get(f"{label}.{part['name']}")) is not None
    }
    value = row[label]
    raw = row.get(f"{label}.raw")
    return MetricView(
        label,
        metric["direction"],
        value,
        None if raw is None or raw == value else raw,
        row[f"{label}.note"] or "",
        words=words(row["response"] or "", parts),
        follow_ups=follow_ups(metric, parts),
        pairs=pairs(row, parts),
        ngrams=repeated_ngrams(row, metric, parts),
        contributions=contributions(metric, parts),
        numbers=numbers(metric, parts),
    )


def _most_contradicted(shown: Sequence[MetricView]) -> int | None:
    """The place of the turn that the response contradicts, where that is likelier than not."""
    found = [pair for one in shown for pair in one.pairs if pair.probability > 0.5]
    return max(found, key=lambda pair: pair.probability).number if found else None


def _sides(context: Sequence[Mapping[str, str]], answered: bool) -> list[Literal["user", "system"]]:
    """Who speaks: by name where the system is named, else in turns, backwards from the response
    or, in a whole dialogue, forwards from the user."""
    if any(turn["speaker"] == "system" for turn in context):
        return ["system" if turn["speaker"] == "system" else "user" for turn in context]
    size = len(context)
    return [
        "user" if (size - place if answered else place) % 2 == (1 if answered else 0) else "system"
        for place in range(size)
    ]


def _turn(
    number: int,
    text: str,
    speaker: str,
    side: Literal["user", "system"],
    contradicted: bool = False,
) -> TurnView:
    return TurnView(
        number,
        speaker,
        side,
        text[:MOST_CHARACTERS],
        max(0, len(text) - MOST_CHARACTERS),
        "contradicted" if contradicted else "",
    )


def _rating(quality: str, given: Mapping[str, Any]) -> RatingView:
    said = [value for value in given["values"] if value is not None]
    scale = given["scale"]
    return RatingView(
        quality,
        math.fsum(said) / len(said) if said else None,
        tuple(given["values"]),
        (scale[0], scale[1]) if scale else None,
    )
