"""The organiser's page: how far everybody is, whether raters agree, what they prefer, export."""

from __future__ import annotations

import hmac
import io
import threading
import time
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dialeval.rating.overview import Overview, overview
from dialeval.rating.results import export_text
from dialeval.rating.store import Store
from dialeval.web.frame import render

KINDS = {
    "ratings.jsonl": ("jsonl", "application/x-ndjson"),
    "ratings.csv": ("csv", "text/csv; charset=utf-8"),
    "answers.jsonl": ("answers", "application/x-ndjson"),
}
FRESH_SECONDS = 2.0
"""Numbers this old are new enough: many open pages must not keep the raters waiting."""


@dataclass(frozen=True)
class Known:
    last: tuple[int, int]
    """The number of the last rating, and of raters: what the numbers depend on."""
    at: float
    numbers: Overview


class Organiser:
    """Answers the organiser."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: Known | None = None
        self._lock = threading.Lock()

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/organise/{code}", self.show),
            Route("/organise/{code}/{name}", self.export),
        ]

    def show(self, request: Request) -> Response:
        self._check(request)
        origin = f"{request.url.scheme}://{request.headers['host']}"
        return render(
            request,
            "rating/organiser.html",
            job=self._store.job,
            overview=self._overview(),
            links={rater.name: f"{origin}/rate/{rater.token}" for rater in self._store.raters()},
            home=f"/organise/{self._store.organiser}",
            files=list(KINDS),
            database=self._store.address.shown,
        )

    def export(self, request: Request) -> Response:
        self._check(request)
        name = request.path_params["name"]
        if name not in KINDS:
            raise HTTPException(404)
        to, kind = KINDS[name]
        text = io.StringIO(newline="")
        export_text(self._store, to, text)
        return Response(
            text.getvalue().encode(),
            media_type=kind,
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )

    def _overview(self) -> Overview:
        with self._lock:
            known, now = self._known, time.monotonic()
            if known is None or now - known.at > FRESH_SECONDS:
                last = (self._store.last_number(), len(self._store.raters()))
                if known is None or known.last != last:
                    known = Known(last, now, overview(self._store))
                self._known = Known(last, now, known.numbers)
            assert self._known is not None
            return self._known.numbers

    def _check(self, request: Request) -> None:
        code = request.path_params["code"].encode("utf-8", "replace")
        if not hmac.compare_digest(code, self._store.organiser.encode()):
            raise HTTPException(404, "There is no such page.")
