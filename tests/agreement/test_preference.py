"""What `judge` says of two sides, against arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from made_up import sample

import dialeval
from dialeval.agreement.comparison import compare
from dialeval.metric import Metric, Part
from dialeval.scores import Score


@dataclass(frozen=True)
class Rating(Metric):
    """A judge that rates by the number of words; its doubt is .3."""

    name = "judge"
    levels = frozenset({"turn"})
    range = (1.0, 5.0)

    def score(self, sample, answers):
        return Score(float(len(sample.response.split())), {"doubt": 0.3})

    def parts(self):
        return (Part("doubt", "made up", in_table=False),)


def run(directory, lengths):
    samples = [sample(i, " ".join(["word"] * n)) for i, n in enumerate(lengths)]
    return dialeval.score(samples, [Rating()], out=directory)


OLD, NEW = [1, 2, 3, 2, 1, 2], [3, 2, 4, 4, 3, 2]


def test_the_verdict_is_arithmetic(tmp_path):
    found = compare(run(tmp_path / "old", OLD), run(tmp_path / "new", NEW), rounds=99)
    (one,) = found.preferences
    gains = np.subtract(NEW, OLD)
    error = math.sqrt(gains.var(ddof=1) / 6 + 0.3**2)
    assert (one.first, one.second) == ("new", "old")
    assert one.difference == pytest.approx(gains.mean())
    assert one.probability == pytest.approx(
        0.5 + 0.5 * math.erf(gains.mean() / error / math.sqrt(2))
    )
    assert one.low == pytest.approx(gains.mean() - 1.645 * error)
    assert {change.ids[0] for change in one.deciding} == {"s0", "s3", "s4"}
    assert all(
        change.difference == change.scores[0] - change.scores[1] > 0 for change in one.deciding
    )
    assert one.sentence().startswith("People would prefer new to old: 3.0 against 1.8 of 5, +1.17")
    assert found.to_record()["verdict"][0] == one.sentence()


def test_judges_of_two_releases_are_one_judge(tmp_path, monkeypatch):
    old = run(tmp_path / "old", OLD)
    assert "dialeval:0.1.0" in old.manifest["metrics"][0]["signature"]
    monkeypatch.setattr("dialeval.metric.__version__", "9.9.9")
    new = run(tmp_path / "new", NEW)
    assert "dialeval:9.9.9" in new.manifest["metrics"][0]["signature"]
    assert compare(old, new, rounds=99).preferences


def test_the_order_of_the_sides_does_not_matter(tmp_path):
    old, new = run(tmp_path / "old", OLD), run(tmp_path / "new", NEW)
    assert compare(old, new, rounds=99).preferences == compare(new, old, rounds=99).preferences


def test_nobody_prefers_one_of_two_equal_runs(tmp_path):
    one, other = run(tmp_path / "one", OLD), run(tmp_path / "other", OLD)
    (found,) = compare(one, other, rounds=99).preferences
    assert found.probability == 0.5
    assert found.sentence().startswith("People would hardly prefer")


def test_many_answers_do_not_make_a_small_difference_sure(tmp_path):
    old = run(tmp_path / "old", [2] * 400)
    new = run(tmp_path / "new", [2] * 360 + [3] * 40)
    (found,) = compare(old, new, rounds=99).preferences
    assert found.probability < 0.65


def test_of_several_sides_each_is_held_against_the_next(tmp_path):
    runs = [run(tmp_path / name, [n] * 4) for name, n in (("a", 2), ("b", 5), ("c", 3))]
    found = compare(*runs, rounds=99).preferences
    assert [(one.first, one.second) for one in found] == [("b", "c"), ("c", "a")]


def test_without_a_judge_there_is_no_verdict(tmp_path):
    samples = [sample(i) for i in range(3)]
    runs = [dialeval.score(samples, ["length"], out=tmp_path / name) for name in "ab"]
    assert compare(*runs, rounds=99).preferences == ()
