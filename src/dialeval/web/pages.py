"""The pages over runs: the list, the rows of one, a dialogue, what if, two side by side."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable
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

from dialeval.report.dialogue import DialogueView, dialogue_view
from dialeval.web.frame import Settings, check_csrf, render
from dialeval.web.rescore import LONGEST_RESPONSE, BusyError, Rescorer, WhatIf
from dialeval.web.row_list import Query, list_columns, list_page, page_number
from dialeval.web.rows import Numbers, Orderings, RunRows
from dialeval.web.run_search import Catalogue, RunEntry
from dialeval.web.side_by_side import side_by_side

PER_PAGE = 50


@dataclass(frozen=True)
class RunPages:
    """What `create_app` mounts: the routes, and what has to be closed at the end."""

    routes: list[BaseRoute]
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class Neighbours:
    """Where a row stands in the list it was opened from; None where there is nothing."""

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
