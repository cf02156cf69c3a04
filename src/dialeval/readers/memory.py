"""What is read from memory instead of a file: lists of dicts, data frames, Arrow tables.

    dialeval.load([{"prompt": "Hi!", "completion": "Hello."}])
    dialeval.load(frame)                     pandas, polars, pyarrow, datasets.Dataset

Nothing of those packages is imported. What offers the Arrow PyCapsule interface
(`__arrow_c_stream__`) is read by it; anything else is iterated, and gives its rows as mappings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dialeval.errors import UsageError
from dialeval.limits import USUAL_LIMITS, Limits
from dialeval.readers.source import Source


class InMemory(Source):
    """Records that are in memory: `stream` is what Arrow reads, or else `records` are the rows."""

    def __init__(self, given: Any, label: str = "", limits: Limits = USUAL_LIMITS) -> None:
        kind = type(given).__name__
        super().__init__(f"<{kind}>", label or "records", limits)
        self.is_directory = False
        self.reads_once = False
        self.stream: Any = given if hasattr(given, "__arrow_c_stream__") else None
        self.records: list[Mapping[str, Any]] = []
        if self.stream is None:
            self.records = list(_rows(given, kind))

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


def is_in_memory(given: object) -> bool:
    """Whether these are records, and not the name of a file."""
    return hasattr(given, "__arrow_c_stream__") or (
        isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    )


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
