"""Ratings from any file that `dialeval.load` reads, and what to do where it finds none.

A file of ratings needs no dialogues: scores are joined to it by id, and raters are held against
each other. Where no column counts as ratings, people most often have one under a name of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dialeval.errors import InputError, Problem, UsageError
from dialeval.readers.load import PathLike, Samples, open_sources, read_options
from dialeval.readers.rating_columns import PREFIX
from dialeval.readers.rating_database import is_database
from dialeval.run import open_run
from dialeval.sample import Sample

_UNUSED = re.compile(r"not used: (.+?)(?:\. Name columns of ratings with --rating)?")


def load_ratings(
    paths: Sequence[PathLike],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    ratings: Sequence[str] = (),
    scales: Mapping[str, tuple[float, float]] | None = None,
) -> Samples:
    """As `dialeval.load`, but a record may consist of an id and ratings, and a run stands for the
    samples that were scored in it."""
    options = replace(read_options(columns or {}, ratings, scales or {}), texts=False)
    files = [file for path in paths for file in _samples_of(path)]
    opened, problems = open_sources(files, format)
    if problems:
        raise InputError(problems)
    return Samples(opened, options)


def _samples_of(path: PathLike) -> Sequence[PathLike]:
    """The files of a run, or the file itself."""
    directory = Path(path)
    if not any((directory / name).is_file() for name in ("manifest.json", "job.json")):
        return [path]
    return open_run(directory).score_files


def some_rated(samples: Samples) -> Iterator[Sample]:
    """All of the samples. Where none of them has a rating, an error says how to name columns."""
    rated = False
    for sample in samples:
        rated = rated or bool(sample.ratings)
        yield sample
    if not rated:
        raise _no_ratings(samples)


def _no_ratings(samples: Samples) -> UsageError:
    if all(is_database(name) for name in samples.formats):
        return UsageError(f"{', '.join(samples.formats)}: nobody has rated anything yet")
    columns = [name for problem in samples.problems for name in _unused(problem)]
    name = columns[0] if columns else "overall"
    short = name.removeprefix(PREFIX)
    unread = f" Not used: {', '.join(columns)}." if columns else ""
    return UsageError(
        f"{', '.join(samples.formats)}: no sample has ratings.{unread} Name a column that holds"
        f" them: --rating {name}. Or, in a table, rename it to {PREFIX}{short} ({PREFIX}{short}_1,"
        f' {PREFIX}{short}_2 for several raters); in JSON, write "ratings": {{"{short}": [4, 5]}}'
    )


def remarks(samples: Samples) -> str:
    """What was dropped or replaced in the last pass: how often, and the first; else nothing."""
    told = [p for p in samples.problems if p.severity == "warning"]
    odd = [p for p in told if not _unused(p)]
    count = samples.counts.warnings - (len(told) - len(odd))
    if not odd:
        return ""
    more = f", and {count - 1:,} more (dialeval data check lists them)" if count > 1 else ""
    return f"{odd[0]}{more}"


def _unused(problem: Problem) -> list[str]:
    match = _UNUSED.fullmatch(problem.problem)
    return match[1].split(", ") if match else []
