"""What stands behind a score, from the parts that a run keeps with it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dialeval.metrics.ngram_entropy import count_ngrams

SHADES = (2.0, 4.0, 6.0, 8.0, 11.0)
"""Nats of surprise from which a word is shaded one step more: 2 is one chance in 7, 4 in 55, 6 in
400, 8 in 3000, 11 in 60,000."""

MOST_NGRAMS, MOST_WORDS = 12, 400


@dataclass(frozen=True)
class Word:
    """A piece of the response and its log-probability, None where it has none (blanks, or what
    nothing predicts). `shade` goes from 0, expected, to 5."""

    text: str
    log_prob: float | None = None
    shade: int = 0


@dataclass(frozen=True)
class Bar:
    """A number with a bar from `start` over `width`, in whole percent of the room: the style sheet
    has a class for each, so that no page needs inline styles."""

    name: str
    value: float
    start: int
    width: int
    detail: str = ""


@dataclass(frozen=True)
class Pair:
    """An earlier turn and how likely the response contradicts it; `number` counts from 1."""

    number: int
    text: str
    against: str
    probability: float


@dataclass(frozen=True)
class NGram:
    text: str
    count: int


def words(response: str, parts: Mapping[str, Any]) -> tuple[Word, ...]:
    """Tokens put together to words: the log-probability of a word is the sum of those of its
    tokens."""
    if not {"log_probs", "starts", "ends"} <= parts.keys():
        return ()
    values = _by_character(response, parts)
    found: list[Word] = []
    for match in re.finditer(r"\s+|\S+", response):
        if len(found) >= MOST_WORDS:
            found.append(Word(f" … {len(response) - match.start():,} more characters"))
            break
        own = [values[i] for i in range(*match.span()) if i in values]
        text = match.group()
        if text.isspace() or not own:
            found.append(Word(text))
        else:
            total = math.fsum(own)
            found.append(Word(text, total, shade_of(total)))
    return tuple(found)


def _by_character(response: str, parts: Mapping[str, Any]) -> dict[int, float]:
    """Where a token's log-probability belongs: its first character that is not blank. A token
    often begins with the blank before its word."""
    found: dict[int, float] = {}
    for value, start, end in zip(parts["log_probs"], parts["starts"], parts["ends"], strict=True):
        if value is None or math.isnan(value):
            continue
        span = range(max(0, int(start)), min(len(response), int(end)))
        place = next((i for i in span if not response[i].isspace()), None)
        if place is not None:
            found[place] = found.get(place, 0.0) + value
    return found


def shade_of(log_prob: float) -> int:
    return sum(-log_prob >= edge for edge in SHADES)


def follow_ups(metric: Mapping[str, Any], parts: Mapping[str, Any]) -> tuple[Bar, ...]:
    """What a user could say next, the likeliest first; the bar is how unlikely it is."""
    names = [part["name"] for part in metric["parts"] if _is_follow_up(part)]
    found = sorted((parts[name], name) for name in names if name in parts)
    return bars([(name, value) for value, name in found])


def _is_follow_up(part: Mapping[str, Any]) -> bool:
    return bool(part["summary"].endswith("as the next turn"))


def pairs(row: Mapping[str, Any], parts: Mapping[str, Any]) -> tuple[Pair, ...]:
    """Earlier turns, or answers to other wordings, the most contradicted first."""
    if not {"contradictions", "turns"} <= parts.keys():
        return ()
    if row["response"] is None:
        said = [variant["response"] for variant in row["variants"]]
        against = said[0] if said else ""
    else:
        said, against = [turn["text"] for turn in row["context"]], row["response"]
    found = [
        Pair(int(place), said[int(place) - 1][:400], against[:400], probability)
        for place, probability in zip(parts["turns"], parts["contradictions"], strict=True)
        if 1 <= int(place) <= len(said)
    ]
    return tuple(sorted(found, key=lambda pair: -pair.probability))


def repeated_ngrams(
    row: Mapping[str, Any], metric: Mapping[str, Any], parts: Mapping[str, Any]
) -> tuple[NGram, ...]:
    """The n-grams that occur more than once, for metrics that count them."""
    options = metric["options"]
    n = options.get("n")
    counted = (f"entropy-{n}" in parts) or (f"distinct-{n}" in parts)
    if not counted and metric["name"] != "marginal-diversity":
        return ()
    answers = [one["response"] for one in row["variants"] or ()] or [row["response"] or ""]
    if options.get("lowercase"):
        answers = [text.lower() for text in answers]
    counts = count_ngrams(answers, n, options.get("mode", "paper"))
    often = sorted((-count, text) for text, count in counts.items() if count > 1)
    return tuple(NGram(text[:80], -count) for count, text in often[:MOST_NGRAMS])


def contributions(metric: Mapping[str, Any], parts: Mapping[str, Any]) -> tuple[Bar, ...]:
    """What each sub-metric adds to a composed score: its own score times its share of the weight,
    the largest first. Those of a sub-metric without a score are shared by the others."""
    weights = {
        part["name"]: part["weight"]
        for part in metric["parts"]
        if "weight" in part and part["name"] in parts
    }
    shared = math.fsum(weights.values()) or 1.0
    added = {name: weight * parts[name] / shared for name, weight in weights.items()}
    order = sorted(added, key=lambda name: -added[name])
    return tuple(
        replace(bar, detail=f"{parts[bar.name]:.2f} × {weights[bar.name] / shared:.2f}")
        for bar in bars([(name, added[name]) for name in order])
    )


def numbers(metric: Mapping[str, Any], parts: Mapping[str, Any]) -> tuple[Bar, ...]:
    """Parts that are single numbers and nothing else."""
    named = [
        (part["name"], parts[part["name"]])
        for part in metric["parts"]
        if not part["many"]
        and not _is_follow_up(part)
        and "weight" not in part
        and not part["name"].startswith("worst")
        and part["name"] in parts
    ]
    return bars(named)


def bars(named: Sequence[tuple[str, float]]) -> tuple[Bar, ...]:
    """On one scale that includes 0."""
    values = [value for _, value in named]
    low, high = min([0.0, *values]), max([0.0, *values])
    room = (high - low) or 1.0
    return tuple(
        Bar(
            name,
            value,
            round(100 * (min(0.0, value) - low) / room),
            round(100 * abs(value) / room),
        )
        for name, value in named
    )
