"""Contests: two ways to the same numbers, timed in turns."""

from __future__ import annotations

import json

import peers
import pytest
from contests import (
    Contest,
    Outcome,
    bleu,
    bootstrap_correlation,
    chrf,
    example_dialogues,
    example_pairs,
    hold,
    largest_difference,
    permutation_test,
    rouge,
)


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


def test_a_peer_that_is_not_installed_is_skipped_and_named():
    def absent():
        raise ModuleNotFoundError("No module named 'bert_score'", name="bert_score")

    outcomes, skipped = peers.measure({"bertscore": absent}, ["bertscore"], rounds=1)
    assert not outcomes
    assert skipped[0].name == "bertscore"
    assert skipped[0].reason == "bert_score is not installed"


def test_an_unknown_contest_is_named_with_those_that_there_are(capsys):
    with pytest.raises(SystemExit, match="2"):
        peers.main(["--example", "rogue"])
    assert "unknown: rogue. There are: rouge, bleu" in capsys.readouterr().err


def test_the_program_prints_ratios_as_json(monkeypatch, capsys):
    contest = Contest("c", "p", lambda: [1.0], lambda: [1.5], largest_difference)
    monkeypatch.setattr(peers, "makers", lambda options: {"c": lambda: contest})
    peers.main(["--example", "c", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert record["contests"][0]["difference"] == 0.5
    assert record["contests"][0]["times_faster"] > 0
    assert record["skipped"] == []
