"""The pages over runs: the list, the rows of one, a dialogue, what if, two side by side.

A run is addressed by an id that does not show where it lies. A request can only name an id, which
is looked up among the runs that were found below the given directories. No part of a request ever
becomes a path.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dialeval.errors import DialevalError
from dialeval.remote import UrlPath, located
from dialeval.report.dialogue import DialogueView, dialogue_view
from dialeval.runs.run import Run, open_run
from dialeval.web.frame import Settings, check_csrf, render
from dialeval.web.rescore import LONGEST_RESPONSE, BusyError, Rescorer, WhatIf, side_by_side
from dialeval.web.rows import (
    Numbers,
    Orderings,
    Query,
    RunRows,
    list_columns,
    list_page,
    page_number,
)

DEPTH = 4
"""The depth below a given directory at which a run may lie: runs/2026/august/first."""

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


PER_PAGE = 50


@dataclass(frozen=True)
class RunPages:
    """The routes that `create_app` mounts, and the context that closes them."""

    routes: list[BaseRoute]
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class Neighbours:
    """The place and the neighbours of a row in the list that it was opened from; None: none."""

    place: int | None
    count: int
    previous: int | None
    next: int | None


def run_routes(settings: Settings) -> RunPages:
    pages = RunViews(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(pages.rescorer.close)

    return RunPages(
        [
            Route("/", pages.runs),
            Route("/run/{run}", pages.run),
            Route("/run/{run}/{row:number}", pages.dialogue),
            Route("/run/{run}/{row:number}/what-if", pages.what_if, methods=["POST"]),
            Route("/compare", pages.compare),
        ],
        lifespan,
    )


class RunViews:
    """Answers requests. Reading is done in threads, so that one slow search holds up nobody."""

    def __init__(self, settings: Settings) -> None:
        self.rescorer = Rescorer(settings.models)
        self._catalogue = Catalogue(settings.roots)
        self._orderings = Orderings()
        self._opened: dict[str, RunRows] = {}

    def runs(self, request: Request) -> Response:
        found = self._catalogue.find()
        return render(request, "runs.html", runs=found.entries, is_whole=found.is_whole)

    def run(self, request: Request) -> Response:
        entry, rows = self._rows(request)
        query = Query.parse(request.query_params, rows.shape)
        numbers = self._orderings.of(rows, query)
        pages = max(1, -(-len(numbers) // PER_PAGE))
        page = min(page_number(request.query_params.get("page", "")), pages)
        shown = numbers[(page - 1) * PER_PAGE : page * PER_PAGE].tolist()
        taken = rows.take(shown, list_columns(rows.shape))
        return render(
            request,
            "run.html",
            entry=entry,
            shape=rows.shape,
            query=query,
            total=len(rows),
            table=rows.run.table(),
            listing=list_page(query, rows.shape, shown, taken, len(numbers), page, pages, PER_PAGE),
        )

    def dialogue(self, request: Request) -> Response:
        entry, rows = self._rows(request)
        query = Query.parse(request.query_params, rows.shape)
        row = self._row(request, rows)
        return self._dialogue_page(request, entry, rows, query, row, None)

    async def what_if(self, request: Request) -> Response:
        await check_csrf(request)
        response = (await request.form()).get("response")
        if not isinstance(response, str):
            raise HTTPException(400, "The form holds no response.")
        response = response.replace("\r\n", "\n")
        if len(response) > LONGEST_RESPONSE:
            raise HTTPException(
                400, f"The response is too long: at most {LONGEST_RESPONSE:,} characters."
            )
        entry, rows = await run_in_threadpool(self._rows, request)
        query = Query.parse(request.query_params, rows.shape)
        row = await run_in_threadpool(self._row, request, rows)
        if row["response"] is None:
            raise HTTPException(400, "Here the whole dialogue is judged: there is no response.")
        try:
            future = self.rescorer.submit(rows.run, row, response)
        except BusyError as error:
            raise HTTPException(503, str(error)) from error
        found = await asyncio.wrap_future(future)
        return await run_in_threadpool(self._dialogue_page, request, entry, rows, query, row, found)

    def compare(self, request: Request) -> Response:
        chosen = request.query_params.getlist("run")
        if len(chosen) != 2 or chosen[0] == chosen[1]:
            raise HTTPException(400, "Choose two runs to see them side by side.")
        first, second = (self._open(identity) for identity in chosen)
        sides = side_by_side(first[1].run, second[1].run)
        return render(
            request,
            "compare.html",
            first=first[0],
            second=second[0],
            sides=sides,
            command=shlex.join(_typed(entry.path) for entry in (first[0], second[0])),
        )

    def _dialogue_page(
        self,
        request: Request,
        entry: RunEntry,
        rows: RunRows,
        query: Query,
        row: dict[str, Any],
        what_if: WhatIf | None,
    ) -> Response:
        number = request.path_params["row"]
        metrics = rows.run.manifest["metrics"]
        view = dialogue_view(row, metrics)
        return render(
            request,
            "row.html",
            entry=entry,
            query=query,
            number=number,
            view=view,
            response=row["response"],
            neighbours=neighbours(self._orderings.of(rows, query), number),
            page_of=lambda place: place // PER_PAGE + 1,
            what_if=what_if,
            edited=_edited_view(what_if, metrics),
            longest=LONGEST_RESPONSE,
        )

    def _rows(self, request: Request) -> tuple[RunEntry, RunRows]:
        return self._open(request.path_params["run"])

    def _open(self, identity: str) -> tuple[RunEntry, RunRows]:
        """Opens the run with this id; its footer is read once, and again when the file was
        replaced."""
        found = self._catalogue.open(identity)
        if found is None:
            raise HTTPException(404)
        entry, run = found
        rows = self._opened.get(identity)
        if rows is None or not rows.is_current() or rows.run.manifest != run.manifest:
            rows = RunRows(run)
            self._opened[identity] = rows
            while len(self._opened) > MOST_OPENED:
                self._opened.pop(next(iter(self._opened)), None)
        return entry, rows

    def _row(self, request: Request, rows: RunRows) -> dict[str, Any]:
        number = request.path_params["row"]
        if number >= len(rows):
            raise HTTPException(404)
        return rows.take([number])[0]


MOST_OPENED = 8
"""Footers that are kept: a few MB each where a run has many row groups."""


def _typed(path: Path) -> str:
    """Returns the path as one would type it where the server was started."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def neighbours(numbers: Numbers, row: int) -> Neighbours:
    found = np.flatnonzero(numbers == row)
    if not found.size:  # an address typed by hand, or a filter that the row does not pass
        return Neighbours(None, len(numbers), None, None)
    place = int(found[0])
    return Neighbours(
        place,
        len(numbers),
        int(numbers[place - 1]) if place else None,
        int(numbers[place + 1]) if place + 1 < len(numbers) else None,
    )


def _edited_view(found: WhatIf | None, metrics: list[dict[str, Any]]) -> DialogueView | None:
    if found is None:
        return None
    return dialogue_view(found.row, [m for m in metrics if m["label"] in found.scored])
