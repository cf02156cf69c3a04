"""Joins the samples of several runs, and finds the metrics that can be compared.

Samples are joined by the first of these keys that two sides share:

    id        the samples have the same id: one data set, scored twice
    item      the samples answer the same item: several systems on one list of questions
    context   the turns before the answer are the same, whatever the samples are called
    dialogue  the samples come from the same dialogue; only on request. Turns of one dialogue are
              not independent evidence; as one row, with their mean, they do not count as such

Several samples of a side with the same key (two answers to one item) count as one, with the mean of
their scores. If all sides hold the same systems, two or more, samples are joined with those of
their own system. Turns and whole dialogues are never joined with each other.

Scores can be compared if the signatures of the metric agree, apart from the versions of libraries
and of dialeval itself (a changed definition has a new version of the metric). If runs differ only
in a scale that each of them fitted on its own samples, raw values are compared: on such scales a
worse run can have the higher mean, because its scale began lower. If anything else differs, no
number is shown.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dialeval.agreement.arithmetic import Floats, Integers
from dialeval.errors import UsageError, did_you_mean
from dialeval.scores import Signature

if TYPE_CHECKING:
    from dialeval.runs.run import Run
    from dialeval.sample import Level, Sample

JoinBy = Literal["id", "item", "context", "dialogue"]
TRIED: tuple[JoinBy, ...] = ("id", "item", "context")
Rows = Mapping[Hashable, list[list[int]]]
"""Key -> for each side the positions of its samples with this key."""


@dataclass(frozen=True, kw_only=True)
class SampleKeys:
    """The keys to join samples by: one entry per sample in each list."""

    ids: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    contexts: list[bytes] = field(default_factory=list)
    """Digests of the texts; empty if there is no context."""
    dialogues: list[str] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> SampleKeys:
        """Returns the keys of samples. The context of a whole dialogue is what is judged, so no
        key."""
        found = cls()
        for one in samples:
            texts = [turn.text for turn in one.context] if one.response is not None else []
            found.add(one.id, one.item, texts, one.dialogue, one.system, one.level)
        return found

    def add(
        self,
        ident: str,
        item: str,
        context: Sequence[str],
        dialogue: str,
        system: str,
        level: Level,
    ) -> None:
        self.ids.append(ident)
        self.items.append(sys.intern(item))
        self.contexts.append(texts_digest(context) if context else b"")
        self.dialogues.append(sys.intern(dialogue))
        self.systems.append(sys.intern(system))
        self.levels.append(level)

    def keys(self, by: JoinBy, with_system: bool) -> list[Hashable]:
        """Returns the key of each sample; None if it has none."""
        columns: dict[JoinBy, Sequence[Hashable]] = {
            "id": self.ids,
            "item": self.items,
            "context": self.contexts,
            "dialogue": self.dialogues,
        }
        return [
            (level, system if with_system else "", value) if value else None
            for level, system, value in zip(self.levels, self.systems, columns[by], strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Side(SampleKeys):
    """One side of a comparison: a run, or a system of a run."""

    name: str
    run: Run
    scores: Mapping[str, Floats]
    raw: Mapping[str, Floats] = field(default_factory=dict)
    """The values before scaling, of metrics that have one scale for their value."""

    def on_raw(self, labels: Collection[str]) -> Side:
        """Returns the same samples, with the raw values of these metrics in place of the scaled
        ones."""
        return replace(self, scores={**self.scores, **{one: self.raw[one] for one in labels}})

    def of_systems(self, name: str, systems: Sequence[str]) -> Side:
        """Returns the samples of these systems."""
        kept = [place for place, system in enumerate(self.systems) if system in systems]
        names = ("ids", "items", "contexts", "dialogues", "systems", "levels")
        lists: dict[str, Any] = {one: [getattr(self, one)[i] for i in kept] for one in names}
        return replace(
            self,
            name=name,
            scores={label: column[kept] for label, column in self.scores.items()},
            raw={label: column[kept] for label, column in self.raw.items()},
            **lists,
        )


@dataclass(frozen=True)
class Joined:
    """Samples of one level that belong together: those of all sides in the same row.

    For each side, `rows` and `places` run over its samples: the row, and the position in the side.
    """

    level: Level
    sides: tuple[Side, ...]
    n_rows: int
    rows: tuple[Integers, ...]
    places: tuple[Integers, ...]

    def scores(self, metric: str) -> Floats:
        """Returns a matrix of rows x sides, NaN where a side has no score."""
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
        """Returns the id of the first sample that a side has in a row."""
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
    """Number of samples beyond the first of their side and row, whose scores were averaged."""
    other_contexts: int
    """Number of rows joined by id or item whose samples do not share the context."""


def sides_of(runs: Sequence[Run], systems: Sequence[str] = ()) -> tuple[Side, ...]:
    """Returns the runs, or the systems of a single run; only samples of `systems` if some are
    named."""
    check_systems(systems, runs)
    if len(runs) > 1:
        whole = [read_side(name, run) for name, run in zip(run_names(runs), runs, strict=True)]
        return tuple(side.of_systems(side.name, systems) if systems else side for side in whole)
    (run,) = runs
    chosen = list(systems) or run.systems
    if len(chosen) < 2:
        raise UsageError(
            f"{run.directory} holds one system, and there is nothing to compare it with. Name a"
            " second run."
        )
    whole_run = read_side(str(run.directory), run)
    return tuple(whole_run.of_systems(system, [system]) for system in chosen)


def check_systems(systems: Sequence[str], runs: Sequence[Run]) -> None:
    """Raises an error if no run has a sample of one of these systems."""
    known = list(dict.fromkeys(name for run in runs for name in run.systems))
    for system in systems:
        if system not in known:
            raise UsageError(
                f"no system {system!r}.{did_you_mean(system, known)} There are: {', '.join(known)}"
            )


def join(sides: Sequence[Side], by: JoinBy | None = None) -> Join:
    """Joins samples by this key, else by the first key that two sides share."""
    for candidate in [by] if by else TRIED:
        if shared := shared_rows(sides, candidate, have_same_systems(sides)):
            return _joined(sides, candidate, shared)
    names = ", ".join(side.name for side in sides)
    how = f"the same {by}" if by else "the same id, item or context"
    field = by if by in ("id", "dialogue") else "item"
    raise UsageError(
        f"nothing to compare: no sample of {names} has {how} as one of another. Score answers to"
        f" the same questions, and give answers to one question the same {field!r}."
    )


def have_same_systems(sides: Sequence[SampleKeys]) -> bool:
    """Returns whether all sides hold the same systems, two or more."""
    systems = [set(side.systems) for side in sides]
    return len(systems[0]) > 1 and all(one == systems[0] for one in systems)


def shared_rows(sides: Sequence[SampleKeys], by: JoinBy, with_system: bool) -> Rows:
    """Returns the rows that at least two sides have."""
    rows: dict[Hashable, list[list[int]]] = {}
    for number, side in enumerate(sides):
        for place, key in enumerate(side.keys(by, with_system)):
            if key is not None:
                rows.setdefault(key, [[] for _ in sides])[number].append(place)
    return {key: row for key, row in rows.items() if sum(map(bool, row)) > 1}


def _joined(sides: Sequence[Side], by: JoinBy, rows: Rows) -> Join:
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
    """Returns the last part of each directory if that is unique, else the whole path."""
    resolved = [run.directory.resolve() for run in runs]
    for path in resolved:
        if resolved.count(path) > 1:
            raise UsageError(f"{path} is given twice")
    short = [path.name for path in resolved]
    return short if len(set(short)) == len(short) else [str(run.directory) for run in runs]


def read_side(name: str, run: Run) -> Side:
    """Reads all samples of a run, without their texts."""
    found = SampleKeys()
    names = ("id", "item", "context", "dialogue", "system")
    for batch in run.batches([*names, "response"]):
        columns = [batch.column(name).to_pylist() for name in names]
        missing = batch.column("response").is_null().to_pylist()
        for ident, item, context, dialogue, system, no_response in zip(
            *columns, missing, strict=True
        ):
            texts = [turn["text"] for turn in context]
            level: Level = "dialogue" if no_response else "turn"
            found.add(ident, item, texts, dialogue, system, level)
    scores = {label: np.array(run.scores(label), dtype=np.float64) for label in run.metrics}
    raw = {
        metric["label"]: np.array(run.raw_scores(metric["label"]), dtype=np.float64)
        for metric in run.manifest["metrics"]
        if has_one_scale(metric["calibration"])
    }
    return Side(name=name, run=run, scores=scores, raw=raw, **vars(found))


def has_one_scale(calibration: Mapping[str, Any] | None) -> bool:
    """Returns whether one number was scaled, so that the raw value means the same as the scaled
    value. A value that combines several scaled parts means nothing before scaling."""
    return calibration is not None and len(calibration.get("parts", {"": None})) == 1


def texts_digest(texts: Sequence[str]) -> bytes:
    joined = "\x1f".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=12).digest()


@dataclass(frozen=True)
class Comparability:
    """The metrics that cannot be compared by their scores: label -> a sentence that says why.

    raw   the runs have scales of their own, and their raw values can be compared
    none  the runs measured different things, or raw values mean nothing
    """

    raw: Mapping[str, str]
    none: Mapping[str, str]

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.raw.values(), *self.none.values())


def comparability(sides: Sequence[Side], labels: Sequence[str]) -> Comparability:
    """Finds the metrics that cannot be compared by their scores."""
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
    return Comparability(raw, none)


def raw_name(label: str) -> str:
    """Returns the name of the raw values of a metric in tables, as in the columns of a run."""
    return f"{label}.raw"


def differing_fields(signatures: Sequence[Signature]) -> list[str]:
    """Returns the fields that are not the same in all signatures, in their order."""
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
