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
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal

from dialeval.metrics.diversity import count_ngrams

# The reasons for a score, from the parts that a run keeps with it.

SHADES = (2.0, 4.0, 6.0, 8.0, 11.0)
"""Nats of surprise from which a word is shaded one step more: 2 is one chance in 7, 4 in 55, 6 in
400, 8 in 3000, 11 in 60,000."""

MOST_NGRAMS, MOST_WORDS = 12, 400


@dataclass(frozen=True)
class ShadedWord:
    """A piece of the response and its log-probability, None where it has none (blanks, or what
    nothing predicts). `shade` goes from 0, expected, to 5."""

    text: str
    log_prob: float | None = None
    shade: int = 0


@dataclass(frozen=True)
class ScoreBar:
    """A number with a bar from `start` over `width`, in whole percent of the room: the style sheet
    has a class for each, so that no page needs inline styles."""

    name: str
    value: float
    start: int
    width: int
    detail: str = ""


@dataclass(frozen=True)
class ContradictedPair:
    """An earlier turn and how likely the response contradicts it; `number` counts from 1."""

    number: int
    text: str
    against: str
    probability: float


@dataclass(frozen=True)
class NGram:
    """An n-gram of the answers, and how often it occurs."""

    text: str
    count: int


def words(response: str, parts: Mapping[str, Any]) -> tuple[ShadedWord, ...]:
    """Tokens put together to words: the log-probability of a word is the sum of those of its
    tokens."""
    if not {"log_probs", "starts", "ends"} <= parts.keys():
        return ()
    values = _by_character(response, parts)
    found: list[ShadedWord] = []
    for match in re.finditer(r"\s+|\S+", response):
        if len(found) >= MOST_WORDS:
            found.append(ShadedWord(f" … {len(response) - match.start():,} more characters"))
            break
        own = [values[i] for i in range(*match.span()) if i in values]
        text = match.group()
        if text.isspace() or not own:
            found.append(ShadedWord(text))
        else:
            total = math.fsum(own)
            found.append(ShadedWord(text, total, shade_of(total)))
    return tuple(found)


def _by_character(response: str, parts: Mapping[str, Any]) -> dict[int, float]:
    """Returns where a token's log-probability belongs: its first character that is not blank. A
    token often begins with the blank before its word."""
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


def follow_ups(metric: Mapping[str, Any], parts: Mapping[str, Any]) -> tuple[ScoreBar, ...]:
    """Returns what a user could say next, the likeliest first; the bar is how unlikely it is."""
    names = [part["name"] for part in metric["parts"] if _is_follow_up(part)]
    found = sorted((parts[name], name) for name in names if name in parts)
    return bars([(name, value) for value, name in found])


def _is_follow_up(part: Mapping[str, Any]) -> bool:
    return bool(part["summary"].endswith("as the next turn"))


def pairs(row: Mapping[str, Any], parts: Mapping[str, Any]) -> tuple[ContradictedPair, ...]:
    """Earlier turns, or answers to other variants, the most contradicted first."""
    if not {"contradictions", "turns"} <= parts.keys():
        return ()
    if row["response"] is None:
        said = [variant["response"] for variant in row["variants"]]
        against = said[0] if said else ""
    else:
        said, against = [turn["text"] for turn in row["context"]], row["response"]
    found = [
        ContradictedPair(int(place), said[int(place) - 1][:400], against[:400], probability)
        for place, probability in zip(parts["turns"], parts["contradictions"], strict=True)
        if 1 <= int(place) <= len(said)
    ]
    return tuple(sorted(found, key=lambda pair: -pair.probability))


def repeated_ngrams(
    row: Mapping[str, Any], metric: Mapping[str, Any], parts: Mapping[str, Any]
) -> tuple[NGram, ...]:
    """Returns the n-grams that occur more than once, for metrics that count them."""
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


def contributions(metric: Mapping[str, Any], parts: Mapping[str, Any]) -> tuple[ScoreBar, ...]:
    """Returns what each sub-metric adds to a composed score: its own score times its share of the
    weight, the largest first. Those of a sub-metric without a score are shared by the others."""
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


def numbers(metric: Mapping[str, Any], parts: Mapping[str, Any]) -> tuple[ScoreBar, ...]:
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


def bars(named: Sequence[tuple[str, float]]) -> tuple[ScoreBar, ...]:
    """Returns bars on one scale that includes 0."""
    values = [value for _, value in named]
    low, high = min([0.0, *values]), max([0.0, *values])
    room = (high - low) or 1.0
    return tuple(
        ScoreBar(
            name,
            value,
            round(100 * (min(0.0, value) - low) / room),
            round(100 * abs(value) / room),
        )
        for name, value in named
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
    words: tuple[ShadedWord, ...] = ()
    follow_ups: tuple[ScoreBar, ...] = ()
    pairs: tuple[ContradictedPair, ...] = ()
    ngrams: tuple[NGram, ...] = ()
    contributions: tuple[ScoreBar, ...] = ()
    numbers: tuple[ScoreBar, ...] = ()

    @property
    def shows(self) -> bool:
        """Whether there is anything to see besides the number."""
        found = (self.words, self.follow_ups, self.pairs, self.ngrams, self.contributions)
        return any(found) or bool(self.numbers)


@dataclass(frozen=True)
class RatingView:
    """The ratings of one quality; `values` as given, None for no rating."""

    quality: str
    mean: float | None
    values: tuple[float | None, ...]
    scale: tuple[float, float] | None


@dataclass(frozen=True)
class CommentView:
    """The comment of a rater; `rater` is empty if unknown."""

    rater: str
    text: str


@dataclass(frozen=True)
class VariantView:
    """A variant of a probed query, and the answer to it."""

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
    comments: tuple[CommentView, ...]
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
        comments=tuple(
            CommentView(rater or "", text[:MOST_CHARACTERS])
            for _, given in row["ratings"] or ()
            for rater, text in zip_longest(given["raters"] or (), given.get("comments") or ())
            if text
        ),
        snippet=_snippet(last),
    )


def _snippet(text: str) -> str:
    """Returns the beginning, on one line, cut between words where there are any."""
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
    """Returns the place of the turn that the response contradicts, where that is likelier than
    not."""
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
