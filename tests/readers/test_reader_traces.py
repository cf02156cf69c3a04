"""Traces: what Langfuse, LangSmith, OpenTelemetry and OpenInference write, and what is judged."""

from __future__ import annotations

import json
from typing import Any

from .conftest import Read
from .test_reader_logs import ASKED, SAID, assert_the_exchange, lines, the_only

INPUT = [
    {"role": "system", "content": "You are a pirate."},
    {"role": "user", "content": ASKED.text},
]
LANGFUSE: dict[str, Any] = {
    "id": "7ecf3a4f",
    "projectId": "clr1",
    "name": "chat",
    "timestamp": "2024-05-29T13:46:19.963Z",
    "sessionId": "s-17",
    "userId": "u1",
    "input": {"args": [ASKED.text], "kwargs": {}},
    "output": SAID,
    "observations": [
        {
            "id": "o1",
            "traceId": "7ecf3a4f",
            "type": "SPAN",
            "name": "retrieve",
            "parentObservationId": None,
            "input": {"query": "rum"},
            "output": [{"score": 0.5}, {"score": 0.2}],
        },
        {
            "id": "o2",
            "traceId": "7ecf3a4f",
            "type": "GENERATION",
            "name": "llm",
            "model": "gpt-4o-2024-08-06",
            "parentObservationId": None,
            "input": INPUT,
            "output": {"role": "assistant", "content": SAID},
        },
    ],
    "scores": [
        {"name": "helpful", "value": 4, "source": "ANNOTATION"},
        {"name": "toxicity", "value": 0.1, "source": "EVAL"},
    ],
}


def test_a_langfuse_trace_is_one_answer_with_what_people_said(read: Read) -> None:
    reading = read(json.dumps(LANGFUSE, indent=2), "trace-7ecf3a4f.json")
    assert reading.format == "langfuse"
    sample = the_only(reading.samples)
    assert_the_exchange(sample, "gpt-4o-2024-08-06")
    assert (sample.id, sample.dialogue) == ("7ecf3a4f", "s-17")
    assert {name: rating.values for name, rating in sample.ratings.items()} == {"helpful": (4.0,)}


def test_the_system_prompt_of_a_trace_is_a_fact_only_where_that_is_asked_for(read: Read) -> None:
    assert not read(lines(LANGFUSE)).samples[0].facts
    told = read(lines(LANGFUSE), system_prompt="facts").samples[0]
    assert told.facts == ("You are a pirate.",)


def test_langfuse_observations_are_read_from_a_table_with_json_in_its_cells(read: Read) -> None:
    cells = [json.dumps(INPUT), json.dumps({"role": "assistant", "content": SAID})]
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    table = f"id,traceId,type,model,input,output\no2,t1,GENERATION,gpt-4o,{quoted[0]},{quoted[1]}\n"
    reading = read(table, "observations.csv")
    assert reading.format == "langfuse"
    assert_the_exchange(the_only(reading.samples), "gpt-4o")


def test_the_page_of_a_langfuse_query_wraps_its_observations(read: Read) -> None:
    one = {"id": "o2", "traceId": "t1", "type": "GENERATION", "input": INPUT, "output": SAID}
    page = {"data": [one, {**one, "id": "o3", "traceId": "t2"}], "meta": {"page": 1}}
    reading = read(json.dumps(page), "page.json")
    assert [sample.id for sample in reading.samples] == [
        "t1?observation=o2",
        "t2?observation=o3",
    ]


def constructor(kind: str, content: str) -> dict[str, Any]:
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": {"content": content, "type": "x", "additional_kwargs": {}},
    }


def langsmith_runs() -> list[dict[str, Any]]:
    root = {
        "id": "r1",
        "trace_id": "r1",
        "parent_run_id": None,
        "name": "RunnableSequence",
        "run_type": "chain",
        "start_time": "2024-05-29T13:46:19.963",
        "inputs": {"question": ASKED.text},
        "outputs": {"answer": SAID},
        "extra": {"metadata": {"thread_id": "th1"}},
    }
    call = {
        **root,
        "id": "r2",
        "parent_run_id": "r1",
        "name": "ChatOpenAI",
        "run_type": "llm",
        "inputs": {
            "messages": [
                [constructor("SystemMessage", "Pirate."), constructor("HumanMessage", ASKED.text)]
            ]
        },
        "outputs": {
            "generations": [
                [
                    {
                        "text": SAID,
                        "type": "ChatGeneration",
                        "message": constructor("AIMessage", SAID),
                    }
                ]
            ],
            "llm_output": {"model_name": "gpt-4o"},
        },
        "extra": {"metadata": {"ls_model_name": "gpt-4o", "ls_provider": "openai"}},
    }
    return [call, root]


def test_runs_of_langsmith_give_one_answer_for_each_trace(read: Read) -> None:
    reading = read(lines(*langsmith_runs()))
    assert (reading.format, reading.problems) == ("langsmith", [])
    sample = the_only(reading.samples)
    assert_the_exchange(sample, "gpt-4o")
    assert (sample.id, sample.dialogue) == ("r1", "th1")


def test_a_call_of_langsmith_alone_is_judged_too(read: Read) -> None:
    assert_the_exchange(the_only(read(lines(langsmith_runs()[0])).samples), "gpt-4o")
    example = {"inputs": {"question": ASKED.text}, "outputs": {"answer": SAID}, "metadata": {}}
    assert_the_exchange(the_only(read(lines(example)).samples))


def otlp(name: str, value: Any) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": value}}


PARTS_IN = json.dumps([{"role": "user", "parts": [{"type": "text", "content": ASKED.text}]}])
PARTS_OUT = json.dumps(
    [
        {
            "role": "assistant",
            "parts": [{"type": "reasoning", "content": "Rum"}, {"type": "text", "content": SAID}],
            "finish_reason": "stop",
        }
    ]
)


def test_spans_of_otlp_with_the_genai_conventions(read: Read) -> None:
    chat = {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "parentSpanId": "eee19b7ec3c1b173",
        "name": "chat gpt-4o",
        "kind": 3,
        "startTimeUnixNano": "1544712660000000000",
        "attributes": [
            otlp("gen_ai.operation.name", "chat"),
            otlp("gen_ai.request.model", "gpt-4o"),
            otlp("gen_ai.conversation.id", "conv_5j66"),
            otlp("gen_ai.system_instructions", '[{"type": "text", "content": "Pirate."}]'),
            otlp("gen_ai.input.messages", PARTS_IN),
            otlp("gen_ai.output.messages", PARTS_OUT),
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "100"}},
        ],
    }
    http = {**chat, "spanId": "eee19b7ec3c1b173", "parentSpanId": "", "attributes": []}
    batch = {
        "resourceSpans": [
            {
                "resource": {"attributes": [otlp("service.name", "shop")]},
                "scopeSpans": [{"scope": {"name": "x"}, "spans": [chat, http]}],
            }
        ]
    }
    reading = read(lines(batch), "traces.json")
    assert reading.format == "opentelemetry"
    sample = the_only(reading.samples)
    assert_the_exchange(sample, "gpt-4o")
    assert (sample.id, sample.dialogue) == ("eee19b7ec3c1b174", "conv_5j66")
    assert reading.problems == [": 1 of 2 steps say nothing to a user: left out"]
    told = read(lines(batch), system_prompt="facts").samples[0]
    assert told.facts == ("Pirate.",)


def console_span(**attributes: Any) -> str:
    """As Python's `ConsoleSpanExporter` prints it: over many lines, one after the other."""
    span = {
        "name": "ChatCompletion",
        "context": {"trace_id": "0xa", "span_id": f"0x{len(attributes)}", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": None,
        "start_time": "2024-05-29T13:46:19.963Z",
        "status": {"status_code": "OK"},
        "attributes": attributes,
        "events": [],
        "resource": {"attributes": {"service.name": "shop"}},
    }
    return json.dumps(span, indent=4) + "\n"


def test_spans_with_the_openinference_conventions(read: Read) -> None:
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "gpt-4o",
        "session.id": "s1",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "Pirate.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.contents.0.message_content.type": "text",
        "llm.input_messages.1.message.contents.0.message_content.text": ASKED.text,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": SAID,
    }
    chain = {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"question": ASKED.text}),
        "output.value": SAID,
    }
    reading = read(console_span(**attributes) + console_span(**chain), "spans.txt")
    assert reading.format == "opentelemetry"
    assert not reading.problems
    first, second = reading.samples
    assert_the_exchange(first, "gpt-4o")
    assert first.dialogue == "s1"
    assert_the_exchange(second)


def test_older_conventions_spread_messages_over_attributes_or_events(read: Read) -> None:
    spread = {
        "gen_ai.request.model": "gpt-4",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": ASKED.text,
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": SAID,
        "gen_ai.completion.0.finish_reason": "stop",
    }
    assert_the_exchange(the_only(read(console_span(**spread)).samples), "gpt-4")
    span = json.loads(console_span(x=1))
    span["events"] = [
        {"name": "gen_ai.user.message", "attributes": {"content": ASKED.text}},
        {
            "name": "gen_ai.choice",
            "attributes": {
                "index": 0,
                "message": json.dumps({"role": "assistant", "content": SAID}),
            },
        },
    ]
    assert_the_exchange(the_only(read(lines(span)).samples))


def test_events_in_logs_belong_to_the_span_that_they_name(read: Read) -> None:
    """As the file exporter writes what instrumentations log by default, in two batches."""

    def batch(name: str, **body: Any) -> dict[str, Any]:
        values = [{"key": key, "value": value} for key, value in body.items()]
        record = {
            "timeUnixNano": "1",
            "eventName": name,
            "body": {"kvlistValue": {"values": values}},
            "attributes": [otlp("gen_ai.system", "openai")],
            "traceId": "5b8e",
            "spanId": "eee1",
        }
        return {"resourceLogs": [{"scopeLogs": [{"scope": {}, "logRecords": [record]}]}]}

    said = [otlp("role", "assistant"), otlp("content", SAID)]
    reading = read(
        lines(
            batch("gen_ai.system.message", content={"stringValue": "Pirate."}),
            batch("gen_ai.user.message", content={"stringValue": ASKED.text}),
            batch("http.request", content={"stringValue": "GET"}),
            batch("gen_ai.choice", message={"kvlistValue": {"values": said}}),
        )
    )
    assert (reading.format, reading.problems) == ("opentelemetry", [])
    sample = the_only(reading.samples)
    assert_the_exchange(sample)
    assert (sample.id, sample.dialogue) == ("eee1", "5b8e")


def test_details_of_an_inference_are_an_event_with_all_that_was_said(read: Read) -> None:
    details = {
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": [
            otlp("gen_ai.request.model", "gpt-4o"),
            otlp("gen_ai.conversation.id", "conv_5j66"),
            otlp("gen_ai.input.messages", PARTS_IN),
            otlp("gen_ai.output.messages", PARTS_OUT),
        ],
        "traceId": "5b8e",
        "spanId": "eee1",
    }
    batch = {"resourceLogs": [{"scopeLogs": [{"logRecords": [details]}]}]}
    sample = the_only(read(lines(batch)).samples)
    assert_the_exchange(sample, "gpt-4o")
    assert sample.dialogue == "conv_5j66"


def test_spans_that_jaeger_gives_to_download(read: Read) -> None:
    def tag(name: str, value: str) -> dict[str, str]:
        return {"key": name, "type": "string", "value": value}

    call = {
        "traceID": "5b8e",
        "spanID": "eee1",
        "operationName": "chat gpt-4o",
        "references": [{"refType": "CHILD_OF", "traceID": "5b8e", "spanID": "eee0"}],
        "tags": [
            tag("gen_ai.request.model", "gpt-4o"),
            tag("gen_ai.input.messages", PARTS_IN),
            tag("gen_ai.output.messages", PARTS_OUT),
        ],
        "logs": [],
    }
    http = {**call, "spanID": "eee0", "references": [], "tags": []}
    page = {"data": [{"traceID": "5b8e", "spans": [http, call], "processes": {}}], "total": 0}
    reading = read(json.dumps(page), "trace.json")
    assert reading.format == "opentelemetry"
    assert_the_exchange(the_only(reading.samples), "gpt-4o")
    assert reading.problems == [": 1 of 2 steps say nothing to a user: left out"]


def test_the_answer_of_a_model_gives_its_history_to_the_span_around_it(read: Read) -> None:
    root, call = langsmith_runs()[1], langsmith_runs()[0]
    earlier = [
        {"role": "user", "content": "Ahoy!"},
        {"role": "assistant", "content": "Ahoy."},
        {"role": "user", "content": ASKED.text},
    ]
    call["inputs"] = {"messages": earlier, "model": "gpt-4o"}
    call["outputs"] = {"choices": [{"message": {"role": "assistant", "content": SAID}}]}
    sample = the_only(read(lines(root, call)).samples)
    assert [turn.text for turn in sample.context] == ["Ahoy!", "Ahoy.", ASKED.text]
