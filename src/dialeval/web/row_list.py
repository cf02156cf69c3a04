"""A page of rows as plain values that the template shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dialeval.report.look import aligned
from dialeval.web.query import Query, Shape

SNIPPET = 160


@dataclass(frozen=True)
class Cell:
    """One score as it is read; `note` says why there is none, or what to mind."""

    text: str
    note: str


@dataclass(frozen=True)
class ListedRow:
    number: int
    id: str
    system: str
    asked: str
    answered: str
    is_whole: bool
    """The whole dialogue is judged: `answered` is its last turn."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Head:
    """The head of a metric's column, and where choosing it leads."""

    label: str
    order: str
    """`ascending`, `descending` or `none`, as `aria-sort` wants it."""
    address: str


@dataclass(frozen=True)
class ListPage:
    heads: tuple[Head, ...]
    rows: tuple[ListedRow, ...]
    matching: int
    page: int
    pages: int
    first: int
    """The place of the first row in the list, from 1."""


def list_columns(shape: Shape) -> list[str]:
    """What a page needs of each row."""
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
    columns = [_column(label, rows) for label in shape.labels]
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


def _column(label: str, rows: Sequence[dict[str, Any]]) -> list[Cell]:
    texts = aligned([row[label] for row in rows])
    return [Cell(text, row[f"{label}.note"] or "") for text, row in zip(texts, rows, strict=True)]


def _row(number: int, row: dict[str, Any], cells: tuple[Cell, ...]) -> ListedRow:
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
