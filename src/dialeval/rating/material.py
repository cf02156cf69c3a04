"""What is to be judged: samples from anything that `dialeval.load` reads, and from runs.

A run also knows what its metrics say. That is kept beside the samples, out of the raters' sight, so
that `dialeval agree ratings.db` can hold metrics against people without being told where the
scores are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from dialeval.errors import UsageError
from dialeval.readers.load import Samples, choose
from dialeval.readers.reader import Problems
from dialeval.run import Run, open_run
from dialeval.sample import Sample


@dataclass(frozen=True)
class Material:
    """One source: a run, or what one or more files hold."""

    name: str
    samples: tuple[Sample, ...]
    scores: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    """Id of the sample -> metric -> score."""
    directions: Mapping[str, str] = field(default_factory=dict)
    problems: Problems | None = None
    """What was found wrong in a file, where somebody wants to be told."""


def read_material(
    paths: Sequence[str],
    load: Callable[[str], Samples],
    *,
    limit: int | None = None,
    seed: int | None = None,
) -> list[Material]:
    """One for each path. Ratings that the samples had are left out: raters start afresh."""
    if not paths:
        raise UsageError("no file given")
    return [
        _run(name, open_run(path), limit, seed) if is_run(path) else _files(name, load(path))
        for name, path in zip(_names(paths), paths, strict=True)
    ]


def is_run(path: str) -> bool:
    return path != "-" and (Path(path) / "manifest.json").is_file()


def _files(name: str, samples: Samples) -> Material:
    return Material(name, tuple(_bare(samples)), problems=samples.counts)


def _run(name: str, run: Run, limit: int | None, seed: int | None) -> Material:
    rows: Iterator[Sample] | list[Sample] = _bare(run.samples())
    if limit is not None:
        generator = random.Random(seed)
        rows = islice(rows, limit) if seed is None else choose(rows, limit, generator)
    samples = tuple(rows)
    wanted = {sample.id for sample in samples}
    scores: dict[str, dict[str, float | None]] = {ident: {} for ident in wanted}
    for batch in run.batches(["id", *run.metrics]):
        for row in batch.to_pylist():
            if row["id"] in wanted:
                scores[row["id"]] = {metric: row[metric] for metric in run.metrics}
    directions = {metric["label"]: metric["direction"] for metric in run.manifest["metrics"]}
    return Material(name, samples, scores, directions)


def _bare(samples: Samples | Iterator[Sample]) -> Iterator[Sample]:
    return (replace(sample, ratings={}) for sample in samples)


def _names(paths: Sequence[str]) -> list[str]:
    """The last part of each path without its endings, where that tells them apart."""
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise UsageError(f"{twice[0]} is given twice")
    short = [Path(path).name.partition(".")[0] or path for path in paths]
    return short if len(set(short)) == len(short) else list(paths)
