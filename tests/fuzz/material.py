"""Small sound files of every kind that dialeval reads: what is damaged afterwards.

Each function fills an empty directory. Texts are short, so that damage is likely to hit something.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.engine.job import Job
from dialeval.readers import load
from dialeval.registry import make_metric

from .trying import run

WORDS = ["hello", "there", "cat", "dog", "food", "likes", "the", ".", "?"]
SHARD = 3
"""Samples in a chunk of the run that was never finished."""


def samples() -> list[dict[str, Any]]:
    """Twelve rated answers of two systems to six items."""
    return [
        {
            "id": f"{system}{item}",
            "item": f"item-{item}",
            "dialogue": f"talk-{item // 2}",
            "system": system,
            "context": [{"speaker": "user", "text": f"hello the {WORDS[2 + item]}"}],
            "response": " ".join(WORDS[: 2 + (item + len(system)) % 5]),
            "references": [f"the {WORDS[2 + item]} likes food", "hello ?"],
            "ratings": {
                "overall": {"values": [1 + item % 5, 5 - item % 4], "scale": [1, 5]},
                "natural": {"values": [item % 3, 2], "scale": [0, 2], "raters": ["x", "y"]},
            },
        }
        for item in range(6)
        for system in ("one", "other")
    ]


def _lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def _json(path: Path, record: Any) -> Path:
    path.write_text(json.dumps(record, indent=1), encoding="utf-8")
    return path


def sample_file(directory: Path) -> None:
    _lines(directory / "samples.jsonl", samples())


# Files of dialogues, one of each format


def chat(directory: Path) -> None:
    talk = [("user", "hi"), ("assistant", "hello"), ("user", "who ?"), ("assistant", "me .")]
    _lines(
        directory / "chat.jsonl",
        [
            {"id": f"c{n}", "messages": [{"role": role, "content": text} for role, text in talk]}
            for n in range(3)
        ],
    )


def logs(directory: Path) -> None:
    """Logs as other tools write them."""
    import pyarrow as pa

    asked, said = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}
    parts = [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    told = [{"role": "assistant", "parts": [{"type": "text", "content": "hello"}]}]
    turns = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]
    pair = {"prompt": "hi", "completion": "hello", "session_id": "s"}
    _json(directory / "sharegpt.json", [{"id": "a", "conversations": turns, "system": "be"}])
    _lines(directory / "wildchat.jsonl", [{"model": "m", "conversation": [asked, said]}] * 2)
    _lines(directory / "pairs.jsonl", [pair, {**pair, "history": [["a", "b"]]}])
    generation = {"id": "o", "type": "GENERATION", "model": "m", "input": [asked], "output": said}
    trace = {"id": "t", "sessionId": "s", "input": {"args": ["hi"]}, "output": "hello"}
    _json(directory / "langfuse.json", {**trace, "observations": [generation], "scores": []})
    run = {"id": "r", "trace_id": "r", "run_type": "llm", "inputs": {"messages": [[asked]]}}
    _lines(directory / "langsmith.jsonl", [{**run, "outputs": {"generations": [[{"text": "a"}]]}}])
    attributes = [
        {"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps(parts)}},
        {"key": "gen_ai.output.messages", "value": {"stringValue": json.dumps(told)}},
    ]
    spans = [{"traceId": "t", "spanId": "s", "attributes": attributes}]
    _lines(directory / "spans.jsonl", [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}])
    spread = {"llm.input_messages.0.message.role": "user", "output.value": "hello"}
    place = {"trace_id": "t", "span_id": "s"}
    _json(directory / "console.json", {"context": place, "parent_id": None, "attributes": spread})
    (directory / "talk.txt").write_text("User: hi\nBot: hello\nthere\n---\nUser: a\nBot: b\n")
    (directory / "messages.csv").write_text("conversation_id,role,content\nc,user,hi\nc,bot,yo\n")
    talk = [("user", {"parts": ["hi"]}, None), ("assistant", {"parts": ["yo"]}, "user")]
    nodes = {
        role: {"parent": parent, "message": {"author": {"role": role}, "content": content}}
        for role, content, parent in talk
    }
    tree = {"title": "t", "mapping": nodes, "current_node": "assistant"}
    _json(directory / "chatgpt.json", [{"id": "a", **tree}, {"id": "b", **tree}])
    spoken = [{"sender": "human", "text": "hi"}, {"sender": "assistant", "text": "hello"}]
    _json(directory / "claude.json", [{"uuid": "a", "chat_messages": spoken}])
    request = {"custom_id": "r", "method": "POST", "url": "/v1", "body": {"messages": [asked]}}
    reply = {"status_code": 200, "body": {"choices": [{"message": said}]}}
    _lines(directory / "batch.jsonl", [request, {"custom_id": "r", "response": reply}])
    rows = pa.Table.from_pylist([pair])
    with pa.ipc.new_stream(directory / "rows.arrow", rows.schema) as writer:
        writer.write_table(rows)


def table(directory: Path) -> None:
    rows = ["id,context,response,reference,rating_overall_1,rating_overall_2"]
    rows += [
        f'{n},"hi | there","the {word}, no",the {word},{n % 5 + 1},2'
        for n, word in enumerate(WORDS)
    ]
    (directory / "table.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def tabs(directory: Path) -> None:
    rows = ["id\tcontext\tresponse\trating_overall"]
    rows += [f"{n}\thi\tthe {word}\t{n % 5 + 1}" for n, word in enumerate(WORDS)]
    (directory / "table.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def parquet(directory: Path) -> None:
    sample_file(directory)
    made = directory / "samples.parquet"
    assert run("data", "convert", directory / "samples.jsonl", "-o", made).code == 0
    (directory / "samples.jsonl").unlink()


def packed(directory: Path) -> None:
    sample_file(directory)
    for ending in ("gz", "zst"):
        made = directory / f"samples.jsonl.{ending}"
        assert run("data", "convert", directory / "samples.jsonl", "-o", made).code == 0
    (directory / "samples.jsonl").unlink()


def rated_sets(directory: Path) -> None:
    """The formats of published sets that are one JSON array."""
    talk = "User: Hi!\nSystem: Hello.\nUser: Who?"
    _json(
        directory / "fed_data.json",
        [
            {
                "context": talk,
                "response": "System: Me.",
                "system": "Meena",
                "annotations": {"Interesting": [2, 1, 0], "Overall": [2, 1, 3, 3, 4]},
            },
            {"context": talk, "system": "Human", "annotations": {"Overall": [4, 4, "N/A", 1, 2]}},
        ],
    )
    _json(
        directory / "usr_data.json",
        [
            {
                "context": "hello \n hi there \n",
                "fact": "your persona: i like cats .\n",
                "responses": [
                    {
                        "response": "do you ?",
                        "model": "Original Ground Truth",
                        "Overall": [5, 5, 4],
                    },
                    {"response": "cats .", "model": "Seq2Seq", "Overall": [1, 2, 1]},
                ],
            }
        ],
    )
    _json(
        directory / "dstc10_eval.json",
        [
            {
                "dialogue_id": f"d_{n}",
                "model": "GPT2",
                "context": "well ?\nit fits .",
                "response": "cash ?",
                "reference": ["cash or card ?"],
                "annotations": {"content": [n, 5]},
            }
            for n in range(1, 4)
        ],
    )
    _json(
        directory / "convai2.json",
        [
            {
                "dialog": [
                    {"id": 0, "sender": "participant2", "text": "Hi!", "sender_class": "Bot"},
                    {"id": 1, "sender": "participant1", "text": "Fine.", "sender_class": "Human"},
                ],
                "bot_profile": ["i like horses."],
                "user_profile": ["i work."],
                "eval_score": 4,
                "participant1_id": {"class": "User", "user_id": "User 1"},
                "participant2_id": {"class": "Bot", "user_id": "Bot 5"},
            }
        ],
    )
    _json(
        directory / "convai2017.json",
        [
            {
                "dialogId": -15,
                "context": "Hume criticised this camp.",
                "users": [{"id": "Bob", "userType": "Human"}, {"id": "Al", "userType": "Bot"}],
                "thread": [
                    {"userId": "Bob", "text": "Hi", "evaluation": 0, "time": 9},
                    {"userId": "Al", "text": "Who is Hume?", "evaluation": 2, "time": 12},
                ],
                "evaluation": [{"userId": "Bob", "quality": 2, "breadth": 1, "engagement": 3}],
            }
        ],
    )
    turns = [("Rock?", "agent_1", "Good"), ("Yes.", "agent_2", "Not Good")]
    content = [{"message": m, "agent": a, "turn_rating": r} for m, a, r in turns]
    _json(
        directory / "topical.json", {"t_1": {"article_url": "", "config": "D", "content": content}}
    )


def text_sets(directory: Path) -> None:
    """The formats of published sets that are text or tables without our header."""
    files = {
        "engage.csv": 'query,response,human_score,Ruber\nHow ?,Far .,2,"0.1\n"\nWho ?,Me .,5,1\n',
        "daily.txt": "Hi . __eou__ Hello . __eou__ Bye ? __eou__\nAlone __eou__\n",
        "persona.txt": "1 your persona: i read.\n2 hi ?\ti am .\t\tother|one\n3 why ?\ti read .\n",
        "afraid.csv": "Dialog_ID,Type,Actor,Text,Label\na,situation,none,Fire,afraid\n"
        'a,utterance,speaker,"It burned, all",afraid\na,utterance,listener,Oh no!,questioning\n',
        "coherence.csv": '11,"You ?","No ! I",4,2,1,1,1,1,2,2,2,2\n12,a,b,1,2,3,4,5,1,2,3,4,5\n',
        "diversity.csv": 'Group Id,Question Group,Answer Group\n1,"Plan ?\nA plan ?","Yes .\nNo"\n',
        "rater1.txt": "sample 1:\n\thistory: Hey man\n\t\tSome what ?\n\tpred: i sell.\n"
        "\tYOUR SCORE IS: 5\nsample 2:\n\thistory: a\n\tpred: b\n\tYOUR SCORE IS: 2\n",
        "movie_lines.txt": "L1 +++$+++ u0 +++$+++ m0 +++$+++ ANN +++$+++ Hi.\n"
        "L2 +++$+++ u1 +++$+++ m0 +++$+++ BEN +++$+++ Ho?\n",
        "movie_conversations.txt": "u0 +++$+++ u1 +++$+++ m0 +++$+++ ['L1', 'L2']\n",
        "tencent.txt": "你好吗\t我很好\t4\n你好吗\t不知道\tbad\n",
        "hen.conv": "E\nM 呵/呵/呵/呵\nM 是/王/的/。\nE\nM 不\nM 那\n",
    }
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")


# Runs, probes, ratings


def finished_run(directory: Path) -> None:
    sample_file(directory)
    done = run(
        "score",
        directory / "samples.jsonl",
        "-m",
        "length",
        "-m",
        "bleu",
        "-m",
        "distinct",
        "-o",
        directory / "run",
        "-q",
    )
    assert done.code == 0, done.err


class _KilledError(BaseException):
    pass


def unfinished_run(directory: Path) -> None:
    """Two of four chunks are there."""
    sample_file(directory)

    def die(done: int, read: int) -> None:
        if done >= 2 * SHARD:
            raise _KilledError

    job = resumed_job(directory, directory / "run")
    job._progress = die
    try:
        job.run(load(directory / "samples.jsonl"))
    except _KilledError:
        return
    raise AssertionError("the run was finished")


def resumed_job(directory: Path, out: Path) -> Job:
    return Job(out, [make_metric("length"), make_metric("bleu")], chunk=SHARD)


def probe(directory: Path) -> None:
    """A finished probe of recorded replies, and what it takes to repeat it."""
    queries = [
        {"id": f"q{n}", "query": f"who are you {n}?", "variants": [{"query": f"what are you {n}?"}]}
        for n in range(2)
    ]
    _lines(directory / "queries.jsonl", queries)
    replies = []
    for n in range(2):
        first, again = f"who are you {n}?", f"what are you {n}?"
        user, said = {"role": "user"}, {"role": "assistant", "content": f"I am Bob {n}."}
        replies += [
            {"messages": [user | {"content": first}], "reply": f"I am Bob {n}."},
            {"messages": [user | {"content": again}], "reply": f"A bot, {n}."},
            {
                "messages": [user | {"content": first}, said, user | {"content": again}],
                "reply": "As I said.",
            },
        ]
    _lines(directory / "replies.jsonl", replies)
    done = run(*probe_words(directory), "-q")
    assert done.code == 0, done.err + done.crash


def probe_words(directory: Path) -> tuple[str, ...]:
    queries = str(directory / "queries.jsonl")
    recorded = f"replay:{directory / 'replies.jsonl'}"
    return ("probe", recorded, "--queries", queries, "-o", str(directory / "probe"))


def ratings(directory: Path) -> None:
    """A job that two raters have half done."""
    from rating_jobs import rating_job

    from dialeval.rating.opening import create_store

    store = create_store(str(directory / "ratings.db"), rating_job(4), 2, organiser="o" * 16)
    try:
        for rater in store.raters():
            for position in (1, 2, 3):
                store.save(
                    rater, position, {"overall": position + 1.0, "natural": 2.0}, f"s{position}"
                )
    finally:
        store.close()


# What users write: weights, follow-ups, vectors


def weights(directory: Path) -> None:
    finished_run(directory)
    done = run(
        "compose",
        "fit",
        directory / "run",
        "-o",
        directory / "weights.json",
        "-m",
        "length",
        "-m",
        "distinct",
        "-q",
    )
    assert done.code == 0, done.err + done.crash


def word_vectors(directory: Path) -> None:
    """Word vectors, and samples that were scored with them: the answers are in `cache`."""
    sample_file(directory)
    vectors = directory / "vectors"
    vectors.mkdir()
    rows = np.random.default_rng(0).standard_normal((len(WORDS), 6)).astype(np.float32)
    np.save(vectors / "vectors.npy", rows)
    (vectors / "words.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")


def encoder(directory: Path) -> None:
    """A tiny random BERT as the hub would save it."""
    from models.tiny_encoders import save_bert

    sample_file(directory)
    save_bert(directory / "bert")


def language_model(directory: Path) -> None:
    """A tiny random Llama, and follow-ups of one's own."""
    from models import tiny_language_models as tiny

    sample_file(directory)
    tiny.save(directory / "llama", tiny.llama(), tiny.tokenizer())
    follow_ups = {
        "version": 3,
        "source": "mine",
        "positive": ["great", "tell me more"],
        "negative": ["what ?", "no"],
    }
    _json(directory / "follow.json", follow_ups)
    (directory / "follow.txt").write_text("what ?\nthat makes no sense\n", encoding="utf-8")


Make = Callable[[Path], None]
