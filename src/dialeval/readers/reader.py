"""What a reader is, and how it reports what is wrong with a file.

A reader turns one kind of file into samples, one at a time, and never holds the file in memory. It
does not raise on bad data: it reports a `Problem` at a `Place` and goes on with the next record, so
that people see all that is wrong at once. Only where nothing more can be read from the file (it is
cut off, a line has no end) it raises `UnreadableError`, which `load` turns into a `Problem`.

    def read(source, place, options):
        for line, record in json_records(source, place):
            place.line = line
            ...                                   # place.error("response", "missing")
            yield sample                          # or place.problems.skipped += 1

A reader moves `place` to the record that it is about to yield: checks that need more than one file,
such as that no id occurs twice, report there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from dialeval.errors import DialevalError, InputError, Problem, explain
from dialeval.sample import Sample

if TYPE_CHECKING:
    from dialeval.readers.source import Source

logger = logging.getLogger("dialeval.plugins")

SystemPrompt = Literal["leave-out", "facts"]

KEPT_PROBLEMS = 1000
"""Errors and warnings beyond this many each are counted, not kept: every line may be wrong."""


class UnreadableError(Exception):
    """Nothing more can be read from this file. `line` 0: the file as a whole.

    `path` is only given where the source is a folder: the file in it.
    """

    def __init__(self, problem: str, line: int = 0, field: str = "", path: str = "") -> None:
        super().__init__(problem)
        self.path = path
        self.problem = problem
        self.line = line
        self.field = field


class PluginFailedError(UnreadableError):
    """The reader of a plugin raised what it should not, or gave something that is no sample."""


@dataclass(frozen=True)
class ReadOptions:
    """What the user said about the file.

    columns  field -> column name in the file: {"response": "bot_answer", "references": "gold"}
    ratings  columns that hold ratings; empty: those that the reader recognises
    scales   quality -> lowest and highest rating: {"overall": (1, 5)}
    texts    whether what was said is needed; ratings and an id are enough to join scores to
    system_prompt  what becomes of the instructions in a chat log: nothing, or `facts`, which
             metrics may look at and raters see
    unanswered  whether a chat that ends in a turn of the user gives a sample for it, without a
             response: there is nothing to judge, but something to ask
    """

    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    ratings: tuple[str, ...] = ()
    scales: Mapping[str, tuple[float, float]] = field(default_factory=lambda: MappingProxyType({}))
    texts: bool = True
    system_prompt: SystemPrompt = "leave-out"
    unanswered: bool = False

    def __reduce__(self) -> tuple[type[ReadOptions], tuple[Any, ...]]:
        """Goes to another process: a view of a dict does not."""
        columns, scales = dict(self.columns), dict(self.scales)
        others = self.ratings, scales, self.texts, self.system_prompt, self.unanswered
        return ReadOptions, (columns, *others)

    def without_names(self) -> ReadOptions:
        """For records whose columns were looked up and whose ratings were read."""
        return replace(self, columns=MappingProxyType({}), ratings=())

    def to_record(self) -> dict[str, Any]:
        """Returns what was said, for a manifest."""
        record = {
            "columns": dict(self.columns),
            "ratings": list(self.ratings),
            "scales": {quality: list(scale) for quality, scale in self.scales.items()},
            "system_prompt": "" if self.system_prompt == "leave-out" else self.system_prompt,
        }
        return {name: value for name, value in record.items() if value}


class Problems:
    """Collects what is wrong while files are read."""

    def __init__(self, keep: int = KEPT_PROBLEMS) -> None:
        self.kept: list[Problem] = []
        self.errors = 0
        self.warnings = 0
        self.skipped = 0
        """Records that were left out because of their errors."""
        self._keep = keep

    def add(self, problem: Problem) -> None:
        if problem.severity == "error":
            self.errors += 1
            wanted = self.errors <= self._keep
        else:
            self.warnings += 1
            wanted = self.warnings <= self._keep
        if wanted:
            self.kept.append(problem)

    @property
    def hidden(self) -> int:
        """How many problems were counted but not kept."""
        return self.errors + self.warnings - len(self.kept)

    def check(self) -> None:
        """Raises all errors as one, if there are any."""
        if self.errors:
            errors = [problem for problem in self.kept if problem.severity == "error"]
            raise InputError(errors, self.errors - len(errors))


class Place:
    """Where the reader is: the file and line that the next problem belongs to."""

    __slots__ = ("line", "path", "problems")

    def __init__(self, problems: Problems, path: str, line: int = 0) -> None:
        self.problems = problems
        self.path = path
        self.line = line

    def error(self, field: str, problem: str) -> None:
        """Reports that the record here cannot be used."""
        self.problems.add(Problem(self.path, self.line, field, problem, "error"))

    def warning(
        self, field: str, problem: str, code: str = "", names: tuple[str, ...] = ()
    ) -> None:
        """Something was dropped or replaced here; the record can be used."""
        self.problems.add(Problem(self.path, self.line, field, problem, "warning", code, names))


@dataclass(frozen=True)
class Reader:
    """One file format. Plugins register an instance under the entry point `dialeval.readers`.

    recognises  does this source look like the format? Judged by content (`source.head`), not name
    read        yields samples; reports problems and continues with the next record
    """

    name: str
    summary: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source, Place, ReadOptions], Iterator[Sample]]


def guarded(reader: Reader) -> Reader:
    """Calls the reader of a plugin, so that its errors cost no more than the plugin.

    One that fails to say whether it knows a file is named in a warning and does not know it. What
    it raises while it reads is a problem of that file.
    """

    def recognises(source: Source) -> bool:
        try:
            return bool(reader.recognises(source))
        except (UnreadableError, DialevalError, OSError):
            raise
        except (Exception, SystemExit) as error:
            logger.warning("%s (%s). It is left out.", _failure(reader, error), source.name)
            return False

    def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
        try:
            for sample in reader.read(source, place, options):
                if not isinstance(sample, Sample):
                    raise TypeError(f"expected a Sample, not a value of {type(sample).__name__}")
                yield sample
        except (UnreadableError, DialevalError, OSError):
            raise
        except (Exception, SystemExit) as error:
            raise PluginFailedError(_failure(reader, error), place.line) from error

    return replace(reader, recognises=recognises, read=read)


def _failure(reader: Reader, error: BaseException) -> str:
    return f"the plugin reader {reader.name!r} failed: {explain(error)}"
