"""Which follow-ups tell most? FULL's experiment (De Bruyn et al., COLING 2022, section 5.2).

The authors ranked the 63 follow-ups of FED by how well the likelihood of each alone agrees with
people, dropped near-duplicates, kept five, and reported on the data that they had chosen them on.
Here choosing and reporting take a run each:

    candidates = "all.txt"                                   # one follow-up per line
    fit = dialeval.score(dialeval.load("set-a.json"), [f"full:follow_ups={candidates}"])
    report = dialeval.score(dialeval.load("set-b.json"), [f"full:follow_ups={candidates}"])
    chosen = select_follow_ups(rank_follow_ups(fit, "Overall"), k=5)
    agreement_of(report, chosen, "Overall")

A run of `full` holds the likelihood of every follow-up as a part, so nothing is asked again.

`full_follow_ups.py` is this experiment as a study, reported also where nothing was chosen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialeval.agreement.correlation import Correlation, spearman
from dialeval.errors import UsageError

if TYPE_CHECKING:
    from dialeval.run import Run
    from dialeval.sample import Level

NEAR_DUPLICATE = 0.65
"""Two follow-ups that share this part of their words say the same. The authors dropped "That's not
really relevant here." beside "Not really relevant here." (they share 4 of 6 words) and kept "You're
really boring." beside "You're really confusing." (3 of 5)."""


@dataclass(frozen=True)
class RankedFollowUp:
    """A follow-up and how well its unlikelihood agrees with people, by level of the samples."""

    text: str
    agreement: dict[Level, Correlation]
    rank: float
    """Sum of its ranks over the levels: 2.0 is best of both turns and dialogues."""


def rank_follow_ups(run: Run, quality: str) -> list[RankedFollowUp]:
    """Best first. Levels without ratings, or with an undefined correlation, do not count."""
    label = _full_label(run)
    texts = _follow_ups(run, label)
    rows = _rows(run, label, texts, quality)
    agreement: dict[str, dict[Level, Correlation]] = {text: {} for text in texts}
    ranks = dict.fromkeys(texts, 0.0)
    levels: tuple[Level, ...] = ("turn", "dialogue")
    for level in levels:
        ratings = [rating for found, rating, _ in rows if found == level]
        if sum(rating is not None for rating in ratings) < 3:
            continue
        for i, text in enumerate(texts):
            values = [parts[i] for found, _, parts in rows if found == level]
            agreement[text][level] = spearman(values, ratings)
        best_first = sorted(texts, key=lambda text: -_value(agreement[text][level]))
        for place, text in enumerate(best_first, start=1):
            ranks[text] += place
    if not any(agreement.values()):
        raise UsageError(f"no sample of {run.directory} has a rating of {quality!r}")
    found_ranks = [RankedFollowUp(text, agreement[text], ranks[text]) for text in texts]
    return sorted(found_ranks, key=lambda ranked: ranked.rank)


def select_follow_ups(
    ranked: Sequence[RankedFollowUp], k: int, near: float = NEAR_DUPLICATE
) -> tuple[str, ...]:
    """The k best that are not near-duplicates of a better one."""
    chosen: list[str] = []
    for candidate in ranked:
        if len(chosen) == k:
            break
        if all(similarity(candidate.text, other) < near for other in chosen):
            chosen.append(candidate.text)
    return tuple(chosen)


def agreement_of(run: Run, follow_ups: Sequence[str], quality: str) -> dict[Level, Correlation]:
    """How well FULL with these follow-ups alone agrees with people on a run."""
    label = _full_label(run)
    if unknown := set(follow_ups) - set(_follow_ups(run, label)):
        raise UsageError(f"the run {run.directory} did not ask about {sorted(unknown)[0]!r}")
    rows = _rows(run, label, follow_ups, quality)
    found: dict[Level, Correlation] = {}
    for level in dict.fromkeys(row[0] for row in rows):
        of_level = [(rating, parts) for found_level, rating, parts in rows if found_level == level]
        totals = [
            None if None in parts else math.fsum(part for part in parts if part is not None)
            for _, parts in of_level
        ]
        found[level] = spearman(totals, [rating for rating, _ in of_level])
    return found


def similarity(one: str, other: str) -> float:
    """Share of the words that two texts have in common (Jaccard)."""
    first, second = ({*re.findall(r"\w+", text.lower())} for text in (one, other))
    return len(first & second) / max(1, len(first | second))


def _value(correlation: Correlation) -> float:
    return -math.inf if correlation.value is None else correlation.value


def _full_label(run: Run) -> str:
    labels = [metric["label"] for metric in run.manifest["metrics"] if metric["name"] == "full"]
    if len(labels) != 1:
        raise UsageError(f"the run {run.directory} must hold the metric 'full' once")
    return str(labels[0])


def _follow_ups(run: Run, label: str) -> list[str]:
    (metric,) = [metric for metric in run.manifest["metrics"] if metric["label"] == label]
    return [part["name"] for part in metric["parts"]]


def _rows(
    run: Run, label: str, texts: Sequence[str], quality: str
) -> list[tuple[Level, float | None, list[float | None]]]:
    """Level, mean rating and the value of each follow-up, for every sample."""
    columns = [f"{label}.{text}" for text in texts]
    rows: list[tuple[Level, float | None, list[float | None]]] = []
    for batch in run.batches(["response", "ratings", *columns]):
        for row in batch.to_pylist():
            values = dict(row["ratings"]).get(quality, _SILENCE)["values"]
            given = [value for value in values if value is not None]
            rating = math.fsum(given) / len(given) if given else None
            level: Level = "dialogue" if row["response"] is None else "turn"
            rows.append((level, rating, [row[column] for column in columns]))
    return rows


_SILENCE: dict[str, list[float]] = {"values": []}
