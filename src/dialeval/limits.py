"""Limits on the size of a record.

A file without line ends, or one made to hurt, would otherwise be held in memory many times over:
metrics make words and n-grams of a record. One number, in millions of characters, sets all limits:
`--largest-record` of the verbs that read files, `largest_record` of `dialeval.load`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialeval.errors import UsageError

USUAL = 8
"""Millions of characters (2^20 each): far above what a dialogue needs."""

OWN = 1024
"""The limit for files that dialeval wrote: a query at the usual limit has variants beside it."""


@dataclass(frozen=True)
class Limits:
    """The limits on one file. They keep their proportion when one of them is raised."""

    largest_record: int = USUAL

    def __post_init__(self) -> None:
        if self.largest_record < 1:
            raise UsageError(f"largest_record must be at least 1, not {self.largest_record}")

    @property
    def record(self) -> int:
        """Characters of a line of JSON Lines or of a table, of an element of an array, or of all
        texts of a row."""
        return self.largest_record << 20

    @property
    def cell(self) -> int:
        """Characters of a cell of a table: a quote that is never closed takes in what follows."""
        return self.record >> 6

    @property
    def columns(self) -> int:
        """Columns of a table: every cell of a row becomes an entry by name."""
        return self.record >> 11

    @property
    def blank_lines(self) -> int:
        """Blank lines in a row: a few kB can unpack to billions of them."""
        return self.record >> 3

    def exceeded(self, problem: str) -> str:
        """Returns what an error says: the problem, and the option that raises the limit."""
        return f"{problem}. If that is right, raise --largest-record (now {self.largest_record})"

    def long_line(self) -> str:
        return self.exceeded(f"the line is longer than {self.record:,} characters")

    def long_record(self) -> str:
        return self.exceeded(f"the record is longer than {self.record:,} characters")


USUAL_LIMITS = Limits()
