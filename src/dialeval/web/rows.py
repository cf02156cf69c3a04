"""Rows of a run, straight from its Parquet file: some at a time, in any order, never all at once.

A query becomes an *ordering*: the numbers of the rows that match, four bytes each, in the order in
which they are shown. It needs the columns that the query names and no others, read a batch after
the other. The rows of a page are found by row group, and of each group only those parts that hold
the columns that are shown.

Orderings that were found are kept up to a number of bytes: the next page costs only its rows.

A `Query` is the part of the address behind the `?`; a page of rows has plain values that the
template shows.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from dialeval.errors import UsageError, did_you_mean
from dialeval.report.look import aligned
from dialeval.runs.run import Run
from dialeval.storage import open_parquet

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


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


class ArrayCache:
    """Arrays by key, the latest used, up to a number of bytes together."""

    def __init__(self, most_bytes: int = 64 * 2**20) -> None:
        self._most_bytes = most_bytes
        self._arrays: OrderedDict[tuple[object, ...], npt.NDArray[Any]] = OrderedDict()
        self.bytes = 0

    def get(self, key: tuple[object, ...]) -> npt.NDArray[Any] | None:
        if key in self._arrays:
            self._arrays.move_to_end(key)
        return self._arrays.get(key)

    def put(self, key: tuple[object, ...], array: npt.NDArray[Any]) -> None:
        self._arrays[key] = array
        self.bytes += array.nbytes
        while self.bytes > self._most_bytes and len(self._arrays) > 1:
            _, oldest = self._arrays.popitem(last=False)
            self.bytes -= oldest.nbytes


class Orderings:
    """Finds which rows match, and in which order. One search at a time: memory stays bounded."""

    def __init__(self, kept: ArrayCache | None = None) -> None:
        self._kept = kept or ArrayCache()
        self._lock = threading.Lock()

    def of(self, rows: RunRows, query: Query) -> Numbers:
        with self._lock:
            key = (rows.version, query)
            found = self._kept.get(key)
            if found is None:
                found = rows.ordering(query, self._matches(rows, query.text))
                self._kept.put(key, found)
            return found

    def _matches(self, rows: RunRows, text: str) -> Mask | None:
        """Returns which rows hold the text; kept apart, for it is what takes longest."""
        if not text:
            return None
        key = (rows.version, text)
        packed = self._kept.get(key)
        if packed is None:
            packed = np.packbits(rows.holding(text))
            self._kept.put(key, packed)
        return np.unpackbits(packed, count=len(rows)).astype(np.bool_)


Numbers = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]

BATCH = 8192
BATCH_OF_A_PAGE = 1024
"""Rows that are decoded at a time where only some of them are wanted."""

SEARCHED = (
    "id",
    "response",
    "context.list.element.text",
    "variants.list.element.query",
    "variants.list.element.response",
)


class ScoreFile:
    """One Parquet file of a run: what its footer says of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_parquet(path) as file:
            self._metadata = file.metadata
        self.version = _version(path)

    @property
    def columns(self) -> set[str]:
        return set(self._metadata.schema.to_arrow_schema().names)

    @property
    def group_sizes(self) -> list[int]:
        groups = range(self._metadata.num_row_groups)
        return [self._metadata.row_group(group).num_rows for group in groups]

    def is_current(self) -> bool:
        """Is the file still the one that was opened?"""
        return self.path.exists() and _version(self.path) == self.version

    @contextmanager
    def open(self) -> Iterator[pq.ParquetFile]:
        with open_parquet(self.path, metadata=self._metadata, pre_buffer=False) as file:
            yield file


class RunRows:
    """The rows of one finished run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.shape = Shape.of(run)
        self._files = [ScoreFile(path) for path in run.score_files]
        self.version = tuple(file.version for file in self._files)
        sizes = [file.group_sizes for file in self._files]
        self._groups = [
            (file, group)
            for file, own in zip(self._files, sizes, strict=True)
            for group in range(len(own))
        ]
        self._starts = np.cumsum([0, *(size for own in sizes for size in own)])
        self._check_columns()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def is_current(self) -> bool:
        """Are the files still those that were opened?"""
        return all(file.is_current() for file in self._files)

    def ordering(self, query: Query, holding: Mask | None) -> Numbers:
        """Returns the numbers of the rows that match, in order; ties as in the file, rows without a
        value last whichever way the column is sorted."""
        mask = np.ones(len(self), np.bool_) if holding is None else holding
        if query.system is not None:
            mask &= self._equal("system", self.shape.systems[query.system])
        if query.note is not None:
            chosen = self.shape.notes[query.note]
            mask &= self._equal(f"{chosen.label}.note", chosen.note)
        if query.metric:
            values = self._values(query.metric)
            if query.low is not None:
                mask &= values >= query.low  # not true of NaN: a missing value is in no range
            if query.high is not None:
                mask &= values <= query.high
        numbers = np.flatnonzero(mask)
        if query.sort:
            values = self._values(query.sort)[numbers]
            numbers = numbers[np.argsort(-values if query.descending else values, kind="stable")]
        return numbers.astype(np.uint32)

    def holding(self, text: str) -> Mask:
        """Returns which rows hold this text in what was said, or in their id; upper and lower case
        are alike."""
        import pyarrow.compute as pc

        def matches(texts: pa.Array) -> pa.Array:
            return pc.match_substring(texts, text, ignore_case=True)

        def in_any(lists: pa.Array, field: str) -> npt.NDArray[Any]:
            parents = pc.list_parent_indices(lists)
            places: npt.NDArray[Any] = parents.filter(
                matches(lists.flatten().field(field))
            ).to_numpy()
            return places

        found = np.zeros(len(self), np.bool_)
        start = 0
        for batch in self._batches(SEARCHED):
            here = found[start : start + len(batch)]
            for name in ("id", "response"):
                here |= matches(batch.column(name)).fill_null(False).to_numpy(zero_copy_only=False)
            for name, field in (
                ("context", "text"),
                ("variants", "query"),
                ("variants", "response"),
            ):
                here[in_any(batch.column(name), field)] = True
            start += len(batch)
        return found

    def take(
        self, numbers: Sequence[int], columns: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Returns the rows with these numbers, in this order."""
        wanted = np.unique(np.asarray(numbers, dtype=np.int64))
        found: dict[int, dict[str, Any]] = {}
        self._check_is_current()
        groups = np.searchsorted(self._starts, wanted, side="right") - 1
        for place in np.unique(groups):
            here = wanted[groups == place]
            first = int(self._starts[place])
            score_file, group = self._groups[place]
            with score_file.open() as file:
                for number, row in _pick(file, group, here - first, columns):
                    found[first + number] = row
        return [found[int(number)] for number in numbers]

    def _values(self, column: str) -> npt.NDArray[np.float64]:
        """Returns a column of numbers, NaN where there is none."""
        values = np.empty(len(self), np.float64)
        start = 0
        for batch in self._batches([column]):
            values[start : start + len(batch)] = batch.column(0).to_numpy(zero_copy_only=False)
            start += len(batch)
        return values

    def _equal(self, column: str, text: str) -> Mask:
        import pyarrow.compute as pc

        found = [
            pc.equal(batch.column(0), text).fill_null(False).to_numpy(zero_copy_only=False)
            for batch in self._batches([column])
        ]
        return np.concatenate(found) if found else np.zeros(0, np.bool_)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self._check_is_current()
        for score_file in self._files:
            with score_file.open() as file:
                yield from file.iter_batches(
                    batch_size=BATCH, columns=list(columns), use_threads=False
                )

    def _check_is_current(self) -> None:
        if not self.is_current():
            raise UsageError("this run was rewritten in the meantime. Reload the page.")

    def _check_columns(self) -> None:
        """A manifest of other metrics than those in the files would make every page fail."""
        named = [*self.shape.columns, *(f"{label}.note" for label in self.shape.labels)]
        for file in self._files:
            there = file.columns
            if missing := [name for name in named if name not in there]:
                raise UsageError(
                    f"{file.path} is damaged: it has no column {missing[0]!r}, which the manifest"
                    " names. Score again with --overwrite."
                )


def _version(path: Path) -> tuple[str, int, int]:
    """Changes when the file is replaced by another."""
    state = path.stat()
    return (str(path), state.st_mtime_ns, state.st_size)


def _pick(
    file: pq.ParquetFile, group: int, places: npt.NDArray[Any], columns: Sequence[str] | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields some rows of a row group, by their places in it; it is decoded up to the last of
    them."""
    start = 0
    for batch in file.iter_batches(
        batch_size=BATCH_OF_A_PAGE, row_groups=[group], columns=columns, use_threads=False
    ):
        end = start + len(batch)
        here = places[(places >= start) & (places < end)]
        if here.size:
            rows = batch.take(here - start).to_pylist()
            yield from zip(here.tolist(), rows, strict=True)
        if end > places[-1]:
            return
        start = end
