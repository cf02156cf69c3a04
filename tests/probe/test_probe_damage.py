"""A damaged probe: each file is named, and what can be asked or made again is."""

from __future__ import annotations

import json
import random

import pytest

from dialeval.errors import DialevalError, InputError, UsageError
from dialeval.probe import open_probe, probe

from .made_up_bots import Bot, queries


@pytest.fixture
def done(tmp_path):
    probe(Bot(), queries(2), tmp_path / "p")
    return tmp_path / "p"


DAMAGED = [
    b"\xff\xfe",
    b"[]",
    b"3",
    b"{}",
    b'{"query": 1}',
    b'{"query": "q1", "what": "original", "messages": "abc", "reply": "x", "seconds": 1}',
    b'{"query": "q1", "what": "original", "messages": [], "reply": 3, "seconds": 1}',
    b'{"query": "q1", "what": "original", "messages": [], "reply": "x", "seconds": "soon"}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("line", DAMAGED)
def test_a_damaged_exchange_is_asked_again_and_kept_apart(done, line):
    path = done / "exchanges.jsonl"
    good = path.read_bytes()
    *rest, _ = good.splitlines(keepends=True)
    path.write_bytes(b"".join([*rest, line + b"\n"]))
    with pytest.raises(InputError, match=r"exchanges\.jsonl:8: is damaged. Repeat"):
        open_probe(done)
    bot = Bot()
    summary = probe(bot, queries(2), done)
    assert (summary.damaged, len(bot.asked)) == (1, 1)
    records = [json.loads(one) for one in (*good.splitlines(), *path.read_bytes().splitlines())]
    half = len(records) // 2
    assert [r["reply"] for r in records[:half]] == [r["reply"] for r in records[half:]]
    assert (done / "exchanges.damaged").read_bytes() == line + b"\n"
    assert open_probe(done).samples


@pytest.mark.parametrize(
    "line", [b"\xff", b"[]", b"{", b'{"id": 3, "context": [], "response": ""}']
)
def test_damaged_samples_are_made_anew_without_asking(done, line):
    path = done / "samples.jsonl"
    good = path.read_bytes()
    path.write_bytes(line + b"\n" + good)
    with pytest.raises(InputError, match=r"samples\.jsonl:1: is damaged"):
        open_probe(done)
    bot = Bot()
    probe(bot, queries(2), done)
    assert (bot.asked, path.read_bytes()) == ([], good)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"{", b"{}", b'{"probe_format": []}'])
def test_damaged_settings_say_where_the_replies_are(done, content):
    (done / "probe.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"probe\.json|probe format"):
        open_probe(done)


def test_no_flipped_byte_of_a_probe_is_a_traceback(done):
    draw = random.Random(7)
    for name in ("probe.json", "queries.jsonl", "exchanges.jsonl", "samples.jsonl"):
        good = (done / name).read_bytes()
        for _ in range(40):
            content = bytearray(good)
            content[draw.randrange(len(content))] = draw.randrange(256)
            (done / name).write_bytes(bytes(content))
            try:
                open_probe(done)
            except DialevalError as error:
                assert str(done) in str(error)  # noqa: PT017
        (done / name).write_bytes(good)
