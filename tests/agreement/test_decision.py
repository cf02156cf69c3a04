"""Is the new version worse, and which one would people prefer? Made-up scores in real runs."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
import pytest
from made_up import ONLY_TOLD, NumberTold, Size, Wrong, edit_manifest, sample

import dialeval
from dialeval.agreement.comparison import compare
from dialeval.errors import UsageError
from dialeval.metric import Metric, Part
from dialeval.sample import Sample, Turn
from dialeval.scores import Score

GOOD = np.round(4 + np.random.default_rng(1).normal(size=40) / 5, 3)
QUARTER_WORSE = np.where(np.arange(40) % 4 == 0, GOOD - 2, GOOD)
"""A quarter of the answers lost two points: the mean lost half a point."""

NOISE = np.random.default_rng(7).normal(size=40)
NOISE = np.round(NOISE - NOISE.mean() - 0.1, 3)
"""Differences with a mean of -0.1 and a standard error of about 0.15."""


@pytest.fixture
def score(tmp_path):
    def run(name, values, metrics=ONLY_TOLD):
        samples = [
            Sample(id=f"s{i}", context=(Turn(f"question {i}"),), response=str(value))
            for i, value in enumerate(values)
        ]
        return dialeval.score(samples, metrics, out=tmp_path / name)

    return run


def decided(old, new, **options):
    (one,) = dialeval.compare(
        old, new, **{"fail_if_worse": "told", "rounds": 999, **options}
    ).decisions
    return one


def test_a_version_with_a_quarter_of_worse_answers_is_worse_and_the_other_way_round_better(score):
    old, new = score("old", GOOD), score("new", QUARTER_WORSE)
    one = decided(old, new)
    assert (one.verdict, one.failed, one.n) == ("worse", True, 40)
    assert one.difference == pytest.approx(-0.5)
    assert one.sentence().startswith("FAILED: new is worse than old on told: ")
    other = decided(new, old)
    assert (other.verdict, other.failed) == ("better", False)
    assert other.sentence().startswith("PASSED: old is better than new on told: ")


def test_the_same_answers_twice_are_not_worse_even_without_a_margin(score):
    one = decided(score("old", GOOD), score("new", GOOD), fail_if_unsure=True)
    assert (one.verdict, one.failed, one.difference) == ("not worse", False, 0.0)
    assert one.sentence().endswith("Every score is the same.")


def test_a_real_drop_within_the_margin_does_not_fail(score):
    old, new = score("old", GOOD), score("new", GOOD - 0.05)
    assert decided(old, new).verdict == "worse"
    inside = decided(old, new, margin=0.1, fail_if_unsure=True)
    assert (inside.verdict, inside.failed) == ("not worse", False)
    assert "The margin is 0.1." in inside.sentence()


def test_noise_cannot_be_told_and_fails_only_on_request(score):
    old, new = score("old", GOOD), score("new", GOOD + NOISE)
    one = decided(old, new)
    assert (one.verdict, one.failed) == ("cannot tell", False)
    assert one.sentence().startswith("UNDECIDED: cannot tell whether new is worse than old on told")
    strict = decided(old, new, fail_if_unsure=True)
    assert (strict.failed, strict.word) == (True, "FAILED")
    assert decided(old, new, margin=5, fail_if_unsure=True).verdict == "not worse"


def test_too_few_answers_are_said_to_be_too_few(score):
    # Five differences of one sign have p = 2 / 2^5 = .0625, six 2 / 2^6 = .031.
    one = decided(score("old", GOOD[:5]), score("new", GOOD[:5] - 1), rounds=9999)
    assert one.verdict == "cannot tell"
    assert "With fewer than 6 answers no difference can be significant at 0.05" in one.sentence()
    assert decided(score("old6", GOOD[:6]), score("new6", GOOD[:6] - 1)).verdict == "worse"


def test_less_of_a_metric_whose_direction_is_lower_is_no_drop(score):
    old, new = score("old", GOOD, [Wrong()]), score("new", QUARTER_WORSE, [Wrong()])
    assert decided(old, new, fail_if_worse="wrong").verdict == "better"
    assert decided(new, old, fail_if_worse="wrong").verdict == "worse"


def test_p_is_corrected_over_the_decisions_and_not_over_the_table(score):
    metrics = (NumberTold(), Wrong(), Size())
    old, new = score("old", GOOD, metrics), score("new", GOOD + NOISE, metrics)
    one = decided(old, new)
    row = dialeval.compare(old, new, rounds=999).rows[0]
    assert one.p == row.p
    assert row.p_holm == pytest.approx(min(1.0, 3 * row.p))
    both = dialeval.compare(old, new, fail_if_worse=["told", "wrong"], rounds=999).decisions
    assert [two.p for two in both] == pytest.approx([min(1.0, 2 * row.p)] * 2)


def test_margins_of_several_metrics_have_units_of_their_own(score):
    metrics = (NumberTold(), Wrong())
    old, new = score("old", GOOD, metrics), score("new", GOOD - 0.05, metrics)
    found = dialeval.compare(
        old, new, fail_if_worse=["told", "wrong"], margin={"told": 0.1}, rounds=999
    ).decisions
    assert [(one.metric, one.verdict, one.margin) for one in found] == [
        ("told", "not worse", 0.1),
        ("wrong", "better", 0.0),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fail_if_worse": True}, "no metric 'judge' in old, new"),
        ({"fail_if_worse": "size"}, "neither more nor less of it is better"),
        ({"fail_if_worse": "told", "margin": -1}, "at least 0"),
        ({"fail_if_worse": "told", "margin": float("nan")}, "at least 0"),
        ({"fail_if_worse": "told", "margin": {"size": 1}}, "nothing is decided on it"),
        ({"margin": 1.0}, "for --fail-if-worse"),
        ({"fail_if_unsure": True}, "for --fail-if-worse"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused(score, options, message):
    metrics = (NumberTold(), Size())
    with pytest.raises(UsageError, match=message):
        dialeval.compare(
            score("old", GOOD[:9], metrics), score("new", GOOD[:9], metrics), rounds=99, **options
        )


def test_runs_that_measured_different_things_pass_no_build(score):
    old, new = score("old", GOOD), score("new", GOOD)
    edit_manifest(new.directory, "told|v1|", "told|v1|model:other@1|")
    with pytest.raises(UsageError, match=r"cannot decide on 'told'. told: .*model"):
        dialeval.compare(old, dialeval.open_run(new.directory), fail_if_worse="told")


def test_junit_has_a_failure_for_what_is_worse_and_skips_what_cannot_be_told(score):
    metrics = (NumberTold(), Wrong())
    old, new = score("old", GOOD, metrics), score("new", QUARTER_WORSE, metrics)
    both = dialeval.compare(old, new, fail_if_worse=["told", "wrong"], worst=1, rounds=999)
    suite = ElementTree.fromstring(both.to_junit()).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    (failure,) = suite.iter("failure")
    assert failure.get("message") == both.decisions[0].sentence()
    assert failure.text.splitlines()[1].startswith("-2  s")
    unsure = dialeval.compare(old, score("noise", GOOD + NOISE, metrics), fail_if_worse="told")
    (skipped,) = ElementTree.fromstring(unsure.to_junit()).iter("skipped")
    assert skipped.get("message").startswith("UNDECIDED")


def test_the_summary_shows_hostile_text_as_text(tmp_path):
    def run(name, last):
        lines = [f"word {i}" for i in range(9)] + [last]
        samples = [
            Sample(id=f"s{i}", context=(Turn("a | b"),), response=line)
            for i, line in enumerate(lines)
        ]
        return dialeval.score(samples, ["length"], out=tmp_path / name)

    hostile = "<img src=x> [click](http://x) @everybody `x` | \x1b[2J\nnew line"
    found = dialeval.compare(run("old", "short"), run("new", hostile), worst=1, rounds=99)
    text = found.to_markdown()
    assert "&lt;img src=x&gt; \\[click\\](http:\u200b//x) @\u200beverybody \\`x\\` \\|" in text
    assert "\x1b" not in text
    assert "\nnew line" not in text


def test_the_record_of_a_comparison_holds_the_decision(score):
    found = dialeval.compare(score("old", GOOD), score("new", QUARTER_WORSE), fail_if_worse="told")
    record = json.loads(json.dumps(found.to_record()))
    assert record["failed"] is True
    assert record["decisions"][0]["verdict"] == "worse"
    assert record["decisions"][0]["sentence"] == found.decisions[0].sentence()


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
