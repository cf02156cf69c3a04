"""Traces of applications: what a user asked, and what came back.

Langfuse and LangSmith export

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
example of a LangSmith data set (`inputs`, `outputs`) is read like a run.

Spans of OpenTelemetry are read in the same way, with the GenAI or the OpenInference conventions:

    {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "5b8e...", "spanId": "eee1...",
      "attributes": [{"key": "gen_ai.input.messages", "value": {"stringValue": "[{...}]"}}]}]}]}]}
    {"name": "chat gpt-4o", "context": {"trace_id": "0x5b8e...", "span_id": "0xeee1..."},
     "parent_id": null, "attributes": {"llm.input_messages.0.message.role": "user", ...}}

The first is what OTLP writes as JSON (the file exporter: such an object for each batch), the second
what Python's `ConsoleSpanExporter` prints and Phoenix exports. Jaeger's download (`spans` with
`tags`) is read like them. What was said stands in

- `gen_ai.input.messages`, `gen_ai.output.messages`, `gen_ai.system_instructions` (JSON),
- `gen_ai.prompt.0.role`, `gen_ai.completion.0.content` and so on (OpenLLMetry),
- events `gen_ai.user.message`, `gen_ai.assistant.message`, `gen_ai.choice` of the span, or one that
  holds the attributes above; `resourceLogs` holds such events as records of their own, which name
  their span,
- `llm.input_messages.0.message.content`, `llm.output_messages...`, `input.value`, `output.value`
  (OpenInference).

The dialogue of such spans is `gen_ai.conversation.id` or `session.id`; the system is
`gen_ai.response.model`, `gen_ai.request.model` or `llm.model_name`.
"""

from __future__ import annotations

import json
import re
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


_INDEXED = re.compile(r"(.*?)\.(\d{1,6})\.(.+)")
MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
DIALOGUES = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")
SAID_IN_EVENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def _spans(record: Mapping[str, Any], place: Place) -> Iterator[Span]:
    if isinstance(record.get("spans"), list):
        yield from map(_span, map(_of_jaeger, _objects(record["spans"])))
    elif logs := _inside(record, "Logs", "logRecords"):
        yield from map(_span, _with_their_events(logs))
    elif "resourceSpans" in record or "resource_spans" in record:
        yield from map(_span, _inside(record, "Spans", "spans"))
    else:
        yield _span(record)


def _inside(record: Mapping[str, Any], kind: str, listed: str) -> list[Mapping[str, Any]]:
    """Returns the spans or the records of a batch of OTLP."""
    found: list[Mapping[str, Any]] = []
    for batch in _objects(_either(record, f"resource{kind}")):
        scopes = _either(batch, f"scope{kind}") or batch.get(f"instrumentationLibrary{kind}")
        for scope in _objects(scopes):
            found += _objects(_either(scope, listed))
    return found


def _either(record: Mapping[str, Any], name: str) -> Any:
    """OTLP spells names in camel case, older exporters in snake case."""
    return record.get(name) or record.get(re.sub(r"([A-Z])", lambda m: f"_{m[1].lower()}", name))


def _with_their_events(logs: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns a span for each one that the records name, with the records as its events."""
    spans: dict[tuple[str, str], dict[str, Any]] = {}
    for one in logs:
        attributes = _attributes(one)
        name = text_at(one, "eventName", "event_name") or text_at(attributes, "event.name")
        if not name.startswith("gen_ai."):
            continue
        body = _of_otlp(one.get("body"))
        trace, ident = text_at(one, "traceId", "trace_id"), text_at(one, "spanId", "span_id")
        named = {"traceId": trace, "spanId": ident, "in_logs": True, "events": []}
        span = spans.setdefault((trace, ident), named)
        held = body if isinstance(body, Mapping) else {}
        span["events"].append({"name": name, "attributes": {**attributes, **held}})
    return [*spans.values()]


def _of_jaeger(span: Mapping[str, Any]) -> dict[str, Any]:
    above = [text_at(one, "spanID") for one in _objects(span.get("references"))]
    return {
        "traceId": span.get("traceID"),
        "spanId": span.get("spanID"),
        "parentSpanId": next(iter(above), ""),
        "attributes": span.get("tags"),
        "events": [
            {"name": _attributes(event).get("event"), **event}
            for one in _objects(span.get("logs"))
            for event in [{"attributes": one.get("fields")}]
        ],
    }


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _span(record: Mapping[str, Any]) -> Span:
    said = _attributes(record)
    events = [(text_at(one, "name"), _attributes(one)) for one in _objects(record.get("events"))]
    for name, more in events:
        told = name == "gen_ai.client.inference.operation.details"
        said = {**{key: value for key, value in more.items() if told or ".messages" in key}, **said}
    context = record.get("context")
    place = {**record, **(context if isinstance(context, Mapping) else {})}
    return Span(
        trace=text_at(place, "traceId", "trace_id", "context.trace_id"),
        id=text_at(place, "spanId", "span_id", "context.span_id"),
        parent=text_at(place, "parentSpanId", "parent_span_id", "parent_id"),
        calls_model=_calls_model(record, said),
        asked=_asked(said, events),
        told=_told(said, events),
        dialogue=text_at(said, *DIALOGUES),
        system=text_at(said, *MODELS),
        is_part="in_logs" in record,
    )


def _calls_model(record: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    kind = text_at(said, "openinference.span.kind") or text_at(record, "span_kind")
    operation = text_at(said, "gen_ai.operation.name")
    return kind == "LLM" or operation in ("chat", "text_completion", "generate_content")


def _asked(said: Mapping[str, Any], events: list[tuple[str, dict[str, Any]]]) -> Messages:
    instructions: Messages = []
    if (text := _value(said, "gen_ai.system_instructions")) is not None:
        instructions = [{"role": "system", "content": text}]
    for key in ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages"):
        if found := messages_in(_value(said, key), "user"):
            return instructions + found
    told: Messages = [
        {"role": SAID_IN_EVENTS[name], **_message(body)}
        for name, body in events
        if name in SAID_IN_EVENTS
    ]
    for key in ("input.value", "traceloop.entity.input"):
        told = told or messages_in(_value(said, key), "user")
    return instructions + told


def _told(said: Mapping[str, Any], events: list[tuple[str, dict[str, Any]]]) -> Messages:
    for key in ("gen_ai.output.messages", "gen_ai.completion", "llm.output_messages"):
        if found := messages_in(_value(said, key), "assistant"):
            return found
    for name, body in events:
        if name == "gen_ai.choice":
            inner = _spelled(body.get("message"))
            return messages_in(inner if inner is not None else _message(body), "assistant")
    for key in ("output.value", "traceloop.entity.output"):
        if found := messages_in(_value(said, key), "assistant"):
            return found
    return []


def _message(body: Mapping[str, Any]) -> dict[str, Any]:
    inner = _spelled(body.get("gen_ai.event.content") or body.get("body"))
    return dict(inner) if isinstance(inner, Mapping) else dict(body)


def _value(said: Mapping[str, Any], key: str) -> Any:
    """Returns the value of an attribute: as it is, spelled as JSON, or spread over indexed
    attributes."""
    if key in said:
        return _spelled(said[key])
    found: dict[int, dict[str, Any]] = {}
    for name, value in said.items():
        index, _, path = name.removeprefix(f"{key}.").partition(".")
        if name.startswith(f"{key}.") and index.isdecimal() and path:
            _put(found.setdefault(int(index), {}), path, value)
    return [_listed(found[index]) for index in sorted(found)] or None


def _put(message: dict[str, Any], path: str, value: Any) -> None:
    """`message.contents.0.message_content.text` -> nested objects and lists by number."""
    if match := _INDEXED.fullmatch(path):
        held = message.setdefault(match[1], {})
        if isinstance(held, dict):
            _put(held.setdefault(int(match[2]), {}), match[3], value)
    else:
        message[path] = value


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(isinstance(key, int) for key in value):
        return [_listed(value[key]) for key in sorted(value)]
    return {key: _listed(one) for key, one in value.items()}


def _spelled(value: Any) -> Any:
    """Returns what a JSON string spells; other text as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _attributes(record: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes by name: a list of OTLP, an object, or columns `attributes.NAME`."""
    given = _spelled(record.get("attributes"))
    if isinstance(given, list):
        return {text_at(one, "key"): _of_otlp(one.get("value")) for one in _objects(given)}
    found = {
        key.removeprefix("attributes."): value
        for key, value in record.items()
        if key.startswith("attributes.") and value is not None
    }
    return found | (_flat(given) if isinstance(given, Mapping) else {})


def _flat(given: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Attributes that Phoenix nests (`{"llm": {"model_name": ...}}`) by their whole names."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, Mapping) and prefix.count(".") < 6:
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _of_otlp(value: Any) -> Any:
    """`{"stringValue": "a"}` -> "a"."""
    if not isinstance(value, Mapping):
        return value
    for key, held in value.items():
        if key in ("arrayValue", "array_value") and isinstance(held, Mapping):
            return [_of_otlp(one) for one in held.get("values") or ()]
        if key in ("kvlistValue", "kvlist_value") and isinstance(held, Mapping):
            return {
                text_at(one, "key"): _of_otlp(one.get("value"))
                for one in _objects(held.get("values"))
            }
        if key.endswith(("Value", "_value")):
            return held
    return None


def _recognises(source: Source) -> bool:
    names = columns(source)
    if not names.isdisjoint(("resourceSpans", "resource_spans", "resourceLogs", "resource_logs")):
        return True
    if {"traceID", "spans"} <= names:
        return True
    traced = not names.isdisjoint(("traceId", "trace_id", "context.trace_id", "spanId", "span_id"))
    if "context" in names:  # by itself, that is what was said before a response
        traced = traced or not names.isdisjoint(("parent_id", "span_kind", "kind"))
    return traced and any(name.startswith("attributes") for name in names)


OPENTELEMETRY_READER = Reader(
    "opentelemetry",
    "OpenTelemetry spans as JSON: GenAI or OpenInference conventions",
    _recognises,
    reads(_spans),
)
