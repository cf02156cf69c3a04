"""The runs that can be looked at. A run is addressed by an id that says nothing of its place.

A request can only name an id; it is looked up among the runs that were found below the given
directories. No part of a request ever becomes a path.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dialeval.errors import DialevalError
from dialeval.remote import UrlPath, located
from dialeval.runs.run import Run, open_run

DEPTH = 4
"""How far below a given directory a run may lie: runs/2026/august/first."""

MOST_DIRECTORIES = 20_000
"""Somebody may serve their home directory: the search ends, and the page says so."""

SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "shards"})


@dataclass(frozen=True)
class MetricMean:
    """The mean over all samples of a run; `pooled` metrics have numbers of their own per system."""

    label: str
    direction: str
    mean: float | None
    scored: int


@dataclass(frozen=True)
class RunEntry:
    """A line in the list of runs. One that cannot be read has a `problem` and nothing else."""

    id: str
    name: str
    path: Path
    samples: int = 0
    systems: tuple[str, ...] = ()
    metrics: tuple[MetricMean, ...] = ()
    finished: str = ""
    """`2026-11-16 04:55`, empty where the run's history does not say."""
    problem: str = ""


@dataclass(frozen=True)
class Found:
    """All runs, the latest first; `is_whole` is False where the search was given up."""

    entries: tuple[RunEntry, ...]
    is_whole: bool


class Catalogue:
    """Finds runs below some directories, again each time: a run may be finished meanwhile."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(dict.fromkeys(located(root).resolve() for root in roots))
        self._places: dict[str, Path] = {}

    def find(self) -> Found:
        budget = [MOST_DIRECTORIES]
        paths = dict.fromkeys(path for root in self._roots for path in _runs_below(root, budget))
        self._places = {run_id(path): path for path in paths}
        entries = [_entry(path, self._name(path)) for path in paths]
        entries.sort(key=lambda entry: entry.name)
        entries.sort(key=lambda entry: entry.finished, reverse=True)
        return Found(tuple(entries), budget[0] > 0)

    def open(self, identity: str) -> tuple[RunEntry, Run] | None:
        """None where no run has this id."""
        if identity not in self._places:
            self.find()
        path = self._places.get(identity)
        if path is None:
            return None
        return _entry(path, self._name(path)), open_run(path)

    def _name(self, path: Path) -> str:
        """Returns the shortest way to say where it is, seen from one of the given directories."""
        names = [
            str(path.relative_to(root)) if path != root else path.name
            for root in self._roots
            if path.is_relative_to(root)
        ]
        return min(names, key=len)


def run_id(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def _runs_below(root: Path, budget: list[int], depth: int = 0) -> Iterator[Path]:
    """A run holds no other runs, so the search does not go into it; nor does it follow links."""
    budget[0] -= 1
    if budget[0] <= 0:
        return
    try:
        names, folders = _listed(root)
    except OSError:  # not there (any more), or not ours to read
        return
    if {"manifest.json", "scores.parquet"} <= names:
        yield root
        return
    if depth < DEPTH:
        for name in folders:
            if not name.startswith(".") and name not in SKIPPED:
                yield from _runs_below(root / name, budget, depth + 1)


def _listed(root: Path) -> tuple[set[str], list[str]]:
    """Returns what is in a directory, and which of it are directories, in order."""
    if isinstance(root, UrlPath):
        inside = list(root.iterdir())
        return {one.name for one in inside}, [one.name for one in inside if one.is_dir()]
    with os.scandir(root) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    names = {entry.name for entry in entries}
    return names, [e.name for e in entries if e.is_dir(follow_symlinks=False)]


def _entry(path: Path, name: str) -> RunEntry:
    try:
        run = open_run(path)
        return RunEntry(
            run_id(path),
            name,
            path,
            samples=len(run),
            systems=tuple(str(system) for system in run.systems),
            metrics=tuple(_means(run)),
            finished=_finished(run),
        )
    except DialevalError as error:
        return RunEntry(run_id(path), name, path, problem=str(error))
    except (KeyError, TypeError, ValueError, AttributeError):
        problem = "its manifest.json is not one that dialeval writes"
        return RunEntry(run_id(path), name, path, problem=problem)


def _means(run: Run) -> Iterator[MetricMean]:
    for metric in run.manifest["metrics"]:
        label = metric["label"]
        scores = [system["scores"][label] for system in run.manifest["systems"]]
        scored = sum(int(one["n"]) for one in scores)
        total = sum(float(one["mean"]) * one["n"] for one in scores if one["mean"] is not None)
        mean = total / scored if scored else None
        yield MetricMean(label, metric["direction"], mean, scored)


def _finished(run: Run) -> str:
    try:
        times = [event["time"] for event in run.history if event["event"] == "finished"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return str(times[-1])[:16].replace("T", " ") if times else ""
