from __future__ import annotations

import math

import numpy as np
import pytest

import dialeval
from dialeval.errors import UsageError
from dialeval.probe import probe
from dialeval.probe.report import ProbedQuery, Said, probe_report

from .made_up_bots import Bot, queries


class Judge:
    """Two answers about what I do contradict each other where exactly one of them holds "not"."""

    def fingerprint(self, name):
        return "f00d" * 16

    def load(self, name):
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            pair = (question.premise, question.hypothesis)
            differ = len([text for text in pair if "not" in text]) == 1
            yield position, np.array([0.9 if differ and "do" in pair[0] else 0.1, 0.05, 0.05])


def fickle(said):
    """q1 is always answered the same; q2 contradicts itself when asked again; q3 varies."""
    if said[-1].endswith("1"):
        return "yes I do"
    if said[-1].endswith("2"):
        return "I do not" if len(said) > 3 else "of course I do"
    return f"it depends on {said[-1]}"


@pytest.fixture
def probed(tmp_path):
    probe(Bot(fickle), queries(3), tmp_path / "probe")
    return tmp_path / "probe"


def scored(probed, *metrics):
    run = probed.parent / "run"
    dialeval.score(
        dialeval.load(probed), metrics, out=run, models=Judge(), cache=probed.parent / "cache.db"
    )
    return run


def test_contradictions_come_first_then_what_varies_least(probed):
    report = probe_report(scored(probed, "diversity:dispersion=false", "consistency"))
    assert [query.id for query in report] == ["q2", "q1", "q3"]
    worst = report[0]
    assert worst.worst == pytest.approx(0.9)
    assert worst.consistency == pytest.approx(1 - (0.9 + 0.1) / 2)
    (again,) = worst.again
    assert (again.earlier, again.paraphrase, again.later) == (
        "of course I do",
        "wording 1 of 2",
        "I do not",
    )
    assert worst.context == ("Hello!", "Hi.")


def test_that_a_sample_of_one_protocol_was_not_judged_by_the_other_is_no_news(probed):
    report = probe_report(scored(probed, "diversity:dispersion=false", "consistency"))
    assert [query.notes for query in report] == [[], [], []]


def test_why_a_query_has_no_score_of_its_own_protocol_is_noted(tmp_path):
    probe(Bot(lambda said: "Yes"), queries(1), tmp_path / "probe")
    (query,) = probe_report(
        scored(tmp_path / "probe", "diversity:n=2,dispersion=false", "consistency")
    )
    assert query.notes == ["diversity: answers too short"]


def test_entropy_is_that_of_the_answers(probed):
    report = probe_report(scored(probed, "diversity:dispersion=false"), "file")
    assert [query.id for query in report] == ["q1", "q2", "q3"]
    # Three times "yes I do": three words, each a third of all.
    assert report[0].entropy["entropy-1"] == pytest.approx(math.log(3))
    assert report[0].entropy["entropy-2"] == pytest.approx(math.log(2))
    assert report[0].entropy["diversity"] == report[0].entropy["entropy-2"]
    assert report[0].different == 1
    assert report[2].different == 3
    assert report[0].consistency is None


def test_a_probe_that_nobody_scored_can_be_read(probed):
    report = probe_report(probed)
    assert [query.id for query in report] == ["q1", "q2", "q3"]
    assert [query.different for query in report] == [1, 1, 3]
    assert [query.worst for query in report] == [None, None, None]
    assert report[1].again[0].later == "I do not"


def test_answers_of_a_group_that_contradict_the_first_are_marked(tmp_path):
    probe(
        Bot(lambda said: "I do not" if said[-1].startswith("wording 2") else "I do"),
        queries(1),
        tmp_path / "probe",
        protocol="diversity",
    )
    (query,) = probe_report(scored(tmp_path / "probe", "consistency:groups=true"))
    assert [said.contradiction for said in query.answers] == [
        None,
        pytest.approx(0.1),
        pytest.approx(0.9),
    ]


def test_a_run_of_something_else_says_what_is_missing(tmp_path):
    from dialeval.examples import four_bots

    run = tmp_path / "run"
    dialeval.score(dialeval.load(four_bots()), ["length"], out=run)
    with pytest.raises(UsageError, match="holds no answers"):
        probe_report(run)
    with pytest.raises(UsageError, match="no such folder"):
        probe_report(tmp_path / "nowhere")


def probed_query(*responses, **parts):
    said = tuple(Said(f"wording {i}", response) for i, response in enumerate(responses))
    return ProbedQuery("q", "bot", answers=said, entropy=parts)


def test_long_answers_that_are_all_the_same_vary_less_than_short_ones_that_differ():
    long = "a long answer of very many words that nobody has said before in this way"
    same = probed_query(long, long, long, **{"diversity": 2.6, "normalised-2": 0.7})
    short = probed_query("yes I do", "no thanks", **{"diversity": 1.1, "normalised-2": 1.0})
    assert same.variety == 0 < short.variety


def test_variety_is_dispersion_or_else_normalised_entropy_or_else_the_share_of_answers():
    parts = {"dispersion": 0.2, "normalised-2": 0.9, "normalised-1": 0.8, "diversity": 5.0}
    assert probed_query("a", "b", **parts).variety == 0.2
    del parts["dispersion"]
    assert probed_query("a", "b", **parts).variety == 0.9
    del parts["normalised-2"]
    assert probed_query("a", "b", **parts).variety == 0.8
    assert probed_query("a", "b", "b", "b").variety == 0.5
    assert probed_query().variety == math.inf
