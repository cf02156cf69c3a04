"""What is read from memory instead of a file: lists of dicts, data frames, Arrow tables.

    dialeval.load([{"prompt": "Hi!", "completion": "Hello."}])
    dialeval.load(frame)                     pandas, polars, pyarrow, datasets.Dataset

Nothing of those packages is imported. What offers the Arrow PyCapsule interface
(`__arrow_c_stream__`) is read by it; anything else is iterated, and gives its rows as mappings.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dialeval.errors import UsageError
from dialeval.limits import USUAL_LIMITS, Limits
from dialeval.readers.source import Source


class InMemory(Source):
    """Records that are in memory: an Arrow `table`, or else a list of `records`."""

    def __init__(self, given: Any, label: str = "", limits: Limits = USUAL_LIMITS) -> None:
        kind = type(given).__name__
        super().__init__(f"<{kind}>", label or "records", limits)
        self.is_directory = False
        self.reads_once = False
        self.table = _table(given, kind) if has_stream(given) else None
        self.records = list(_rows(given, kind)) if self.table is None else []

    @property
    def is_missing(self) -> bool:
        return False

    @property
    def head(self) -> bytes:
        return b""

    def check(self) -> None:
        """There is nothing to open."""

    def fraction(self) -> float | None:
        return 1 - self._unread / self.handed_out if self.handed_out else None


def has_stream(given: object) -> bool:
    """Whether this offers its rows to Arrow."""
    return hasattr(given, "__arrow_c_stream__")


def is_in_memory(given: object) -> bool:
    """Whether these are records, and not the name of a file."""
    return has_stream(given) or (
        isinstance(given, Iterable) and not isinstance(given, str | bytes | os.PathLike | Mapping)
    )


def holds_records(given: object) -> bool:
    """Whether these are records, and not samples. What can be read only once is not looked at."""
    if has_stream(given) or isinstance(given, Iterator) or not isinstance(given, Iterable):
        return has_stream(given)
    return isinstance(next(iter(given), None), Mapping)


def _table(given: Any, kind: str) -> Any:
    import pyarrow as pa

    try:
        return pa.RecordBatchReader.from_stream(given).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise UsageError(f"Arrow cannot read this {kind}: {first}") from error


def _rows(given: Any, kind: str) -> Iterator[Mapping[str, Any]]:
    # pandas before 2.2 has no Arrow interface, and iterates over the names of its columns
    rows = given.to_dict("records") if hasattr(given, "to_dict") else given
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise UsageError(
                f"cannot read samples from a {kind}: its item {number} is of type"
                f" {type(row).__name__}. Give file names, a list of dicts, a data frame"
                " (pandas, polars), an Arrow table or a datasets.Dataset"
            )
        yield row
