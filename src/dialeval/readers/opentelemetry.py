"""Spans of OpenTelemetry, with the GenAI or the OpenInference conventions.

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

`traces.py` says which spans are judged. The dialogue is `gen_ai.conversation.id` or `session.id`;
the system is `gen_ai.response.model`, `gen_ai.request.model` or `llm.model_name`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dialeval.readers.containers import columns
from dialeval.readers.messages import Messages, messages_in
from dialeval.readers.reader import Place, Reader
from dialeval.readers.source import Source
from dialeval.readers.traces import Span, reads, text_at

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


READER = Reader(
    "opentelemetry",
    "OpenTelemetry spans as JSON: GenAI or OpenInference conventions",
    _recognises,
    reads(_spans),
)
