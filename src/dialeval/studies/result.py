"""Runs a study: published | ours, and whether what must match does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.progress import Progress, silent
from dialeval.studies.study import (
    Measured,
    Published,
    Setting,
    Study,
    Table,
    find_data,
    find_missing,
)
from dialeval.version import __version__

if TYPE_CHECKING:
    from dialeval.pictures.drawing import Drawing
    from dialeval.question import ModelSource


@dataclass(frozen=True)
class Row:
    """Published beside ours. Either may be absent.

    wanted  False: whoever runs the study chose other metrics, so that ours may be absent
    """

    what: str
    published: Published | None
    ours: Measured | None
    wanted: bool = True

    @property
    def must_match(self) -> bool:
        if self.published is None or not self.published.must_match:
            return False
        return self.wanted if self.ours is None else self.ours.comparable

    @property
    def value(self) -> float | None:
        return self.ours.value if self.ours else None

    @property
    def difference(self) -> float | None:
        if self.published is None or self.value is None:
            return None
        return self.value - self.published.value

    @property
    def fails(self) -> bool:
        """A number that must match does not, or does not exist."""
        if self.published is None or not self.must_match:
            return False
        return self.value is None or not self.published.is_met_by(self.value)

    @property
    def reason(self) -> str:
        """Why there is no number of ours; empty if there is one."""
        return self.ours.reason if self.ours else "not measured"

    def to_record(self) -> dict[str, Any]:
        published = self.published and {
            "value": self.published.value,
            "printed": self.published.printed,
            "source": self.published.source,
        }
        record = {
            "what": self.what,
            "by": self.ours.by if self.ours else "",
            "n": self.ours.n if self.ours else None,
            "published": published,
            "ours": self.value,
            "difference": self.difference,
            "must_match": self.must_match,
            "matches": not self.fails if self.must_match else None,
        }
        return record | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True)
class StudyResult:
    """What came out. `rows` are in the order of the published numbers, then what else there is."""

    study: Study
    setting: Setting
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    drawing: Drawing | None = None

    @property
    def failures(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.fails)

    def to_record(self) -> dict[str, Any]:
        """JSON-ready; an undefined number is None, with a reason."""
        return {
            "study": self.study.name,
            "paper": self.study.paper,
            "repeats": self.study.repeats,
            "dialeval": __version__,
            "models": list(self.setting.models),
            "metrics": list(self.setting.metrics),
            "ok": not self.failures,
            "rows": [row.to_record() for row in self.rows],
            "tables": [
                {"title": table.title, "header": list(table.header), "rows": list(table.rows)}
                for table in self.tables
            ],
            "notes": list(self.notes),
            "differs": list(self.study.differs),
        }


def run_study(
    study: Study,
    *,
    models: Sequence[str] = (),
    metrics: Sequence[str] = (),
    sets: Sequence[str] = (),
    positives: Sequence[str] = (),
    draw: bool = False,
    source: ModelSource | None = None,
    progress: Progress = silent,
) -> StudyResult:
    """Runs a study with its own models and metrics, or with those given.

    Data sets are looked for by name (`dialeval.datasets.find_dataset`). What is missing is a
    `UsageError` that names all of it, with the commands that get it.
    """
    if models and not study.models:
        raise UsageError(f"the study {study.name!r} asks no model of its own: leave out --model")
    if metrics and not study.metrics:
        raise UsageError(f"the study {study.name!r} takes no metrics: leave out --metric")
    if sets and not study.takes_sets:
        raise UsageError(f"the study {study.name!r} has its own data: leave out --set")
    if positives and not study.takes_positives:
        raise UsageError(f"the study {study.name!r} makes no positives: leave out --positives")
    if draw and not study.draws:
        raise UsageError(f"the study {study.name!r} has no picture: leave out --plot")
    asked = tuple(models) or study.models
    if missing := find_missing(study.needs, () if source else asked):
        raise UsageError(
            "\n".join([f"the study {study.name!r} cannot be run here:", *map(str, missing)])
        )
    data = find_data((*study.needs, *study.may_use))
    chosen = tuple(metrics) or study.metrics
    setting = Setting(data, asked, chosen, source, progress, tuple(sets), tuple(positives), draw)
    findings = study.measure(setting)
    rows = lay_side_by_side(study.published, findings.measured, wanted=not metrics)
    notes, tables = tuple(findings.notes), tuple(findings.tables)
    return StudyResult(study, setting, rows, notes, tables, findings.drawing)


def lay_side_by_side(
    published: Sequence[Published], measured: Sequence[Measured], wanted: bool = True
) -> tuple[Row, ...]:
    """Rows by what was measured: a published number that nobody measured still has one.

    wanted  whether a published number that must match fails where nobody measured it
    """
    found: dict[str, list[Measured | None]] = {}
    for ours in measured:
        found.setdefault(ours.what, []).append(ours)
    rows = [
        Row(number.what, number, one, wanted)
        for number in published
        for one in found.pop(number.what, [None])
    ]
    return (*rows, *(Row(what, None, one) for what, rest in found.items() for one in rest))
