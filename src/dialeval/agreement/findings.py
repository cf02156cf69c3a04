"""The findings of a comparison: the row of each metric, the ranking of the sides, the samples that
changed most, what people would prefer, and sentences that need no statistics to read.

A preference is the verdict of `judge`: which side people would prefer, by how much, and how sure
that is.

    d = mean of the differences of the rows that both sides have
    P(people prefer the first) = Phi(d / sqrt(s^2 + doubt^2)),    s: standard error of d over rows

s shrinks with the number of rows. `doubt` does not: it is how far the judged difference of two
systems lay from that of people's mean ratings on rated sets that the judge had not seen
(`training/judge_ratings.py`). So a thousand answers do not make a small difference sure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.arithmetic import Floats, Integers
from dialeval.agreement.joining import Joined, Side, raw_name
from dialeval.agreement.significance import Placed, draw_lines
from dialeval.sample import Level
from dialeval.scores import Signature

if TYPE_CHECKING:
    from dialeval.agreement.comparison import Comparison
    from dialeval.metric import Direction
    from dialeval.sample import Sample


Outcome = Literal["better", "worse", "differs", "no difference shown", "not comparable", "untested"]


@dataclass(frozen=True)
class Compared:
    """One metric on two sides. `difference` is second - first; `n` rows have both scores.

    `outcome` is that of the second side, after the correction; it is `differs` if the metric has no
    better direction.
    """

    level: Level
    metric: str
    direction: Direction
    first: str
    second: str
    mean_first: float | None = None
    mean_second: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    effect: float | None = None
    p: float | None = None
    p_holm: float | None = None
    n: int = 0
    n_missing: int = 0
    outcome: Outcome = "untested"
    reason: str = ""
    raw: bool = False
    """Whether raw values were compared, without scales (`joining.py`)."""

    @property
    def name(self) -> str:
        return raw_name(self.metric) if self.raw else self.metric


@dataclass(frozen=True)
class SideRanking:
    """The sides in order on one metric, best first (highest first if there is no direction)."""

    level: Level
    metric: str
    direction: Direction
    sides: tuple[Placed, ...]
    raw: bool = False

    @property
    def name(self) -> str:
        return raw_name(self.metric) if self.raw else self.metric


def outcome_of(
    difference: float | None,
    p_holm: float | None,
    direction: Direction,
    alpha: float,
) -> Outcome:
    """Returns the outcome of the second side; `difference` is second - first."""
    if difference is None or p_holm is None:
        return "untested"
    if p_holm > alpha:
        return "no difference shown"
    if direction == "neither":
        return "differs"
    return "better" if (difference > 0) == (direction == "higher") else "worse"


def rank_sides(
    levels: Sequence[Joined], found: Sequence[Compared], alpha: float
) -> list[SideRanking]:
    """Ranks the sides on each comparable metric, in significance clusters.

    Means are those of the rows that every side scored: a side with easier rows than the others
    would come first. Without such rows there is no ranking.
    """
    placed = []
    for level in levels:
        here = [one for one in found if one.level == level.level]
        for label in dict.fromkeys(one.metric for one in here):
            pairs = [one for one in here if one.metric == label]
            shared = np.flatnonzero(~np.isnan(level.scores(label)).any(axis=1))
            if shared.size and all(one.outcome != "not comparable" for one in pairs):
                placed.append(_rank_sides(level, label, shared, pairs, alpha))
    return placed


def _rank_sides(
    level: Joined,
    label: str,
    shared: Integers,
    pairs: Sequence[Compared],
    alpha: float,
) -> SideRanking:
    table, direction = level.scores(label)[shared], pairs[0].direction
    sign = -1.0 if direction == "lower" else 1.0
    means = {
        side.name: float(mean)
        for side, mean in zip(level.sides, table.mean(axis=0).tolist(), strict=True)
    }
    order = sorted(means, key=lambda name: (-sign * means[name], name))
    better = np.zeros((len(order), len(order)), dtype=bool)
    for one in pairs:
        if one.difference is None or one.p_holm is None or one.p_holm > alpha:
            continue
        ahead = one.second if sign * one.difference > 0 else one.first
        behind = one.first if ahead == one.second else one.second
        better[order.index(ahead), order.index(behind)] = True
    placed = [
        Placed(name, cluster, means[name], len(table))
        for name, cluster in zip(order, draw_lines(better), strict=True)
    ]
    return SideRanking(level.level, label, direction, tuple(placed), pairs[0].raw)


@dataclass(frozen=True)
class Change:
    """A sample that changed: its context, and the answer of each side.

    `ids` and `responses` are those of the first sample of each side.
    """

    level: Level
    metric: str
    kind: Literal["worse", "better", "less", "more"]
    difference: float
    scores: tuple[float, float]
    ids: tuple[str, str]
    context: tuple[str, ...]
    responses: tuple[str, str]


def largest_changes(level: Joined, metric: str, direction: Direction, count: int) -> list[Change]:
    """Returns the rows where the second side lost most, then those where it gained most.

    If the metric has no better direction, they are the rows with less and with more of it.
    """
    if not count:
        return []
    table = level.scores(metric)
    difference = table[:, 1] - table[:, 0]
    losses, gains = changed_most(difference, direction, count)
    texts = [_samples(side, level, i, [*losses, *gains]) for i, side in enumerate(level.sides)]
    found = []
    for row in [*losses, *gains]:
        lost = row in losses
        first, second = (texts[i][row] for i in range(2))
        kind: Literal["worse", "better", "less", "more"]
        if direction == "neither":
            kind = "less" if lost else "more"
        else:
            kind = "worse" if lost else "better"
        found.append(
            Change(
                level.level,
                metric,
                kind,
                float(difference[row]),
                (float(table[row, 0]), float(table[row, 1])),
                (first.id, second.id),
                tuple(turn.text for turn in second.context),
                (_said(first), _said(second)),
            )
        )
    return found


def changed_most(
    difference: Floats, direction: Direction, count: int
) -> tuple[list[int], list[int]]:
    """Returns the rows that lost most and those that gained most, largest change first."""
    sign = -1.0 if direction == "lower" else 1.0
    there = np.flatnonzero(~np.isnan(difference) & (difference != 0))
    order = there[np.argsort(sign * difference[there], kind="stable")]
    losses = [int(row) for row in order[:count] if sign * difference[row] < 0]
    gains = [int(row) for row in order[::-1][:count] if sign * difference[row] > 0]
    return losses, gains


def _samples(side: Side, level: Joined, number: int, rows: Sequence[int]) -> dict[int, Sample]:
    """Row -> the first sample of the side in it, read from the run."""
    wanted = {level.first_id(number, row): row for row in rows}
    return {wanted[one.id]: one for one in side.run.samples() if one.id in wanted}


def _said(sample: Sample) -> str:
    """Returns the response, or the last turn of a dialogue that is judged as a whole."""
    turns = sample.turns
    return turns[-1].text if turns else ""


def verdict(comparison: Comparison) -> list[str]:
    """States, for each pair of sides, which is better on which metric; then the other metrics."""
    lines = []
    several = len({row.level for row in comparison.rows}) > 1
    pairs = dict.fromkeys((row.first, row.second) for row in comparison.rows)
    for first, second in pairs:
        rows = [row for row in comparison.rows if (row.first, row.second) == (first, second)]
        lines += _of_pair(first, second, rows, several)
    return lines


def _of_pair(first: str, second: str, rows: Sequence[Compared], several: bool) -> list[str]:
    def name(row: Compared) -> str:
        return f"{row.name} ({row.level}s)" if several else row.name

    sentences = {
        "better": f"{second} is better than {first} on",
        "worse": f"{first} is better than {second} on",
        "differs": f"{second} differs from {first} on",
    }
    lines = [
        f"{sentence} {name(row)}: {_numbers(row)}"
        for outcome, sentence in sentences.items()
        for row in rows
        if row.outcome == outcome
    ]
    quiet = [name(row) for row in rows if row.outcome == "no difference shown"]
    if quiet:
        lines.append(f"no difference shown between {first} and {second} on {', '.join(quiet)}")
    other = [name(row) for row in rows if row.outcome == "not comparable"]
    if other:
        lines.append(f"not comparable between {first} and {second}: {', '.join(other)}")
    untested = [row for row in rows if row.outcome == "untested"]
    if untested:
        why = "; ".join(f"{name(row)} ({row.reason})" for row in untested)
        lines.append(f"not tested between {first} and {second}: {why}")
    return lines


def _numbers(row: Compared) -> str:
    """`+0.041 [0.02, 0.06], p = .002 after Holm`, for the better side."""
    difference, low, high = row.difference, row.low, row.high
    if difference is None or row.p_holm is None:
        return row.reason
    if row.outcome == "worse":
        difference, low, high = (
            -difference,
            None if high is None else -high,
            None if low is None else -low,
        )
    interval = "" if low is None or high is None else f" [{low:.3g}, {high:.3g}]"
    less = ", lower is better" if row.direction == "lower" else ""
    return f"{difference:+.3g}{interval}, {format_p(row.p_holm)} after Holm{less}"


def format_p(p: float) -> str:
    """Formats p as journals do: `p = .002`, `p < .001`."""
    if p < 0.001:
        return "p < .001"
    return "p = 1" if p > 0.9995 else f"p = {p:.3f}".replace("0.", ".")


HARDLY = 0.6
"""A preference that is less probable is none."""

DECIDING = 3
"""Answers that are shown for a preference."""

INTERVAL = 1.645
"""Standard errors on either side of the difference: nine of ten."""


@dataclass(frozen=True)
class PreferredSide:
    """Two sides, the preferred one first. `deciding` are the rows that speak most for it."""

    level: Level
    metric: str
    first: str
    second: str
    mean_first: float
    mean_second: float
    difference: float
    low: float
    high: float
    probability: float
    n: int
    deciding: tuple[Change, ...]

    def sentence(self) -> str:
        means = f"{self.mean_first:.1f} against {self.mean_second:.1f} of 5"
        interval = f"{self.difference:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"
        rows = f"{self.n:,} {'dialogues' if self.level == 'dialogue' else 'answers'}"
        if self.probability < HARDLY:
            return f"People would hardly prefer {self.first} or {self.second}: {means}, {rows}."
        sure = math.floor(100 * min(self.probability, 0.99))
        return (
            f"People would prefer {self.first} to {self.second}: {means}, {interval}, {rows};"
            f" {sure} % sure."
        )


def preferences(levels: Sequence[Joined]) -> list[PreferredSide]:
    """Compares, by level and judge, each side against the next one in the order of their means."""
    found = []
    for level in levels:
        for label in _judges(level.sides):
            means = [float(column[~np.isnan(column)].mean()) for column in level.scores(label).T]
            order = sorted(range(len(means)), key=lambda place: -means[place])
            found += [_preference(level, label, pair) for pair in pairwise(order)]
    return [one for one in found if one is not None]


def _judges(sides: Sequence[Side]) -> list[str]:
    """Labels of the judge that all sides share, rated in the same way."""
    records = [{m["label"]: m for m in side.run.manifest["metrics"]} for side in sides]
    return [
        label
        for label, metric in records[0].items()
        if metric["name"] == "judge"
        and all(label in other and _short(other[label]) == _short(metric) for other in records)
    ]


def _preference(level: Joined, label: str, pair: tuple[int, int]) -> PreferredSide | None:
    """None where fewer than two rows have both."""
    sides = tuple(level.sides[place] for place in pair)
    table = level.scores(label)[:, list(pair)]
    there = ~np.isnan(table).any(axis=1)
    n = int(there.sum())
    doubts = [doubt for side in sides if (doubt := _doubt(side, label)) is not None]
    if n < 2 or not doubts:
        return None
    if table[there, 0].mean() < table[there, 1].mean():  # other rows than those of all the means
        return _preference(level, label, (pair[1], pair[0]))
    differences = table[there, 0] - table[there, 1]
    difference = float(differences.mean())
    error = math.sqrt(float(differences.var(ddof=1)) / n + max(doubts) ** 2)
    joined = Joined(
        level.level,
        sides,
        level.n_rows,
        tuple(level.rows[place] for place in pair),
        tuple(level.places[place] for place in pair),
    )
    changes = largest_changes(joined, label, "higher", DECIDING)
    return PreferredSide(
        level.level,
        label,
        sides[0].name,
        sides[1].name,
        float(table[there, 0].mean()),
        float(table[there, 1].mean()),
        difference,
        difference - INTERVAL * error,
        difference + INTERVAL * error,
        0.5 * (1.0 + math.erf(difference / error / math.sqrt(2.0))),
        n,
        # The losses of the second side are shown as gains of the first, like the mean difference.
        tuple(
            replace(change, kind="better", difference=-change.difference)
            for change in changes
            if change.kind == "worse"
        ),
    )


def _short(metric: Mapping[str, Any]) -> str:
    """Without versions of dialeval and libraries: what decides a score has fields of its own."""
    return Signature.parse(metric["signature"]).short()


def _doubt(side: Side, label: str) -> float | None:
    """Returns the doubt that the judge gave with each rating; it is the same for all."""
    for system in side.run.manifest["systems"]:
        doubt = (system["scores"][label].get("parts") or {}).get("doubt")
        if doubt is not None:
            return float(doubt)
    return None
