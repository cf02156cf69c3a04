"""The same question, answered twice: which samples of two runs belong together?

    id        the samples have the same id: one data set, scored twice
    item      the samples answer the same item: rival systems on one list of questions
    context   the turns before the answer are the same, whatever the samples are called
    dialogue  the samples come from the same dialogue; only if asked for. Turns of one dialogue are
              no independent evidence: as one row, with their mean, they are not taken for it

Several samples of a side with the same key (two answers to one item) count as one, with the mean of
their scores. Where all sides hold the same systems, two or more, samples are joined with those of
their own system. Turns and whole dialogues are never joined with each other.

May scores of two runs be compared? Only where nothing that moves a number differs.

The signature of a metric names all of that. Versions of libraries and of dialeval itself are no
obstacle (a changed definition has a new version of the metric); another model, mode, option or
scale is.

Where runs differ in nothing but a scale that each of them fitted on its own samples, the raw values
are compared. (On such scales a worse run can have the higher mean: its scale began lower.) All else
that differs leaves nothing to compare, and no number is shown.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.ranks import Floats, Integers
from dialeval.errors import UsageError, did_you_mean
from dialeval.scores import Signature

if TYPE_CHECKING:
    from dialeval.runs.run import Run
    from dialeval.sample import Level

JoinBy = Literal["id", "item", "context", "dialogue"]
TRIED: tuple[JoinBy, ...] = ("id", "item", "context")


@dataclass(frozen=True)
class Side:
    """What is compared: a run, or a system of a run. One entry per sample in each list."""

    name: str
    run: Run
    ids: Sequence[str]
    items: Sequence[str]
    contexts: Sequence[bytes]
    """Digests: texts stay on the disk."""
    dialogues: Sequence[str]
    systems: Sequence[str]
    levels: Sequence[Level]
    scores: Mapping[str, Floats]
    raw: Mapping[str, Floats] = field(default_factory=dict)
    """Values before they were put on a scale, of metrics that have one scale for their value."""

    def on_raw(self, labels: Collection[str]) -> Side:
        """The same samples, with the raw values of some metrics in place of those on a scale."""
        return replace(self, scores={**self.scores, **{one: self.raw[one] for one in labels}})

    def keys(self, by: JoinBy, with_system: bool) -> list[Hashable]:
        """Of each sample, None where it has none."""
        values: Sequence[Hashable] = {
            "id": self.ids,
            "item": self.items,
            "context": self.contexts,
            "dialogue": self.dialogues,
        }[by]
        return [
            (level, system if with_system else "", value) if value else None
            for level, system, value in zip(self.levels, self.systems, values, strict=True)
        ]


@dataclass(frozen=True)
class Joined:
    """Samples of one level that belong together: those of all sides in the same row.

    For each side, `rows` and `places` run over its samples: the row, and the place in the side.
    """

    level: Level
    sides: tuple[Side, ...]
    n_rows: int
    rows: tuple[Integers, ...]
    places: tuple[Integers, ...]

    def scores(self, metric: str) -> Floats:
        """Rows x sides, NaN where a side has no score."""
        table = np.full((self.n_rows, len(self.sides)), np.nan)
        for number, side in enumerate(self.sides):
            values = side.scores[metric][self.places[number]]
            there = ~np.isnan(values)
            rows = self.rows[number][there]
            counts = np.bincount(rows, minlength=self.n_rows)
            sums = np.bincount(rows, values[there], minlength=self.n_rows)
            np.divide(sums, counts, out=table[:, number], where=counts > 0)
        return table

    def on_raw(self, labels: Collection[str]) -> Joined:
        return replace(self, sides=tuple(side.on_raw(labels) for side in self.sides))

    def first_id(self, side: int, row: int) -> str:
        """The id of the first sample that a side has in a row."""
        place = self.places[side][np.argmax(self.rows[side] == row)]
        return self.sides[side].ids[int(place)]


@dataclass(frozen=True)
class Join:
    """`joined` counts rows that every side has; `left_out` samples that no other side has."""

    by: JoinBy
    levels: tuple[Joined, ...]
    joined: int
    left_out: Mapping[str, int]
    repeated: int
    """Samples beyond the first of their side and row, whose scores were averaged."""
    other_contexts: int
    """Rows joined by id or item whose samples do not share the context."""


def sides_of(runs: Sequence[Run], systems: Sequence[str] = ()) -> tuple[Side, ...]:
    """The runs, or the systems of a single run; only samples of `systems` where some are named."""
    for system in systems:
        known = list(dict.fromkeys(name for run in runs for name in run.systems))
        if system not in known:
            raise UsageError(
                f"no system {system!r}.{did_you_mean(system, known)} There are: {', '.join(known)}"
            )
    if len(runs) > 1:
        whole = [side_of(name, run) for name, run in zip(run_names(runs), runs, strict=True)]
        return tuple(part_of(side, side.name, systems) for side in whole) if systems else (*whole,)
    (run,) = runs
    chosen = list(systems) or run.systems
    if len(chosen) < 2:
        raise UsageError(
            f"{run.directory} holds one system, and there is nothing to compare it with. Name a"
            " second run."
        )
    whole_run = side_of(str(run.directory), run)
    return tuple(part_of(whole_run, system, [system]) for system in chosen)


def join(sides: Sequence[Side], by: JoinBy | None = None) -> Join:
    """Samples that belong together: by the key named, else by the first that two sides share."""
    systems = [set(side.systems) for side in sides]
    with_system = len(systems[0]) > 1 and all(one == systems[0] for one in systems)
    for candidate in [by] if by else TRIED:
        rows: dict[Hashable, list[list[int]]] = {}
        for number, side in enumerate(sides):
            for place, key in enumerate(side.keys(candidate, with_system)):
                if key is not None:
                    rows.setdefault(key, [[] for _ in sides])[number].append(place)
        shared = {key: row for key, row in rows.items() if sum(map(bool, row)) > 1}
        if shared:
            return _joined(sides, candidate, shared)
    names = ", ".join(side.name for side in sides)
    how = f"the same {by}" if by else "the same id, item or context"
    field = by if by in ("id", "dialogue") else "item"
    raise UsageError(
        f"nothing to compare: no sample of {names} has {how} as one of another. Score answers to"
        f" the same questions, and give answers to one question the same {field!r}."
    )


def _joined(sides: Sequence[Side], by: JoinBy, rows: Mapping[Hashable, list[list[int]]]) -> Join:
    by_level: dict[Level, list[list[list[int]]]] = {}
    repeated = other_contexts = 0
    for row in rows.values():
        samples = [
            (side, place) for side, places in zip(sides, row, strict=True) for place in places
        ]
        side, place = samples[0]
        by_level.setdefault(side.levels[place], []).append(row)
        repeated += len(samples) - sum(map(bool, row))
        other_contexts += len({side.contexts[place] for side, place in samples}) > 1
    return Join(
        by,
        tuple(_level(level, sides, members) for level, members in by_level.items()),
        sum(all(row) for row in rows.values()),
        {
            side.name: len(side.ids) - sum(len(row[number]) for row in rows.values())
            for number, side in enumerate(sides)
        },
        repeated,
        other_contexts,
    )


def _level(level: Level, sides: Sequence[Side], members: Sequence[list[list[int]]]) -> Joined:
    rows, places = [], []
    for number in range(len(sides)):
        own = [row[number] for row in members]
        rows.append(np.repeat(np.arange(len(own)), [len(here) for here in own]))
        places.append(np.array([place for here in own for place in here], dtype=np.int64))
    return Joined(level, tuple(sides), len(members), tuple(rows), tuple(places))


def run_names(runs: Sequence[Run]) -> list[str]:
    """The last part of each directory where that tells them apart, else all of it."""
    resolved = [run.directory.resolve() for run in runs]
    for path in resolved:
        if resolved.count(path) > 1:
            raise UsageError(f"{path} is given twice: a run cannot differ from itself")
    short = [path.name for path in resolved]
    return short if len(set(short)) == len(short) else [str(run.directory) for run in runs]


def side_of(name: str, run: Run) -> Side:
    """All samples of a run."""
    ids: list[str] = []
    items: list[str] = []
    contexts: list[bytes] = []
    dialogues: list[str] = []
    spoken_by: list[str] = []
    levels: list[Level] = []
    names = ("id", "item", "dialogue", "system", "context")
    for batch in run.batches([*names, "response"]):
        columns = [batch.column(name).to_pylist() for name in names]
        missing = batch.column("response").is_null().to_pylist()
        for ident, item, dialogue, system, context, no_response in zip(
            *columns, missing, strict=True
        ):
            ids.append(ident)
            items.append(sys.intern(item))
            dialogues.append(sys.intern(dialogue))
            spoken_by.append(sys.intern(system))
            contexts.append(_digest([turn["text"] for turn in context]))
            levels.append("dialogue" if no_response else "turn")
    scores = {label: np.array(run.scores(label), dtype=np.float64) for label in run.metrics}
    raw = {
        metric["label"]: np.array(run.raw_scores(metric["label"]), dtype=np.float64)
        for metric in run.manifest["metrics"]
        if has_one_scale(metric["calibration"])
    }
    return Side(name, run, ids, items, contexts, dialogues, spoken_by, levels, scores, raw)


def has_one_scale(calibration: Mapping[str, Any] | None) -> bool:
    """Whether the raw value of a metric says the same as the value on its scale: one number was
    scaled. A value that is combined of several scaled parts means nothing before it is scaled."""
    return calibration is not None and len(calibration.get("parts", {"": None})) == 1


def part_of(side: Side, name: str, systems: Sequence[str]) -> Side:
    """The samples of some systems."""
    kept = [place for place, system in enumerate(side.systems) if system in systems]
    return Side(
        name,
        side.run,
        [side.ids[place] for place in kept],
        [side.items[place] for place in kept],
        [side.contexts[place] for place in kept],
        [side.dialogues[place] for place in kept],
        [side.systems[place] for place in kept],
        [side.levels[place] for place in kept],
        {label: column[kept] for label, column in side.scores.items()},
        {label: column[kept] for label, column in side.raw.items()},
    )


def _digest(texts: Sequence[str]) -> bytes:
    """Empty where there is no context: having none in common joins nothing."""
    if not texts:
        return b""
    joined = "\x1f".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=12).digest()


@dataclass(frozen=True)
class Grounds:
    """What metrics can be compared by. Both map a label to a sentence that says why.

    raw   the runs have scales of their own: their raw values can be compared
    none  the runs measured different things, or raw values mean nothing
    """

    raw: Mapping[str, str]
    none: Mapping[str, str]

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.raw.values(), *self.none.values())


def grounds(sides: Sequence[Side], labels: Sequence[str]) -> Grounds:
    """Of the metrics that cannot be compared by their scores."""
    raw, none = {}, {}
    for label in labels:
        signatures = {
            side.name: Signature.parse(side.run.signatures[label].short()) for side in sides
        }
        different = differing_fields(list(signatures.values()))
        if not different:
            continue
        if different != ["calibration"]:
            none[label] = _explain(label, signatures, different)
        elif all(label in side.raw for side in sides):
            raw[label] = (
                f"{label}: the runs have scales of their own, so raw values are compared"
                f" ({raw_name(label)}). {_same_scale(sides)} to compare on one scale"
            )
        else:
            none[label] = (
                f"{label}: not comparable, the runs have different scales. {_same_scale(sides)}"
            )
    return Grounds(raw, none)


def raw_name(label: str) -> str:
    """How tables call the raw values of a metric: as the column of a run that holds them."""
    return f"{label}.raw"


def differing_fields(signatures: Sequence[Signature]) -> list[str]:
    """The fields that are not the same in all signatures, in their order."""
    tables = [
        {"metric": one.name, "version": str(one.version), **dict(one.fields)} for one in signatures
    ]
    names = dict.fromkeys(name for table in tables for name in table)
    return [name for name in names if len({table.get(name) for table in tables}) > 1]


def _same_scale(sides: Sequence[Side]) -> str:
    first, *others = sides
    return (
        f"Score {' and '.join(side.name for side in others)} again with --calibration"
        f" {first.run.directory}"
    )


def _explain(label: str, signatures: dict[str, Signature], different: Sequence[str]) -> str:
    shown = "; ".join(
        f"{field} is "
        + ", ".join(
            f"{_value(signature, field)} in {name}" for name, signature in signatures.items()
        )
        for field in different
    )
    return f"{label}: not comparable, the runs measured it differently: {shown}"


def _value(signature: Signature, field: str) -> str:
    own = {"metric": signature.name, "version": f"v{signature.version}"}
    return {**own, **dict(signature.fields)}.get(field, "(none)")
