"""Contests: two ways to the same numbers, timed in turns."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dialeval.cli.app import app
from dialeval.errors import UsageError
from dialeval.speed import bench
from dialeval.speed.contest import Contest, Outcome, hold, largest_difference
from dialeval.speed.overlap import bleu, chrf, rouge
from dialeval.speed.resampling import bootstrap_correlation, permutation_test
from dialeval.speed.texts import example_dialogues, example_pairs


def test_both_sides_take_turns_and_the_ratio_is_theirs_over_ours():
    calls: list[str] = []
    contest = Contest(
        "c", "p", lambda: calls.append("ours"), lambda: calls.append("theirs"), lambda a, b: 0.0
    )
    hold(contest, rounds=2)
    assert calls == ["ours", "theirs", "ours", "theirs"]
    outcome = Outcome("c", "p", 2.0, 6.0, 1.0, 5.0, rounds=1, difference=0.0)
    assert (outcome.times_faster, outcome.times_less_processor) == (3.0, 5.0)


def test_results_of_different_shapes_are_not_compared():
    assert largest_difference([1.0, 2.0], [1.0, 2.5]) == 0.5
    with pytest.raises(ValueError, match="different shapes"):
        largest_difference([1.0], [1.0, 2.0])


@pytest.mark.parametrize("make", [bleu, chrf, rouge])
def test_our_string_metrics_give_the_numbers_of_their_peers(make):
    contest = make(example_pairs(150))
    assert contest.difference(contest.ours(), contest.theirs()) == 0.0


def test_our_statistics_agree_with_a_plain_loop():
    pytest.importorskip("scipy")
    interval = bootstrap_correlation(200, 400)
    assert interval.difference(interval.ours(), interval.theirs()) < 0.2
    test = permutation_test(200, 400)
    assert test.difference(test.ours(), test.theirs()) < 0.1


def test_no_dialogue_and_no_pair_comes_twice():
    assert len({sample.context for sample in example_dialogues(100)}) == 100
    assert len(set(example_pairs(2000))) == 2000


def test_a_peer_that_is_not_installed_is_skipped_and_named(monkeypatch):
    def absent():
        raise ModuleNotFoundError("No module named 'bert_score'", name="bert_score")

    monkeypatch.setattr(bench, "CONTESTS", {"bertscore": bench.Entry("bert-score", absent)})
    found = bench.measure(["bertscore"])
    assert not found.outcomes
    assert found.skipped[0].peer == "bert-score"
    assert found.skipped[0].reason == "bert_score is not installed"


def test_an_unknown_contest_is_named_with_a_suggestion():
    with pytest.raises(UsageError, match="Did you mean 'rouge'"):
        bench.measure(["rogue"])


def test_the_verb_prints_ratios_as_json(monkeypatch):
    contest = Contest("c", "p", lambda: [1.0], lambda: [1.5], largest_difference)
    monkeypatch.setattr(bench, "CONTESTS", {"c": bench.Entry("p", lambda: contest)})
    result = CliRunner().invoke(app, ["bench", "c", "--json"])
    record = json.loads(result.stdout)
    assert record["contests"][0]["difference"] == 0.5
    assert record["contests"][0]["times_faster"] > 0
    assert record["limits"] is None
