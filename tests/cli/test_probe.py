"""The whole loop against a server on this machine: ask, fail, be killed, go on, score, show."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from systems.loopback import MANNERS, serving

SECRET = "sk-never-to-be-seen-0123456789"
EIGHT = ("fail500", "busy", "slow", "empty", "truncated", "schema", "huge", "reset")
PATIENCE = ("--timeout", "3.0", "--retries", "1")


@pytest.fixture
def server():
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("dialeval.chat_http.FIRST_WAIT", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def write_queries(path, *words, variants=2):
    """A query for each word, and variants that start with the same word."""
    with path.open("w") as file:
        for i, word in enumerate(words):
            record = {
                "id": f"q{i}",
                "query": f"{word} query {i}?",
                "variants": [{"query": f"{word} wording {j} of {i}?"} for j in range(variants)],
            }
            file.write(json.dumps(record) + "\n")
    return str(path)


def test_ask_score_show(dialeval, server, tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", "a", "b", "c")
    probed, run = str(tmp_path / "probe"), str(tmp_path / "run")
    done = dialeval("probe", server.address, "--queries", queries, "-o", probed)
    assert done.code == 0
    assert "polite: 12 questions asked now, 12 replies to 3 queries" in done.out
    assert f"dialeval score {probed} -m diversity -m consistency" in done.out
    score = dialeval("score", probed, "-m", "diversity:dispersion=false", "-o", run, "--json")
    assert json.loads(score.out)["manifest"]["metrics"][0]["scored"] == 3
    shown = dialeval("show", run, "--top", "2")
    assert "3 different answers of 3" in shown.out
    assert "b query 1? Indeed, after 1." in shown.out
    assert "... and 1 query more" in shown.out
    record = json.loads(dialeval("show", run, "--json", "--top", "1").out)
    assert record["queries"] == 3
    assert record["shown"][0]["entropy"]["entropy-1"] > 0


def test_eight_kinds_of_bad_manners_cost_their_own_queries_only(dialeval, server, tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", "fine", *EIGHT, "good")
    done = dialeval(
        "probe",
        server.address,
        "--queries",
        queries,
        "-o",
        str(tmp_path / "p"),
        "--json",
        *PATIENCE,
    )
    assert done.code == 0
    summary = json.loads(done.out)
    reasons = {failure["reason"]: failure["count"] for failure in summary["failures"]}
    assert reasons == {
        "HTTP 500": 3,
        "no reply in time": 3,
        "not JSON": 3,
        "answer cut off": 3,
        "not a chat completion": 3,
        "reply too long": 3,
        "connection closed by the server": 3,
    }
    assert summary["answered"] == 3 * 4
    assert summary["samples"] == {"diversity": 3, "consistency": 3}
    answered = {"fine", "busy", "good"}
    for line in (tmp_path / "p/samples.jsonl").read_text().splitlines():
        sample = json.loads(line)
        said = sample.get("variants") or [{"query": sample["context"][0]["text"]}]
        assert said[0]["query"].split()[0] in answered


def test_some_failures_are_a_remark_and_nothing_but_failures_an_error(dialeval, server, tmp_path):
    queries = write_queries(tmp_path / "some.jsonl", "fine", "fail500")
    some = dialeval(
        "probe", server.address, "--queries", queries, "-o", str(tmp_path / "a"), *PATIENCE
    )
    assert some.code == 0
    assert "3 failed: HTTP 500" in some.err
    assert "q1, original: out of order" in some.err
    queries = write_queries(tmp_path / "all.jsonl", "fail500", "mute")
    none = dialeval(
        "probe", server.address, "--queries", queries, "-o", str(tmp_path / "b"), *PATIENCE
    )
    assert none.code == 1
    assert "No question was answered" in none.err
    server.shutdown()
    server.server_close()
    queries = write_queries(tmp_path / "more.jsonl", *"abcdefghijklmnop", variants=5)
    gone = dialeval(
        "probe", server.address, "--queries", queries, "-o", str(tmp_path / "c"), *PATIENCE
    )
    assert gone.code == 1
    assert "seems to be down" in gone.err
    assert f"Is the server running at {server.url}?" in gone.err
    assert len((tmp_path / "c" / "exchanges.jsonl").read_text().splitlines()) == 1


def test_replies_that_met_the_limit_of_tokens_are_counted_also_by_the_next_probe(
    dialeval, server, tmp_path
):
    queries = write_queries(tmp_path / "q.jsonl", "lengthy", "fine")
    arguments = ["probe", server.address, "--queries", queries, "-o", str(tmp_path / "p")]
    first, again = dialeval(*arguments), dialeval(*arguments, "--json")
    assert "4 replies are not whole" in first.err
    assert "--set max_tokens" in first.err
    assert json.loads(again.out)["asked"] == 0
    assert json.loads(again.out)["cut"] == 4


def made_up(tmp_path, code):
    (tmp_path / "bot.py").write_text(code)
    return f"cmd:{sys.executable} {tmp_path / 'bot.py'}"


def test_a_command_that_greets_is_told_so_at_its_first_question(dialeval, tmp_path):
    code = 'print("Loading model ...", flush=True)\nfor line in open(0): print("a", flush=True)\n'
    queries = write_queries(tmp_path / "q.jsonl", *"abcdef")
    out = tmp_path / "p"
    done = dialeval("probe", made_up(tmp_path, code), "--queries", queries, "-o", str(out))
    assert done.code == 1
    said = " ".join(done.err.split())
    assert '"Loading model ..." before "a"' in said
    assert "everything else to standard error" in said
    assert len((out / "exchanges.jsonl").read_text().splitlines()) == 1


def test_a_stray_line_in_the_middle_comes_with_advice(dialeval, tmp_path):
    code = """
for number, line in enumerate(open(0)):
    print('{"reply": "a"}' + "\\nlog" * (number == 2), flush=True)
"""
    queries = write_queries(tmp_path / "q.jsonl", "a", "b")
    out = str(tmp_path / "p")
    done = dialeval("probe", made_up(tmp_path, code), "--queries", queries, "-o", out)
    assert done.code == 0
    said = " ".join(done.err.split())
    assert "failed: the command wrote a line that is no reply" in said
    assert "everything else to standard error" in said


def test_a_command_that_ends_at_once_is_not_asked_everything(dialeval, tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", *"abcdefgh")
    out = tmp_path / "p"
    address = made_up(tmp_path, "import sys; sys.exit('no model')")
    done = dialeval("probe", address, "--queries", queries, "-o", str(out))
    assert done.code == 1
    said = " ".join(done.err.split())
    assert "seems to be down (the command ended: exit code 1; it said: no model)" in said
    assert len((out / "exchanges.jsonl").read_text().splitlines()) == 10


def test_the_key_is_in_no_file_and_on_no_screen(dialeval, server, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", SECRET)
    queries = write_queries(tmp_path / "q.jsonl", "echo-key", "refuse-key", "fine", *EIGHT)
    arguments = ["probe", server.address, "--queries", queries, "-o", str(tmp_path / "p")]
    arguments += ["--key-env", "MY_KEY", *PATIENCE]
    screens = [
        dialeval(*arguments),
        dialeval(*arguments, "--json"),
        dialeval("show", str(tmp_path / "p")),
    ]
    assert all(SECRET in headers["Authorization"] for headers in server.headers_seen)
    assert "[API key]" in (tmp_path / "p/exchanges.jsonl").read_text()
    for path in (tmp_path / "p").rglob("*"):
        assert SECRET.encode() not in path.read_bytes()
    for screen in screens:
        assert SECRET not in screen.out + screen.err


@pytest.mark.parametrize(
    ("variables", "options", "message"),
    [
        ({}, [], "No API key was sent: put it into OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": SECRET}, [], "Check the API key in OPENAI_API_KEY"),
        ({"MY_KEY": SECRET}, ["--key-env", "MY_KEY"], "Check the API key in MY_KEY"),
    ],
)
def test_a_wrong_key_costs_one_request(
    dialeval, server, tmp_path, monkeypatch, variables, options, message
):
    server.right_key = "another"
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    queries = write_queries(tmp_path / "q.jsonl", *"abcdefgh", variants=4)
    arguments = ["probe", server.address, "--queries", queries, "-o", str(tmp_path / "p")]
    done = dialeval(*arguments, *options)
    assert done.code == 1
    said = " ".join(done.err.split())
    assert "refuses (HTTP 401: Incorrect API key)" in said
    assert message in said
    assert "--key-env" in said
    assert "down" not in said
    assert SECRET not in done.err
    assert len(server.requests) == 1


def test_many_are_asked_at_once_but_no_more_than_allowed(dialeval, tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", *["fine"] * 8, variants=3)
    busiest = {}
    with serving(delay=0.2) as server:  # long enough for a busy machine to start 16 threads
        for name, few in (("many", []), ("few", ["--concurrency", "3"])):
            server.busiest = 0
            out = str(tmp_path / name)
            dialeval("probe", server.address, "--queries", queries, "-o", out, *few)
            busiest[name] = server.busiest
    assert 8 < busiest["many"] <= 16
    assert busiest["few"] == 3
    many, few = (tmp_path / name / "samples.jsonl" for name in ("many", "few"))
    assert many.read_bytes() == few.read_bytes()


def start(server, queries, out):
    command = [sys.executable, "-m", "dialeval", "probe", server.address, "--queries", queries]
    return subprocess.Popen(
        [*command, "-o", str(out), "--concurrency", "4"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_lines(path: Path, count: int):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} never had {count} lines")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_probe_that_was_stopped_goes_on_without_asking_twice(dialeval, tmp_path, how):
    out = tmp_path / "p"
    with serving(delay=0.15) as server:
        queries = write_queries(tmp_path / "q.jsonl", *["fine"] * 40)
        process = start(server, queries, out)
        wait_for_lines(out / "exchanges.jsonl", 20)
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
        if how is signal.SIGINT:
            assert process.returncode == 130
            assert "repeat the command to resume" in errors
            assert "Traceback" not in errors
        kept = (out / "exchanges.jsonl").read_bytes().count(b"\n")
        assert 20 <= kept < 160
        assert not (out / "samples.jsonl").exists()
        refused = dialeval("score", str(out), "-m", "length")
        assert refused.code == 2
        assert "unfinished" in refused.err

        arguments = ["probe", server.address, "--queries", queries, "-o", str(out)]
        done = dialeval(*arguments, "--json")
        summary = json.loads(done.out)
        assert summary["asked"] == 160 - kept
        assert summary["answered"] == 160
        # What was under way when the end came may have been asked twice; nothing else was.
        assert sum(server.asked.values()) <= 160 + 4

        whole = tmp_path / "whole"
        dialeval("probe", server.address, "--queries", queries, "-o", str(whole))
        assert (whole / "samples.jsonl").read_bytes() == (out / "samples.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cmd:cat"], "Missing option"),
        (["cmd:cat", "--queries", "nowhere.jsonl", "-o", "{out}"], "nowhere.jsonl"),
        (["cmdd:cat", "--queries", "{queries}", "-o", "{out}"], "Did you mean 'cmd'?"),
        (["cmd:nowhere", "--queries", "{queries}", "-o", "{out}"], "no command 'nowhere'"),
        (["cmd:cat", "--queries", "{queries}", "-o", "{queries}"], "is a file"),
        (
            ["cmd:cat", "--queries", "{queries}", "-o", "{out}", "--with", "wss"],
            "Did you mean 'ws'?",
        ),
        (["cmd:cat", "--queries", "{queries}", "-o", "{out}", "--set", "x"], "NAME=VALUE"),
        (["cmd:cat", "--queries", "{queries}", "-o", "{out}", "--protocol", "all"], "diversity"),
    ],
)
def test_wrong_words_get_a_helpful_message_and_exit_2(dialeval, tmp_path, arguments, message):
    queries = write_queries(tmp_path / "q.jsonl", "fine")
    filled = [word.format(queries=queries, out=tmp_path / "p") for word in arguments]
    done = dialeval("probe", *filled)
    assert done.code == 2
    assert message in " ".join(done.err.replace("│", " ").split())
    assert "Traceback" not in done.err


def test_hostile_answers_never_reach_the_terminal(dialeval, tmp_path):
    bot = tmp_path / "bot.py"
    bot.write_text('import sys\nfor line in sys.stdin: print("\\x1b[31mred\\u202e", flush=True)\n')
    queries = write_queries(tmp_path / "q.jsonl", "fine")
    out = str(tmp_path / "p")
    done = dialeval("probe", f"cmd:{sys.executable} {bot}", "--queries", queries, "-o", out)
    shown = dialeval("show", out)
    assert (done.code, shown.code) == (0, 0)
    assert "red" in shown.out
    assert not set("\x1b\u202e") & set(done.out + done.err + shown.out)


def test_answers_that_cannot_be_compared_are_no_success(dialeval, tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", "fine")
    recorded = {"messages": [{"role": "user", "content": "fine query 0?"}], "reply": "Yes."}
    (tmp_path / "ans.jsonl").write_text(json.dumps(recorded) + "\n")
    arguments = ["probe", f"replay:{tmp_path / 'ans.jsonl'}", "--queries", queries]
    done = dialeval(*arguments, "-o", str(tmp_path / "p"))
    assert done.code == 1
    assert "Nothing can be scored" in done.err
    assert "dialeval score" not in done.out
    assert dialeval(*arguments, "-o", str(tmp_path / "q"), "--json").code == 1


def test_queries_that_were_not_asked_come_with_advice(dialeval, tmp_path):
    queries = Path(write_queries(tmp_path / "q.jsonl", "fine"))
    with queries.open("a") as file:
        file.write(json.dumps({"id": "bare", "query": "Alone?"}) + "\n")
    bot = tmp_path / "bot.py"
    bot.write_text('for line in open(0): print("Yes.", flush=True)\n')
    arguments = ["probe", f"cmd:{sys.executable} {bot}", "--queries", str(queries)]
    done = dialeval(*arguments, "-o", str(tmp_path / "p"))
    said = " ".join(done.out.split())
    assert "not asked: 1 query without a variant." in said
    assert "--with eda, or --with ws --with eda" in said
    assert "1 different answer of 3" in dialeval("show", str(tmp_path / "p")).out


def test_long_answers_are_shortened_unless_they_are_wanted_whole(dialeval, tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", "fine")
    bot = tmp_path / "bot.py"
    bot.write_text('for line in open(0): print("word " * 40_000 + "end", flush=True)\n')
    out = str(tmp_path / "p")
    dialeval("probe", f"cmd:{sys.executable} {bot}", "--queries", queries, "-o", out)
    short, full = dialeval("show", out).out, dialeval("show", out, "--full").out
    assert "word word…" in " ".join(short.split())
    assert len(short) < 3_000
    assert full.count("end") == 5


def test_the_heading_shows_what_the_order_goes_by(dialeval, server, tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", "a")
    probed, run = str(tmp_path / "probe"), str(tmp_path / "run")
    dialeval("probe", server.address, "--queries", queries, "-o", probed)
    dialeval("score", probed, "-m", "diversity:dispersion=false", "-o", run)
    heading = dialeval("show", run).out
    assert "(normalised 0." in heading


def test_the_manners_of_this_test_are_known_to_the_server():
    assert set(EIGHT) <= set(MANNERS)
