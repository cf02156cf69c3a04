"""A judge behind a server: probabilities, counted replies, budgets, nothing asked twice."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace

import pytest
from systems.loopback import serving

from dialeval import chat_http as chat_server
from dialeval import score
from dialeval.chat_http import Asking
from dialeval.errors import DialevalError, JobError, UsageError
from dialeval.metrics.llm_judge import LlmJudge
from dialeval.models.chat_judge import Budget, Servers, Usage, estimate, first_choice
from dialeval.models.source import Models
from dialeval.question import Choose, Chosen, Likelihood
from dialeval.sample import Sample, Turn

SECRET = "sk-never-to-be-seen-0123456789"
FIVE = ("1", "2", "3", "4", "5")
LOG_PROBS = {"4": math.log(0.5), " 4": math.log(0.1), "5": math.log(0.2), "Well": math.log(0.2)}


@pytest.fixture
def server():
    with serving() as running:
        running.log_probs = dict(LOG_PROBS)
        yield running


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    monkeypatch.setattr(chat_server, "FIRST_WAIT", 0.01)
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def question(server, text="Judge.", **changes):
    return replace(Choose(server.address, text, " A dialogue. ", "Rate it.", FIVE), **changes)


def ask(questions, *, concurrency=None, **options):
    asking = Asking(concurrency, timeout=5.0, retries=1)
    model = Models(servers=Servers(asking, Budget(**options))).load(questions[0].model)
    found = dict(model.answer(questions))
    return [Chosen.read(found[place]) for place in range(len(questions))]


def samples(number):
    return [Sample(f"s{n}", (Turn(f"Hi {n}.", "user"),), "Hello.") for n in range(number)]


def test_the_rating_comes_from_the_log_probabilities_of_all_spellings(server) -> None:
    (chosen,) = ask([question(server)])
    assert chosen.probabilities == pytest.approx((0, 0, 0, 0.6, 0.2), abs=1e-9)
    # (4 * .6 + 5 * .2) / .8
    assert chosen.expected((1, 2, 3, 4, 5)) == pytest.approx(4.25, abs=1e-6)
    (sent,) = server.requests
    assert (sent["max_tokens"], sent["logprobs"], sent["top_logprobs"]) == (1, True, 20)


def test_a_server_without_log_probabilities_is_asked_so_often_as_the_question_says(server) -> None:
    server.log_probs = {}
    server.says = ["4", "4.", "**5**", "I would say 3", "45", "2\n"]
    with pytest.raises(UsageError, match="add samples=20"):
        ask([question(server)])
    (chosen,) = ask([question(server, samples=6, temperature=0.7)])
    assert [round(6 * share) for share in chosen.probabilities] == [0, 1, 0, 2, 1]
    assert chosen.mass == pytest.approx(4 / 6)
    assert {sent["temperature"] for sent in server.requests[1:]} == {0.7}


def test_nothing_is_asked_twice_also_by_another_process(server) -> None:
    questions = [question(server, f"Judge {n}.") for n in range(5)]
    first = ask(questions)
    assert len(server.requests) == 5
    assert ask(questions) == first  # a new source: what is kept lies on the disk
    assert len(server.requests) == 5


def test_a_budget_stops_cleanly_and_the_next_run_goes_on(server) -> None:
    questions = [question(server, f"Judge {n}.") for n in range(5)]
    # What is under way at the end is waited for, and counted: two requests of 101 tokens.
    with pytest.raises(JobError, match=r"2: 2 requests, 202 tokens.*Run the same command again"):
        ask(questions, requests=2)
    assert len(server.requests) == 2
    with pytest.raises(JobError, match="--max-tokens 150"):
        ask(questions, tokens=150, concurrency=1)  # one by one: each takes 101
    assert len(server.requests) == 4
    ask(questions)
    assert len(server.requests) == 5
    assert max(server.asked.values()) == 1


def test_a_run_is_resumed_from_what_was_kept_and_says_what_it_cost(server, tmp_path) -> None:
    metric = f"llm-judge:model={server.address}"
    with pytest.raises(JobError, match="max-requests"):
        score(
            samples(6), [metric], out=tmp_path / "run", servers=Servers(budget=Budget(requests=3))
        )
    prices = Budget(price_in=10.0, price_out=20.0)
    run = score(samples(6), [metric], out=tmp_path / "run", servers=Servers(budget=prices))
    assert run.scores(metric) == pytest.approx([4.25] * 6, abs=1e-6)
    assert max(server.asked.values()) == 1
    spent = run.history[-1]["servers"]
    assert spent["requests"] + 3 == 6
    # 3 requests of 100 and 1 tokens, at 10 and 20 a million
    assert spent["cost"] == pytest.approx((3 * 100 * 10 + 3 * 1 * 20) / 1e6)


def test_an_estimate_asks_nothing(server) -> None:
    metric = LlmJudge(model=server.address, rubric="qualities", samples=10)
    (found,) = estimate([q for sample in samples(3) for q in metric.ask(sample)])
    assert (found.questions, found.requests) == (12, 120)
    assert found.tokens_in > 120 * 50
    assert not server.requests


@pytest.mark.parametrize(
    "manner", ["fail500", "empty", "truncated", "broken", "schema", "huge", "reset", "web-page"]
)
def test_a_server_that_misbehaves_ends_in_a_message(server, manner) -> None:
    with pytest.raises(JobError, match="openai:"):
        ask([question(server, f"{manner} please")])


def test_a_busy_server_is_asked_again_and_the_others_are_not_lost(server) -> None:
    server.says = ["4"]
    found = ask([question(server, "once more", samples=1), question(server, samples=1)])
    assert len(found) == 2
    with pytest.raises(JobError):
        ask([question(server, "fail500 now"), *(question(server, f"Judge {n}.") for n in range(3))])
    before = len(server.requests)
    ask([question(server, f"Judge {n}.") for n in range(3)])
    assert len(server.requests) <= before + 3
    assert max(count for text, count in server.asked.items() if text.startswith("Judge")) == 1


def test_the_key_is_in_no_file(server, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    ask([question(server), question(server, "echo-key loudly", samples=1)])
    assert server.headers_seen[0]["Authorization"] == f"Bearer {SECRET}"
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            assert SECRET.encode().lower() not in path.read_bytes().lower()


def test_other_questions_are_refused(server) -> None:
    with pytest.raises(DialevalError, match="a chat server and cannot answer Likelihood"):
        list(Models().load(server.address).answer([Likelihood(server.address, "x")]))


@pytest.mark.parametrize(
    ("reply", "choice"),
    [("4", 3), (" 4.", 3), ("**4**", 3), ("4/5", 3), ("45", None), ("", None), ("Rating: 4", None)],
)
def test_a_reply_counts_if_it_begins_with_a_choice(reply, choice) -> None:
    assert first_choice(reply, FIVE) == choice
    assert first_choice("Yes, it is", ("yes", "no")) == 0


def test_the_signature_says_that_replies_were_counted(server) -> None:
    signed = str(LlmJudge(model=server.address, samples=5).signature())
    assert "samples:5" in signed
    assert json.dumps(signed).count("openai:") == 1


def test_a_worker_gets_servers_with_counts_of_its_own_and_no_limit_of_the_whole_run():
    spent = Servers(usage=Usage(requests=3))
    assert pickle.loads(pickle.dumps(spent)).usage == Usage()
    with pytest.raises(UsageError, match="for one machine"):
        pickle.dumps(Servers(budget=Budget(requests=5)))


def test_limits_are_refused_on_ray_before_anything_is_asked(server) -> None:
    metric = f"llm-judge:model={server.address}"
    for budget in (Budget(requests=3), Budget(tokens=3)):
        with pytest.raises(UsageError, match="hold on one machine only"):
            score(samples(2), [metric], on="ray", servers=Servers(budget=budget))
    assert server.requests == []
