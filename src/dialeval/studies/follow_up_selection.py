"""Which follow-ups tell most? FULL's experiment (De Bruyn et al., COLING 2022, section 5.2).

The authors ranked the 63 follow-ups of FED by the absolute correlation of each alone with people,
added the ranks of turns and dialogues, removed close duplicates, kept five, and reported on the
data that they had chosen them on. Here choosing and reporting take a run each:

    candidates = "all.txt"                                   # one follow-up per line
    fit = dialeval.score(dialeval.load("set-a.json"), [f"full:follow_ups={candidates}"])
    report = dialeval.score(dialeval.load("set-b.json"), [f"full:follow_ups={candidates}"])
    ranked = rank_follow_ups(fit, "Overall")
    chosen = select_follow_ups(ranked, 5, closeness([one.text for one in ranked]))
    agreement_of(report, chosen, "Overall")

A run of `full` holds the likelihood of every follow-up as a part, so nothing is asked again.

A follow-up may rank high because people like what it is likely after ("I like you!"). It then
counts with a minus, so that a chosen set always points upwards on the data it was chosen on.

`full.py` has this experiment as a study, reported also where nothing was chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.correlation import spearman
from dialeval.errors import UsageError

if TYPE_CHECKING:
    from dialeval.question import ModelSource
    from dialeval.runs.run import Run
    from dialeval.sample import Level

ENCODER = "minilm-l6"
"""The model whose vectors say which follow-ups mean the same."""

NEAR_DUPLICATE = 0.6
"""Two follow-ups whose vectors have this cosine say the same. The pair that the authors name as
duplicates ("Not really relevant here.", "That's not really relevant here.") has .90; no two of the
five that they kept have more than .47. On their Table 3 every bound from .48 to .67 gives the same
choice."""

LEVELS: tuple[Level, ...] = ("turn", "dialogue")

Closeness = Callable[[str, str], float]
"""How near two follow-ups are in meaning, up to 1."""


@dataclass(frozen=True)
class RankedFollowUp:
    """A follow-up and how well its unlikelihood agrees with people, by level of the samples."""

    text: str
    agreement: Mapping[Level, float | None]
    rank: int
    """Sum of its places over the levels: 2 is best of both turns and dialogues."""

    @property
    def sign(self) -> int:
        """-1 where people rate higher what makes this follow-up likely."""
        return -1 if math.fsum(value or 0.0 for value in self.agreement.values()) < 0 else 1


def rank_follow_ups(run: Run, quality: str, among: Sequence[str] = ()) -> list[RankedFollowUp]:
    """Returns the follow-ups of a run (or those `among` them), best first.

    A level counts where at least three samples of it have ratings.
    """
    texts = list(among) or _follow_ups(run)
    rows = _rows(run, texts, quality)
    agreement: dict[str, dict[Level, float | None]] = {text: {} for text in texts}
    for level in LEVELS:
        ratings = [rating for found, rating, _ in rows if found == level]
        if sum(rating is not None for rating in ratings) < 3:
            continue
        for i, text in enumerate(texts):
            values = [parts[i] for found, _, parts in rows if found == level]
            agreement[text][level] = spearman(values, ratings).value
    if not any(agreement.values()):
        raise UsageError(f"no sample of {run.directory} has a rating of {quality!r}")
    return rank_by_agreement(agreement)


def rank_by_agreement(
    agreement: Mapping[str, Mapping[Level, float | None]],
) -> list[RankedFollowUp]:
    """Best first: by the sum of places over the levels, each by absolute correlation.

    Equal correlations share the better place (1, 2, 2, 4). Of two follow-ups with the same sum the
    one that is better on turns comes first, as in the tables of the paper; FED has three times as
    many turns as dialogues, so that is also the better estimate.
    """
    sizes = {
        text: tuple(_size(found.get(level)) for level in LEVELS)
        for text, found in agreement.items()
    }
    ranked = [
        RankedFollowUp(text, found, sum(_places(sizes, text))) for text, found in agreement.items()
    ]
    return sorted(ranked, key=lambda one: (one.rank, *(-size for size in sizes[one.text])))


def closeness(texts: Iterable[str], source: ModelSource | None = None) -> Closeness:
    """Cosines between the vectors of these texts, by the embedded sentence encoder."""
    import numpy as np

    from dialeval.models.source import Models
    from dialeval.question import Embed

    distinct = list(dict.fromkeys(texts))
    model = (source or Models()).load(ENCODER)
    answers = dict(model.answer([Embed(ENCODER, text) for text in distinct]))
    vectors = np.array([answers[i] for i in range(len(distinct))], dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = dict(zip(distinct, vectors, strict=True))
    return lambda one, other: float(found[one] @ found[other])


def select_follow_ups(
    ranked: Sequence[RankedFollowUp], k: int, closeness: Closeness, near: float = NEAR_DUPLICATE
) -> dict[str, int]:
    """Returns the k best that are not near-duplicates of a better one, each with its sign."""
    chosen: dict[str, int] = {}
    for candidate in ranked:
        if len(chosen) == k:
            break
        if all(closeness(candidate.text, other) < near for other in chosen):
            chosen[candidate.text] = candidate.sign
    return chosen


def agreement_of(run: Run, follow_ups: Mapping[str, int], quality: str) -> dict[Level, Coefficient]:
    """Returns how well FULL with these follow-ups alone, each with its sign, agrees with people."""
    if unknown := set(follow_ups) - set(_follow_ups(run)):
        raise UsageError(f"the run {run.directory} did not ask about {sorted(unknown)[0]!r}")
    rows = _rows(run, list(follow_ups), quality)
    signs = list(follow_ups.values())
    found: dict[Level, Coefficient] = {}
    for level in dict.fromkeys(row[0] for row in rows):
        of_level = [(rating, parts) for found_level, rating, parts in rows if found_level == level]
        totals = [
            None
            if None in parts
            else math.fsum(sign * (part or 0.0) for sign, part in zip(signs, parts, strict=True))
            for _, parts in of_level
        ]
        found[level] = spearman(totals, [rating for rating, _ in of_level])
    return found


def _size(value: float | None) -> float:
    """Returns the key of an order in which undefined correlations come last."""
    return -1.0 if value is None else abs(value)


def _places(sizes: Mapping[str, Sequence[float]], text: str) -> list[int]:
    """Its place on each level, from 1: one more than the number of follow-ups that are better."""
    return [
        1 + sum(others[level] > own for others in sizes.values())
        for level, own in enumerate(sizes[text])
    ]


def _full_label(run: Run) -> str:
    labels = [metric["label"] for metric in run.manifest["metrics"] if metric["name"] == "full"]
    if len(labels) != 1:
        raise UsageError(f"the run {run.directory} must hold the metric 'full' once")
    return str(labels[0])


def _follow_ups(run: Run) -> list[str]:
    label = _full_label(run)
    (metric,) = [metric for metric in run.manifest["metrics"] if metric["label"] == label]
    return [part["name"] for part in metric["parts"]]


def _rows(
    run: Run, texts: Sequence[str], quality: str
) -> list[tuple[Level, float | None, list[float | None]]]:
    """Level, mean rating and the value of each follow-up, for every sample."""
    label = _full_label(run)
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
