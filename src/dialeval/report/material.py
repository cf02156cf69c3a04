"""The material of a report: the numbers of one run, or of several whose samples were joined.

An entry is what the reader sees as one dialogue: a sample of the run, or, of several runs, the
samples that belong together (same id, item or context). Texts stay on the disk until it is known
which entries are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.agreement.arithmetic import Floats, Integers
from dialeval.agreement.findings import changed_most
from dialeval.agreement.joining import (
    Comparability,
    Join,
    Side,
    comparability,
    join,
    raw_name,
    read_side,
    run_names,
)
from dialeval.errors import UsageError, did_you_mean
from dialeval.runs.run import Run, open_run
from dialeval.storage import open_parquet, sample_schema

if TYPE_CHECKING:
    from dialeval.sample import Level


@dataclass(frozen=True)
class Entries:
    """The dialogues of one level. `rows` and each of `scores` are entries x runs; a row of -1 is
    a sample that a run does not have."""

    level: Level
    rows: Integers
    systems: Sequence[str]
    scores: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class ReportData:
    """`metrics` are records of the manifest, those that every run has. `sides` are what is
    compared: the runs, or the systems of the only one.

    Scores of a metric are raw values where the runs have scales of their own, and none where the
    runs measured different things (`grounds`). `joined` still has the latter: a comparison says
    why there is no number.
    """

    runs: tuple[Run, ...]
    names: tuple[str, ...]
    metrics: tuple[Mapping[str, Any], ...]
    whole: tuple[Side, ...]
    """The runs themselves."""
    levels: tuple[Entries, ...]
    sides: tuple[Side, ...]
    joined: Join | None
    why_not_joined: str
    grounds: Comparability

    @property
    def labels(self) -> list[str]:
        return [metric["label"] for metric in self.metrics]

    @property
    def several(self) -> bool:
        return len(self.runs) > 1

    def shown(self, label: str) -> str:
        """Returns how the page calls the scores of a metric."""
        return raw_name(label) if label in self.grounds.raw else label


def open_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Runs by their directories."""
    if not paths:
        raise UsageError("name a run: dialeval report RUN -o report.html")
    return [open_run(path) for path in paths]


def gather(runs: Sequence[Run], wanted: Sequence[str] = ()) -> ReportData:
    """Reads everything but the texts."""
    names = run_names(runs)
    metrics = _common_metrics(runs, names, wanted)
    labels = [metric["label"] for metric in metrics]
    read = [read_side(name, run) for name, run in zip(names, runs, strict=True)]
    shared = comparability(read, labels)
    whole = tuple(side.on_raw(shared.raw) for side in read)
    systems = list(dict.fromkeys(whole[0].systems))
    sides = whole if len(runs) > 1 else tuple(whole[0].of_systems(one, [one]) for one in systems)
    joined, why = None, ""
    if len(sides) > 1:
        try:
            joined = join(sides)
        except UsageError as error:
            if len(runs) > 1:
                raise
            why = str(error)
    whole, sides = (tuple(_without(side, shared.none) for side in own) for own in (whole, sides))
    if len(runs) > 1 and joined:
        levels = _joined_entries(joined, labels, shared.none)
    else:
        levels = _own_entries(whole[0], labels)
    return ReportData(
        tuple(runs), tuple(names), tuple(metrics), whole, tuple(levels), sides, joined, why, shared
    )


def _without(side: Side, labels: Collection[str]) -> Side:
    """Returns the same samples without scores of some metrics."""
    nothing = np.full(len(side.ids), np.nan)
    return replace(side, scores={**side.scores, **dict.fromkeys(labels, nothing)})


def read_rows(run: Run, rows: Sequence[int], labels: Sequence[str]) -> dict[int, dict[str, Any]]:
    """Returns some rows of a run with the columns of some metrics, by their number."""
    samples = sample_schema().names
    with open_parquet(run.score_files[0]) as file:
        names = file.schema_arrow.names
    columns = [
        name
        for name in names
        if name in samples or any(name == one or name.startswith(f"{one}.") for one in labels)
    ]
    wanted = np.unique(np.asarray(rows, dtype=np.int64))
    found: dict[int, dict[str, Any]] = {}
    first = 0
    for batch in run.batches(columns, size=2048):
        here = wanted[(wanted >= first) & (wanted < first + batch.num_rows)]
        if len(here):
            taken = batch.take(here - first).to_pylist()
            found.update(zip(here.tolist(), taken, strict=True))
        first += batch.num_rows
    return found


def _common_metrics(
    runs: Sequence[Run], names: Sequence[str], wanted: Sequence[str]
) -> list[Mapping[str, Any]]:
    common = [label for label in runs[0].metrics if all(label in run.metrics for run in runs)]
    for label in wanted:
        if label not in common:
            lacking = [
                name for name, run in zip(names, runs, strict=True) if label not in run.metrics
            ]
            raise UsageError(
                f"no metric {label!r} in {', '.join(lacking)}.{did_you_mean(label, common)}"
                f" There are: {', '.join(common) or 'none'}"
            )
    if not common:
        raise UsageError(f"no metric is in every one of the runs {', '.join(names)}")
    return [
        metric for metric in runs[0].manifest["metrics"] if metric["label"] in (wanted or common)
    ]


def _own_entries(side: Side, labels: Sequence[str]) -> Iterator[Entries]:
    """Each sample of the only run is an entry."""
    levels = np.array(side.levels)
    for level in dict.fromkeys(side.levels):
        rows = np.flatnonzero(levels == level)
        yield Entries(
            level,
            rows[:, np.newaxis],
            [side.systems[row] for row in rows.tolist()],
            {label: side.scores[label][rows][:, np.newaxis] for label in labels},
        )


def _joined_entries(
    joined: Join, labels: Sequence[str], without: Collection[str]
) -> Iterator[Entries]:
    """Samples that belong together are one entry; of several of one run, the first is shown."""
    for level in joined.levels:
        rows = np.full((level.n_rows, len(level.sides)), -1, dtype=np.int64)
        for number in range(len(level.sides)):
            # Backwards, so that the first sample of a row is written last and stays.
            rows[level.rows[number][::-1], number] = level.places[number][::-1]
        first = (rows >= 0).argmax(axis=1)
        systems = [
            level.sides[side].systems[row]
            for side, row in zip(
                first.tolist(), rows[np.arange(len(rows)), first].tolist(), strict=True
            )
        ]
        scores = {
            one: np.full(rows.shape, np.nan) if one in without else level.scores(one)
            for one in labels
        }
        yield Entries(level.level, rows, systems, scores)


# The dialogues that a report shows: all of a small run; of a large one the best, the worst, those
# that changed most, and a random part.

SHOWN_EXTREMES = 3
"""Number of entries of each end of each metric, in the section of the best and the worst."""

SHARE_OF_EXTREMES = 0.4
"""Share of a sample; the rest is random, so that it also shows usual dialogues."""


@dataclass(frozen=True)
class Extremes:
    """The ends of one metric: numbers of entries, the most extreme first. Of several runs the ends
    are those of the change from the first run to the run number `run`."""

    level: int
    label: str
    direction: str
    run: int
    best: tuple[int, ...]
    worst: tuple[int, ...]


@dataclass(frozen=True)
class Selection:
    """For each level the numbers of the entries that are shown, in the order of the file.
    `first` are those (level, entry) that matter most, for when there is no room for all."""

    shown: tuple[tuple[int, ...], ...]
    first: tuple[tuple[int, int], ...]
    of: int

    @property
    def size(self) -> int:
        return sum(map(len, self.shown))


def extremes(material: ReportData, count: int) -> list[Extremes]:
    """Returns `count` entries of either end, for each level and metric."""
    found = []
    for number, level in enumerate(material.levels):
        for metric in material.metrics:
            table = level.scores[metric["label"]]
            runs = range(1, table.shape[1]) if material.several else [0]
            for run in runs:
                values = table[:, run] - table[:, 0] if material.several else table[:, 0]
                if material.several:
                    worst, best = changed_most(values, metric["direction"], count)
                else:
                    worst, best = _ends(values, metric["direction"], count)
                if best or worst:
                    found.append(
                        Extremes(
                            number,
                            metric["label"],
                            metric["direction"],
                            run,
                            tuple(best),
                            tuple(worst),
                        )
                    )
    return found


def _ends(values: np.ndarray, direction: str, count: int) -> tuple[list[int], list[int]]:
    """Returns the worst and the best; an entry that is in both, of a short list, is among the
    best."""
    sign = -1.0 if direction == "lower" else 1.0
    there = np.flatnonzero(~np.isnan(values))
    order = there[np.argsort(sign * values[there], kind="stable")].tolist()
    best = order[::-1][:count]
    return [row for row in order[:count] if row not in best], best


def select(material: ReportData, size: int, seed: int) -> Selection:
    """Returns all entries, or `size` of them."""
    levels = material.levels
    total = sum(map(len, levels))
    lists = len(material.metrics) * max(1, len(levels)) * max(1, len(material.runs) - 1)
    deep = max(1, int(SHARE_OF_EXTREMES * min(size, total) / (2 * lists)))
    first = list(dict.fromkeys(_in_turn(extremes(material, deep))))[:size]
    if total <= size:
        everything = tuple(tuple(range(len(level))) for level in levels)
        return Selection(everything, tuple(first), total)
    chosen: list[set[int]] = [set() for _ in levels]
    for number, entry in first:
        chosen[number].add(entry)
    for number, entry in _random(levels, chosen, size - len(first), np.random.default_rng(seed)):
        chosen[number].add(entry)
    return Selection(tuple(tuple(sorted(own)) for own in chosen), tuple(first), total)


def _in_turn(found: Sequence[Extremes]) -> list[tuple[int, int]]:
    """Returns the most extreme of all metrics first, then the second of all, and so on."""
    depth = max((max(len(one.best), len(one.worst)) for one in found), default=0)
    return [
        (one.level, end[place])
        for place in range(depth)
        for one in found
        for end in (one.worst, one.best)
        if place < len(end)
    ]


def _random(
    levels: Sequence[Entries], taken: Sequence[set[int]], count: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    left = [
        (number, entry)
        for number, level in enumerate(levels)
        for entry in range(len(level))
        if entry not in taken[number]
    ]
    places = rng.choice(len(left), size=min(count, len(left)), replace=False)
    return [left[place] for place in places.tolist()]
