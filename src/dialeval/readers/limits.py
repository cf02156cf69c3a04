"""How large a record may be, and what raises each limit.

A file without line ends, or one made to hurt, would otherwise be held in memory many times over:
metrics make words and n-grams of a record. Each limit is far above what dialogues need, and has an
environment variable that raises it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from dialeval.errors import UsageError


@dataclass(frozen=True)
class Limit:
    """`variable` is the environment variable that replaces `default`."""

    default: int
    what: str
    variable: str

    @property
    def value(self) -> int:
        given = os.environ.get(self.variable)
        if given is None:
            return self.default
        if not given.isdecimal() or not int(given):
            raise UsageError(f"{self.variable}={given}: expected a whole number above 0")
        return int(given)

    def exceeded(self, thing: str) -> str:
        """What an error says: `the line is longer than 8,388,608 characters. ...`"""
        return (
            f"{thing} {self.value:,} {self.what}. If that is right, set"
            f" {self.variable} to a larger number"
        )


RECORD = Limit(1 << 23, "characters", "DIALEVAL_LONGEST_RECORD")
"""A line of JSON Lines or of a table, or an element of an array."""

COLUMNS = Limit(4096, "columns", "DIALEVAL_MOST_COLUMNS")
"""Of a table: every cell of a row becomes an entry by name."""

BLANK = Limit(1 << 20, "blank lines in a row", "DIALEVAL_MOST_BLANK_LINES")
"""A few kB can unpack to billions of them."""
