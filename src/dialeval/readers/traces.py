"""Traces of applications: Langfuse and LangSmith exports. What a user asked, and what came back.

    {"id": "t1", "sessionId": "s1", "input": {"messages": [...]}, "output": "Ahoy!",
     "observations": [{"id": "o1", "type": "GENERATION", "model": "gpt-4o", "input": [...], ...}]}
    {"id": "r1", "trace_id": "r1", "parent_run_id": null, "run_type": "chain",
     "inputs": {"question": "Hi!"}, "outputs": {"answer": "Ahoy!"}}

A trace is a tree of spans: a request, in it a chain, in it calls of models and tools. The user saw
what came out of the outermost span that holds a question and an answer, so that is judged: one
sample for each such span. Where a call of a model inside it gave the same answer, its messages are
the context, as they hold the earlier turns; instructions are left out as in any chat log. Spans of
one trace may stand anywhere in a file, so memory holds what was said in all of them.

The id is that of the trace or run, and `TRACE?observation=ID` where an observation of Langfuse is
judged itself: both are needed to send scores back. The system is the model that was called. The
dialogue is Langfuse's `sessionId`, or `thread_id`, `session_id` or `conversation_id` in LangSmith's
metadata; else the trace. Langfuse's scores of people (source `ANNOTATION`) are ratings.

Both camel case and snake case are read, from JSON, tables with JSON in their cells, and Parquet. An
example of a LangSmith data set (`inputs`, `outputs`) is read like a run. `opentelemetry.py` reads
spans of OpenTelemetry and OpenInference in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dialeval.readers import fields
from dialeval.readers.containers import columns, records
from dialeval.readers.messages import Chat, Messages, last_answer, messages_in
from dialeval.readers.plain_record import renamed, value_at
from dialeval.readers.reader import Place, Problems, Reader, ReadOptions
from dialeval.readers.source import Source
from dialeval.runs.export import OBSERVATION
from dialeval.sample import Rating, Ratings, Sample

LANGFUSE = {
    "traceId", "trace_id", "sessionId", "observations", "projectId", "project_id", "htmlPath",
    "startTime", "bookmarked", "parentObservationId", "parent_observation_id",
}  # fmt: skip
"""One of these beside `input` and `output` makes a record one of Langfuse."""


@dataclass(slots=True)
class Span:
    """A step of a trace: what it was given and what it gave."""

    trace: str
    id: str
    parent: str
    calls_model: bool
    asked: Messages
    told: Messages
    dialogue: str = ""
    system: str = ""
    line: int = 0
    ratings: Ratings = field(default_factory=dict)
    name: str = ""
    """The id of the sample, if it is another than that of the span."""
    is_part: bool = False
    """Whether other records may hold more of what was said in it."""

    @property
    def answer(self) -> Mapping[str, Any] | None:
        return last_answer(self.told)


Spans = Callable[[Mapping[str, Any], Place], Iterator[Span]]


def reads(spans_of: Spans) -> Callable[[Source, Place, ReadOptions], Iterator[Sample]]:
    """Yields a reader of records in which `spans_of` finds spans."""

    def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
        traces: dict[str, dict[str, Span]] = {}
        for number, (line, value) in enumerate(records(source, place), 1):
            place.line = line
            record = renamed(fields.record(value, place), options.columns)
            for span in spans_of(record, place):
                span.line = line
                span.id = span.id or f"{source.label}-{number:06d}"
                if options.columns:
                    span.system = _named(record, "system") or span.system
                    span.dialogue = _named(record, "dialogue") or span.dialogue
                trace = traces.setdefault(span.trace or span.id, {})
                if span.is_part and (before := trace.get(span.id)):
                    span.asked, span.told = before.asked + span.asked, before.told + span.told
                    span.line = before.line
                elif span.answer is None and not span.is_part:
                    span.asked, span.told = [], []
                trace[span.id] = span
        for name, trace in traces.items():
            for span in outermost(trace):
                yield from _samples(span, name, place, options)
        steps = [span for trace in traces.values() for span in trace.values()]
        if silent := sum(span.answer is None for span in steps):
            place.line = 0
            place.warning("", f"{silent} of {len(steps)} steps say nothing to a user: left out")

    return read


def _named(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    return str(value) if isinstance(value, str | int) else ""


def outermost(trace: Mapping[str, Span]) -> list[Span]:
    """Returns the spans of a trace that the user saw, with the context of the calls inside them."""
    speaking = {name: span for name, span in trace.items() if span.answer is not None}
    inside: dict[str, list[Span]] = {}
    seen = []
    for span in speaking.values():
        top, above, met = "", span.parent, {span.id}
        while above and above not in met:
            met.add(above)
            top = above if above in speaking else top
            above = trace[above].parent if above in trace else ""
        if top:
            inside.setdefault(top, []).append(span)
        else:
            seen.append(span)
    for span in seen:
        calls = [one for one in inside.get(span.id, ()) if one.calls_model]
        same = [one for one in calls if _said(one) == _said(span)]
        span.system = span.system or next((one.system for one in (*same, *calls)), "")
        if same and len(same[-1].asked) >= len(span.asked):
            span.asked = same[-1].asked
    return seen


def _said(span: Span) -> str:
    chat = Chat(Place(Problems(), ""), ReadOptions())
    chat.add(span.answer or {}, "")
    return chat.turns[0].text.strip() if chat.turns else ""


def _samples(span: Span, trace: str, place: Place, options: ReadOptions) -> Iterator[Sample]:
    place.line = span.line
    errors = place.problems.errors
    chat = Chat(place, options, (), span.system)
    chat.add_all(span.asked, "input", judged=False)
    chat.add(span.answer, "output")
    if place.problems.errors > errors:
        place.problems.skipped += 1
        return
    for sample in chat.samples(span.dialogue or trace):
        yield Sample(
            id=span.name or span.id,
            context=sample.context,
            response=sample.response,
            facts=sample.facts,
            system=span.system,
            dialogue=sample.dialogue,
            ratings=span.ratings,
        )


def _any(record: Mapping[str, Any], *keys: str) -> Any:
    return next((record[key] for key in keys if record.get(key) is not None), None)


def text_at(record: Mapping[str, Any], *keys: str) -> str:
    value = _any(record, *keys)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


# ---- Langfuse ----------------------------------------------------------------------------------


def _langfuse(record: Mapping[str, Any], place: Place) -> Iterator[Span]:
    """Yields a trace with its observations, a row of either, or a session with its traces."""
    if isinstance(sessions := record.get("traces"), list):
        for one in sessions:
            if isinstance(one, Mapping):
                yield from _langfuse({"sessionId": record.get("id"), **one}, place)
        return
    inner = record.get("trace")
    trace = {**record, **inner} if isinstance(inner, Mapping) else record
    name = text_at(trace, "traceId", "trace_id")
    session = text_at(trace, "sessionId", "session_id")
    ident = text_at(trace, "id")
    kind = text_at(trace, "type").upper()
    yield Span(
        trace=name or ident,
        id=ident,
        parent=text_at(trace, "parentObservationId", "parent_observation_id"),
        calls_model=kind == "GENERATION",
        asked=messages_in(trace.get("input"), "user"),
        told=messages_in(trace.get("output"), "assistant"),
        dialogue=session,
        system=_model(trace),
        ratings=_langfuse_scores(trace.get("scores"), place),
        name=f"{name}{OBSERVATION}{ident}" if name and ident and name != ident else "",
    )
    observations = record.get("observations")
    if isinstance(observations, str):
        observations = _parsed(observations)
    for one in observations if isinstance(observations, list) else ():
        if isinstance(one, Mapping):
            below = {"traceId": ident, "sessionId": session, **one}
            for span in _langfuse(below, place):
                span.parent = span.parent or ident
                span.dialogue = span.dialogue or session
                yield span


def _model(record: Mapping[str, Any]) -> str:
    return text_at(
        record, "model", "modelName", "provided_model_name", "providedModelName", "internalModel"
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _langfuse_scores(scores: object, place: Place) -> Ratings:
    """Returns what people said in the annotation view; scores of programs are no ratings."""
    found: dict[str, Rating] = {}
    for one in scores if isinstance(scores, list) else ():
        if not isinstance(one, Mapping) or one.get("source") != "ANNOTATION":
            continue
        value, name = one.get("value"), text_at(one, "name")
        if isinstance(value, int | float) and not isinstance(value, bool) and name:
            before = found.get(name, Rating(()))
            found[name] = Rating((*before.values, float(value)))
    return found


def _is_langfuse(source: Source) -> bool:
    names = columns(source)
    if {"input", "output"} <= names:
        return not names.isdisjoint(LANGFUSE)
    return {"trace", "observations"} <= names or {"traces", "projectId"} <= names


# ---- LangSmith ---------------------------------------------------------------------------------

THREADS = ("thread_id", "session_id", "conversation_id")


def _langsmith(record: Mapping[str, Any], place: Place) -> Iterator[Span]:
    ident = text_at(record, "id", "run_id")
    extra = record.get("extra")
    extra = _parsed(extra) if isinstance(extra, str) else extra
    metadata = value_at(extra, "metadata") if isinstance(extra, Mapping) else record.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    yield Span(
        trace=text_at(record, "trace_id") or ident,
        id=ident,
        parent=text_at(record, "parent_run_id"),
        calls_model=text_at(record, "run_type") == "llm",
        asked=messages_in(record.get("inputs"), "user"),
        told=messages_in(record.get("outputs"), "assistant"),
        dialogue=text_at(record, "thread_id") or text_at(metadata, *THREADS),
        system=text_at(metadata, "ls_model_name")
        or text_at(_mapping(record.get("inputs")), "model"),
    )
    for child in record.get("child_runs") or ():
        if isinstance(child, Mapping):
            for span in _langsmith({"trace_id": record.get("trace_id") or ident, **child}, place):
                span.parent = span.parent or ident
                yield span


def _mapping(value: object) -> Mapping[str, Any]:
    value = _parsed(value) if isinstance(value, str) else value
    return value if isinstance(value, Mapping) else {}


def _is_langsmith(source: Source) -> bool:
    return {"inputs", "outputs"} <= columns(source)


LANGFUSE_READER = Reader(
    "langfuse",
    "Langfuse exports: traces or observations with input and output",
    _is_langfuse,
    reads(_langfuse),
)
LANGSMITH_READER = Reader(
    "langsmith",
    "LangSmith exports: runs or examples with inputs and outputs",
    _is_langsmith,
    reads(_langsmith),
)
