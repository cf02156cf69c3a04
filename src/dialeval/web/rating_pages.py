"""The rater's pages: instructions, one dialogue at a time, pause, end.

    /rate/CODE            instructions, and where to go on
    /rate/CODE/12         the twelfth page; a POST saves it
    /rate/CODE/pause      come back whenever you like, in any browser
    /rate/CODE/done       thank you

A POST answers when the rating is on the disk: with a redirect to the next page, or with JSON where
a script asks for it. What is sent twice under the same submission is saved once.

A task is shown as a chat, with nothing that tells who spoke or what metrics say. The organiser's
page says how far everybody is, whether raters agree, what they prefer; it also exports.
"""

from __future__ import annotations

import hmac
import io
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from dialeval.rating.job import FIRST, PREFERENCE, SECOND, TIE, Answers, Job, Quality
from dialeval.rating.overview import Overview, overview
from dialeval.rating.results import export_text
from dialeval.rating.store import LONGEST_COMMENT, Rater, Showing, Store
from dialeval.report.dialogue import DialogueView, dialogue_view
from dialeval.sample import Sample
from dialeval.web.frame import check_csrf, render

MOST_TURNS = 1000
"""A rater judges the whole dialogue, so the whole of it is shown."""

LEFT, EQUAL, RIGHT = "left", "equal", "right"


@dataclass(frozen=True)
class BlindTask:
    """The content of the page. For a comparison, `answers` holds the left and the right one."""

    context: DialogueView
    answers: tuple[DialogueView, ...]
    shares_context: bool
    """Whether both sides answer the same turns; if not, each is shown with its own."""


def blind(showing: Showing) -> BlindTask:
    samples = showing.task.samples
    if showing.assignment.flipped:
        samples = samples[::-1]
    views = tuple(_view(sample) for sample in samples)
    contexts = {tuple(turn.text for turn in sample.context) for sample in samples}
    is_answered = all(sample.response is not None for sample in samples)
    return BlindTask(views[0], views, len(contexts) == 1 and is_answered)


def choice_of(value: float, flipped: bool) -> str:
    """Returns which button stands for a stored comparison."""
    if value == TIE:
        return EQUAL
    return LEFT if (value == FIRST) != flipped else RIGHT


def value_of(choice: str, flipped: bool) -> float | None:
    """Returns what a button of a comparison stands for; None where it is no button."""
    if choice == EQUAL:
        return TIE
    if choice not in (LEFT, RIGHT):
        return None
    return FIRST if (choice == LEFT) != flipped else SECOND


def _view(sample: Sample) -> DialogueView:
    """Hides the name of the system, also where speakers are called by it."""
    names = {sample.system, "system"} - {""}
    row: dict[str, Any] = {
        "id": "",
        "system": "",
        "dialogue": "",
        "item": "",
        "context": [
            {"speaker": "system" if turn.speaker in names else turn.speaker, "text": turn.text}
            for turn in sample.context
        ],
        "response": sample.response,
        "references": (),
        "facts": sample.facts,
        "variants": [
            {"query": variant.query, "response": variant.response} for variant in sample.variants
        ],
        "ratings": (),
    }
    return dialogue_view(row, (), most_turns=MOST_TURNS)


KINDS = {
    "ratings.jsonl": ("jsonl", "application/x-ndjson"),
    "ratings.csv": ("csv", "text/csv; charset=utf-8"),
    "answers.jsonl": ("answers", "application/x-ndjson"),
}
FRESH_SECONDS = 2.0
"""Numbers this old are new enough: many open pages must not keep the raters waiting."""


@dataclass(frozen=True)
class Known:
    """The overview of a job as it was computed last, and when."""

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


OPEN_PREFIXES = ("/rate/", "/organise/", "/static/")
"""Paths that carry a code of their own, or nothing that anybody may not see."""


def rating_routes(store: Store) -> list[BaseRoute]:
    rater, organiser = RaterViews(store), Organiser(store)
    return [
        Route("/rate/{code}", rater.welcome),
        Route("/rate/{code}/pause", rater.pause),
        Route("/rate/{code}/done", rater.done),
        Route("/rate/{code}/{position:number}", rater.show, methods=["GET"]),
        Route("/rate/{code}/{position:number}", rater.save, methods=["POST"]),
        *organiser.routes(),
    ]


class RaterViews:
    """Answers raters. The plain functions run in threads, as the store waits for the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def welcome(self, request: Request) -> Response:
        rater = self._rater(request)
        first = self._store.show(rater, 1)
        is_answer = first is None or first.task.samples[0].response is not None
        groups = first is not None and bool(first.task.samples[0].variants)
        return self._page(
            request, rater, "welcome.html", rates_answers=is_answer, rates_groups=groups
        )

    def pause(self, request: Request) -> Response:
        return self._page(request, self._rater(request), "pause.html")

    def done(self, request: Request) -> Response:
        rater = self._rater(request)
        if still_open := self._store.first_open(rater):
            return RedirectResponse(f"{_home(rater)}/{still_open}", 303)
        return self._page(request, rater, "done.html")

    def show(self, request: Request) -> Response:
        rater = self._rater(request)
        showing = self._showing(request, rater)
        chosen = {}
        if showing.answers is not None:
            chosen = _chosen(self._store.job, showing.answers, showing.assignment.flipped)
        return self._task_page(request, rater, showing, chosen, showing.comment)

    async def save(self, request: Request) -> Response:
        rater = await run_in_threadpool(self._rater, request)
        await check_csrf(request)
        form = {name: value for name, value in (await request.form()).items() if type(value) is str}
        return await run_in_threadpool(self._save, request, rater, form)

    def _save(self, request: Request, rater: Rater, form: Mapping[str, str]) -> Response:
        position = request.path_params["position"]
        assignment = self._store.locate(rater, position)
        if assignment is None:
            raise HTTPException(404)
        chosen = {
            quality.name: form.get(f"q{place}", "")
            for place, quality in enumerate(self._store.job.qualities)
        }
        answers = _answers(self._store.job, chosen, assignment.flipped)
        wants_json = request.headers.get("accept", "").startswith("application/json")
        comment = form.get("comment", "").replace("\r\n", "\n").strip()
        problem = ""
        if answers is None:
            problem = "Nothing was saved: answer every question first."
        elif len(comment) > LONGEST_COMMENT:
            problem = (
                f"Nothing was saved: the comment has {len(comment):,} characters, and at most"
                f" {LONGEST_COMMENT:,} are kept."
            )
        if answers is None or problem:
            if wants_json:
                return JSONResponse({"saved": False, "problem": problem}, 422)
            showing = self._showing(request, rater)
            return self._task_page(
                request, rater, showing, chosen, comment, problem, status_code=422
            )
        self._store.save(rater, position, answers, form.get("submission", ""), comment)
        target = f"{_home(rater)}/{self._next_page(rater, position)}?saved={position}"
        if wants_json:
            return JSONResponse({"saved": True, "next": target})
        return RedirectResponse(target, 303)

    def _next_page(self, rater: Rater, position: int) -> int | str:
        """Forward through the pages; at their end, to the first that was left open."""
        if position < self._store.total(rater):
            return position + 1
        return self._store.first_open(rater) or "done"

    def _rater(self, request: Request) -> Rater:
        rater = self._store.find_rater(request.path_params["code"])
        if rater is None:
            raise HTTPException(404, "There is no such rater.")
        return rater

    def _showing(self, request: Request, rater: Rater) -> Showing:
        position = request.path_params["position"]
        showing = self._store.show(rater, position) if position > 0 else None
        if showing is None:
            raise HTTPException(404)
        return showing

    def _task_page(
        self,
        request: Request,
        rater: Rater,
        showing: Showing,
        chosen: Mapping[str, str],
        comment: str,
        problem: str = "",
        status_code: int = 200,
    ) -> Response:
        compares = self._store.job.kind == "compare"
        sides = ((LEFT, "A is better"), (EQUAL, "About the same"), (RIGHT, "B is better"))
        questions = [
            {
                "field": f"q{place}",
                "quality": quality,
                "title": _title(quality),
                "options": sides if compares else [(str(p), str(p)) for p in quality.points],
                "chosen": chosen.get(quality.name, ""),
            }
            for place, quality in enumerate(self._store.job.qualities)
        ]
        saved = request.query_params.get("saved", "")
        return self._page(
            request,
            rater,
            "task.html",
            status_code=status_code,
            showing=showing,
            task=blind(showing),
            questions=questions,
            comment=comment,
            longest_comment=LONGEST_COMMENT,
            submission=secrets.token_urlsafe(16),
            problem=problem,
            saved=int(saved) if saved.isascii() and saved.isdecimal() and len(saved) < 8 else 0,
        )

    def _page(
        self,
        request: Request,
        rater: Rater,
        template: str,
        *,
        status_code: int = 200,
        **values: Any,
    ) -> Response:
        values |= {
            "job": self._store.job,
            "rater": rater,
            "home": _home(rater),
            "done": self._store.done(rater),
            "total": self._store.total(rater),
            "first_open": lambda: self._store.first_open(rater),
        }
        return render(request, f"rating/{template}", status_code=status_code, **values)


def _title(quality: Quality) -> str:
    """Nobody chose the name of the usual comparison: its question says it all."""
    return quality.description or quality.name if quality.name == PREFERENCE else quality.name


def _home(rater: Rater) -> str:
    return f"/rate/{rater.token}"


def _chosen(job: Job, answers: Answers, flipped: bool) -> dict[str, str]:
    if job.kind == "compare":
        return {name: choice_of(value, flipped) for name, value in answers.items()}
    return {name: f"{value:g}" for name, value in answers.items()}


def _answers(job: Job, chosen: Mapping[str, str], flipped: bool) -> Answers | None:
    """Returns the answers in the terms of the job; None where some are missing or out of place."""
    answers: dict[str, float] = {}
    for name, text in chosen.items():
        if job.kind == "compare":
            value = value_of(text, flipped)
        else:
            value = float(text) if text.isascii() and text.isdecimal() and len(text) < 4 else None
        if value is None:
            return None
        answers[name] = value
    return answers if job.allows(answers) else None
