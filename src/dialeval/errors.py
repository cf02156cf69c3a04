"""Errors and problems, in the words of the person who has to fix them.

Every error that a user can cause is a `DialevalError`. Its text stands alone on a terminal: what is
wrong, where, and what to do next. Anything else that escapes is a bug in dialeval.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


class DialevalError(Exception):
    """Base of all errors that dialeval raises on purpose; the CLI exits with `exit_code`."""

    exit_code = 1


class JobError(DialevalError):
    """The request was fine but the work could not be done: disk full, run locked, worker lost."""


class UsageError(DialevalError):
    """The request makes no sense: an unknown name, an option of the wrong type."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one place of an input file.

    An `error` makes its record unusable. A `warning` leaves the record usable after something was
    dropped or replaced, and `problem` says what. Programs read `code` and `names`, never the text:
    `unused-columns` names the columns that no reader used.
    """

    path: str
    line: int
    field: str
    problem: str
    severity: Severity = "error"
    code: str = ""
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return (
            f"{place}: {self.field}: {self.problem}" if self.field else f"{place}: {self.problem}"
        )


SHOWN_PROBLEMS = 20
SHOWN_LINES = 5
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
"""The parts that differ between alike problems: values, and places in a list."""


@dataclass(frozen=True, slots=True)
class ProblemGroup:
    """Problems of one file that say the same of several places."""

    problems: tuple[Problem, ...]

    @property
    def severity(self) -> Severity:
        return self.problems[0].severity

    def __str__(self) -> str:
        first, *others = self.problems
        if not others:
            return str(first)
        lines = list(dict.fromkeys(problem.line for problem in others))
        listed = ", ".join(map(str, lines[:SHOWN_LINES]))
        more = ", ..." if len(lines) > SHOWN_LINES else ""
        where = f", at line{'s' if len(lines) > 1 else ''} {listed}{more}" if lines[0] else ""
        return f"{first} (and {len(others):,} more like it{where})"


def grouped(problems: Iterable[Problem]) -> list[ProblemGroup]:
    """Alike problems together, in the order in which the first of each kind occurred."""
    found: dict[tuple[str, ...], list[Problem]] = {}
    for one in problems:
        alike = (_PARTICULAR.sub("", text) for text in (one.field, one.problem))
        found.setdefault((one.path, one.severity, *alike), []).append(one)
    return [ProblemGroup(tuple(group)) for group in found.values()]


class InputError(DialevalError):
    """Input files hold errors: all of them, not only the first; the message shows 20 kinds."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem], hidden: int = 0) -> None:
        self.problems = tuple(problems)
        self.hidden = hidden
        groups = grouped(self.problems)[:SHOWN_PROBLEMS]
        lines = [str(group) for group in groups]
        told = sum(len(group.problems) for group in groups)
        if more := len(self.problems) - told + hidden:
            lines.append(f"... and {more:,} more")
        super().__init__("\n".join(lines))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns a clause such as ` Did you mean 'full'?`, or nothing where no known word is near."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


def explain(error: BaseException) -> str:
    """`SystemExit: 3`: on one line, whatever other people's code raised."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def is_panic(error: BaseException) -> bool:
    """Returns whether an exception is a panic of Rust, which the tokenizers and safetensors
    libraries are written in. Such a panic is no `Exception` in Python, and its class cannot be
    imported."""
    return type(error).__name__ == "PanicException"
