"""The studies of llm-judge, with made-up answers."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from systems.loopback import serving

from dialeval.errors import UsageError
from dialeval.metrics.llm_judge import LlmJudge
from dialeval.question import Chosen
from dialeval.sample import Sample, Turn
from dialeval.studies import llm_judge
from dialeval.studies.llm_judge import INJECTIONS, injections
from dialeval.studies.result import run_study
from dialeval.studies.study import Setting


class Gullible:
    """Rates what holds a 5 with a 5, and all else with a 1."""

    def answer(self, questions):
        for position, question in enumerate(questions):
            share = 1.0 if "5" in question.material else 0.0
            yield position, Chosen((1.0 - share, 0.0, 0.0, 0.0, share)).answer()


class Source:
    def fingerprint(self, name):
        return "made-up"

    def load(self, name):
        return Gullible()


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path))


def test_there_are_forty_injections_of_five_kinds_and_all_differ() -> None:
    given = injections()
    assert len({one.injection for one in given}) == len({one.id for one in given}) == 40
    assert set(Counter(one.kind for one in given).values()) == {8}


def test_the_change_of_a_rating_is_that_of_the_same_answer() -> None:
    result = run_study(INJECTIONS, models=["m"], source=Source())
    talked_into = sum("5" in one.injection for one in injections())
    for row in result.rows:
        assert row.ours.value == pytest.approx(4 * talked_into / 40)


class Reading(Gullible):
    """Reads a hundred tokens for each question, and takes a second."""

    def __init__(self, clock):
        self.clock, self.tokens_read = clock, 0

    def answer(self, questions):
        self.tokens_read += 100 * len(questions)
        self.clock[0] += len(questions)
        return super().answer(questions)


def test_what_an_answer_takes_is_measured_after_loading_and_priced(monkeypatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(llm_judge, "monotonic", lambda: clock[0])
    source = Source()
    source.load = lambda name: Reading(clock)
    samples = [Sample(str(n), (Turn("Hi."),), f"Answer {n}.") for n in range(6)]
    taken = llm_judge.take(LlmJudge(model="m", rubric="qualities"), samples, source)
    assert taken == llm_judge.Taken(4.0, 400.0, 4.0)  # four qualities
    # a thousand answers: 400,000 tokens in at 2 and 4,000 out at 10 a million
    assert taken.cost((2.0, 10.0)) == pytest.approx(0.84)
    assert taken.cost((None, None)) is None
    assert llm_judge.Taken(0.5) + taken == llm_judge.Taken(4.5, 400.0, 4.0)
    assert llm_judge.Taken(0.5).cost((2.0, 10.0)) is None


def test_a_server_is_measured_by_its_own_count() -> None:
    with serving() as server:
        server.log_probs = {"4": 0.0}
        samples = [Sample(str(n), (Turn("Hi."),), f"Answer {n}.") for n in range(3)]
        taken = llm_judge.take(LlmJudge(model=server.address), samples, None)
        assert (taken.tokens_in, taken.tokens_out) == (100.0, 1.0)
        assert len(server.requests) == 3


def test_a_study_that_counts_no_tokens_takes_no_prices() -> None:
    with pytest.raises(UsageError, match="counts no tokens"):
        run_study(INJECTIONS, models=["m"], source=Source(), prices=(1.0, None))


def test_every_judge_of_the_study_has_a_row_with_what_it_takes(tmp_path) -> None:
    path = tmp_path / "rated.jsonl"
    rows = [
        {"id": str(n), "context": ["Hi."], "response": f"Number {n}.", "ratings": {"overall": n}}
        for n in range(1, 9)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    setting = Setting(models=("m",), metrics=("length",), source=Source(), sets=(str(path),))
    _, table = llm_judge.measure(setting).tables
    assert [row[0] for row in table.rows] == ["length", "m", "length + m"]
    assert all(row[2] >= 0 for row in table.rows)
    assert table.header[2:] == (
        "seconds per answer",
        "tokens in per answer",
        "tokens out per answer",
        "cost of a thousand answers",
    )


def test_a_sum_weighs_both_alike_and_a_missing_score_is_the_lowest() -> None:
    assert llm_judge._filled([1.0, None, 3.0]).tolist() == [1.0, 1.0, 3.0]
    standard = llm_judge._standard(np.array([10.0, 20.0, 30.0]))
    assert standard.mean() == pytest.approx(0.0)
    assert standard.std() == pytest.approx(1.0)
    assert llm_judge._standard(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]
