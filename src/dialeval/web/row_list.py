"""The query of a page of rows (the part of its address behind the `?`), and a page of them
as plain values that the template shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from dialeval.errors import UsageError, did_you_mean
from dialeval.report.look import aligned
from dialeval.runs.run import Run

LONGEST_TEXT = 500


@dataclass(frozen=True)
class NoteChoice:
    """A remark of a metric, and how many rows carry it."""

    label: str
    note: str
    count: int


@dataclass(frozen=True)
class Shape:
    """The choices that one run offers."""

    systems: tuple[str, ...]
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    """Numbers that can be sorted and limited: each metric, and each of its single-number parts."""
    notes: tuple[NoteChoice, ...]
    lower_is_better: frozenset[str]

    @classmethod
    def of(cls, run: Run) -> Shape:
        metrics = run.manifest["metrics"]
        return cls(
            systems=tuple(run.systems),
            labels=tuple(run.metrics),
            columns=tuple(column for metric in metrics for column in _columns(metric)),
            notes=tuple(
                NoteChoice(metric["label"], note, count)
                for metric in metrics
                for note, count in metric["notes"].items()
            ),
            lower_is_better=frozenset(m["label"] for m in metrics if m["direction"] == "lower"),
        )


def _columns(metric: Mapping[str, Any]) -> list[str]:
    parts = [f"{metric['label']}.{part['name']}" for part in metric["parts"] if not part["many"]]
    return [metric["label"], *parts]


@dataclass(frozen=True)
class Query:
    """`system` and `note` are places in the lists of `Shape`; `sort` is a column, empty for the
    order of the file."""

    text: str = ""
    system: int | None = None
    metric: str = ""
    low: float | None = None
    high: float | None = None
    note: int | None = None
    sort: str = ""
    descending: bool = False

    @classmethod
    def parse(cls, given: Mapping[str, str], shape: Shape) -> Query:
        """Reads a query from the address of a page; anything that makes no sense is refused."""
        low, high = (_number(given.get(name, ""), name) for name in ("low", "high"))
        metric = _column(given.get("metric", ""), shape)
        if metric == "" and (low is not None or high is not None):
            raise UsageError("choose the metric that the lowest and highest value are meant for")
        return cls(
            text=given.get("text", "").strip()[:LONGEST_TEXT],
            system=_place(given.get("system", ""), len(shape.systems), "system"),
            metric=metric if low is not None or high is not None else "",
            low=low,
            high=high,
            note=_place(given.get("note", ""), len(shape.notes), "note"),
            sort=_column(given.get("sort", ""), shape),
            descending=given.get("order", "") == "down",
        )

    @property
    def filters(self) -> bool:
        return replace(self, sort="", descending=False) != Query()

    def address(self, **more: object) -> str:
        """Returns the part of an address that brings this query back; `more` is added to it."""
        kept = {key: value for key, value in more.items() if value is not None and value != ""}
        return urlencode([*self.fields(), *kept.items()], errors="replace")

    def fields(self) -> list[tuple[str, object]]:
        """Returns the names and values as a form would send them, without those that choose
        nothing."""
        pairs: dict[str, object] = {
            "text": self.text,
            "system": self.system,
            "metric": self.metric,
            "low": self.low,
            "high": self.high,
            "note": self.note,
            "sort": self.sort,
            "order": "down" if self.sort and self.descending else "",
        }
        return [(key, value) for key, value in pairs.items() if value is not None and value != ""]

    def sorted_by(self, column: str, shape: Shape) -> Query:
        """Returns the next order when a column's head is chosen: the worst first, then the other
        way round, then as in the file."""
        worst_down = column in shape.lower_is_better
        if self.sort != column:
            return replace(self, sort=column, descending=worst_down)
        if self.descending == worst_down:
            return replace(self, descending=not worst_down)
        return replace(self, sort="", descending=False)


def page_number(given: str) -> int:
    return (_place(given, 2**31, "page") or 1) if given else 1


def _number(given: str, name: str) -> float | None:
    if not given.strip():
        return None
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{name}: {given[:40]!r} is not a number")
    return number


def _column(given: str, shape: Shape) -> str:
    if given and given not in shape.columns:
        raise UsageError(
            f"this run has no metric {given[:80]!r}.{did_you_mean(given[:80], shape.columns)}"
        )
    return given


def _place(given: str, size: int, name: str) -> int | None:
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) < 12 and int(given) < size):
        raise UsageError(f"this run has no {name} {given[:40]!r}")
    return int(given)


SNIPPET = 160


@dataclass(frozen=True)
class ScoreCell:
    """One score as it is read; `note` says why there is none, or what to mind."""

    text: str
    note: str


@dataclass(frozen=True)
class ListedRow:
    """A row of the list, as the template shows it."""

    number: int
    id: str
    system: str
    asked: str
    answered: str
    is_whole: bool
    """The whole dialogue is judged: `answered` is its last turn."""
    cells: tuple[ScoreCell, ...]


@dataclass(frozen=True)
class Head:
    """The head of a metric's column, and where choosing it leads."""

    label: str
    order: str
    """`ascending`, `descending` or `none`, as `aria-sort` wants it."""
    address: str


@dataclass(frozen=True)
class ListPage:
    """A page of the list, as the template shows it."""

    heads: tuple[Head, ...]
    rows: tuple[ListedRow, ...]
    matching: int
    page: int
    pages: int
    first: int
    """The place of the first row in the list, from 1."""


def list_columns(shape: Shape) -> list[str]:
    """Returns what a page needs of each row."""
    scores = [name for label in shape.labels for name in (label, f"{label}.note")]
    return ["id", "system", "context", "response", "variants", *scores]


def list_page(
    query: Query,
    shape: Shape,
    numbers: Sequence[int],
    rows: Sequence[dict[str, Any]],
    matching: int,
    page: int,
    pages: int,
    per_page: int,
) -> ListPage:
    columns = [_cells(label, rows) for label in shape.labels]
    return ListPage(
        heads=tuple(_head(query, shape, label) for label in shape.labels),
        rows=tuple(
            _row(number, row, tuple(column[at] for column in columns))
            for at, (number, row) in enumerate(zip(numbers, rows, strict=True))
        ),
        matching=matching,
        page=page,
        pages=pages,
        first=(page - 1) * per_page + 1,
    )


def _head(query: Query, shape: Shape, label: str) -> Head:
    order = "none"
    if query.sort == label:
        order = "descending" if query.descending else "ascending"
    return Head(label, order, query.sorted_by(label, shape).address())


def _cells(label: str, rows: Sequence[dict[str, Any]]) -> list[ScoreCell]:
    texts = aligned([row[label] for row in rows])
    return [
        ScoreCell(text, row[f"{label}.note"] or "") for text, row in zip(texts, rows, strict=True)
    ]


def _row(number: int, row: dict[str, Any], cells: tuple[ScoreCell, ...]) -> ListedRow:
    context = [turn["text"] for turn in (row["context"] or [])[-2:]]
    is_whole = row["response"] is None
    if not is_whole:
        asked, answered = (context or [""])[-1], row["response"]
    elif row["variants"]:
        asked, answered = row["variants"][0]["query"], row["variants"][0]["response"]
    else:
        asked, answered = (["", "", *context])[-2:]
    return ListedRow(
        number,
        row["id"],
        row["system"] or "",
        snippet(asked),
        snippet(answered),
        is_whole,
        cells,
    )


def snippet(text: str | None) -> str:
    short = " ".join((text or "")[: 4 * SNIPPET].split())
    return short if len(short) <= SNIPPET else short[: SNIPPET - 1] + "…"
