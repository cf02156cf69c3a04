"""The description of a data set: its name, parts and files, and where the public copies lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["rated", "corpus", "language"]
"""
rated     dialogues that people judged
corpus    dialogues to learn from; some carry ratings that the speakers themselves gave
language  what the metrics learn besides dialogue: inference pairs, facts of common sense
"""

Scale = tuple[int, int]


@dataclass(frozen=True, slots=True)
class File:
    """One file of a data set.

    name    its path below the folder of the set, with `/`
    sha256  of the copy that dialeval was developed and measured with
    url     its public address; `...zip#NAME` is the file called NAME in that archive. Empty where
            no address is known that serves this very file
    """

    name: str
    size: int
    sha256: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What one reader reads of a data set: a file or a folder of it.

    qualities  what people rated -> (lowest, highest) rating
    """

    name: str
    path: str
    format: str
    items: int
    qualities: Mapping[str, Scale] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """A data set by name.

    place    its folder below the data directory
    items    how much it holds, in words
    raters   how many people judged an item, in words; empty where nobody did
    source   the page of its authors
    by_hand  how to get the files that have no public address; empty where all have one
    parts    what `dialeval.load` reads; empty where no reader makes samples of the set
    """

    name: str
    kind: Kind
    place: str
    summary: str
    items: str
    citation: str
    source: str
    licence: str
    raters: str = ""
    by_hand: str = ""
    parts: tuple[Part, ...] = ()
    files: tuple[File, ...] = ()

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def qualities(self) -> dict[str, tuple[Scale, ...]]:
        """Quality -> its scales; parts may use different ones under one name."""
        found: dict[str, dict[Scale, None]] = {}
        for part in self.parts:
            for quality, scale in part.qualities.items():
                found.setdefault(quality, {})[scale] = None
        return {quality: tuple(scales) for quality, scales in found.items()}

    def part(self, name: str) -> Part | None:
        return next((part for part in self.parts if part.name == name), None)
