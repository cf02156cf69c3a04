"""The worst and the best answers of a run, by made-up metrics."""

import json
from dataclasses import dataclass

import pytest

import dialeval
from dialeval.errors import UsageError
from dialeval.metric import Part
from dialeval.sample import Sample, Turn
from dialeval.scores import Score


@dataclass(frozen=True)
class Judged(dialeval.Metric):
    """The response is `value warmth clarity`."""

    name = "judged"

    def score(self, sample, answers):
        if sample.response == "none":
            return Score.missing("nothing to judge")
        value, warmth, clarity = map(float, sample.response.split())
        parts = {"warmth": warmth, "clarity": clarity, "end": 1.0}
        return Score(value, parts, "is cold" if value < 2 else "")

    def parts(self):
        return (
            Part("warmth", "low: is cold"),
            Part("clarity", "low: cannot be understood"),
            Part("end", "of an interval", in_table=False),
        )


@dataclass(frozen=True)
class Errors(Judged):
    name = "errors"
    direction = "lower"


@dataclass(frozen=True)
class Size(Judged):
    name = "size"
    direction = "neither"


RESPONSES = ["3 4 2", "1 1 5", "5 5 5", "none", "2 3 4", "1 2 1"]


@pytest.fixture
def run(tmp_path):
    samples = [
        Sample(
            id=f"s{i}",
            context=(Turn("hello", "user"), Turn(f"question {i}", "user")),
            response=response,
            system="ab"[i % 2],
        )
        for i, response in enumerate(RESPONSES)
    ]
    return dialeval.score(samples, [Judged(), Errors(), Size()], out=tmp_path / "run")


def ids(found):
    return [one.id for one in found]


def test_the_worst_stand_in_order_and_answers_without_a_score_are_left_out(run):
    found = dialeval.worst(run, "judged", n=3)
    assert ids(found) == ["s1", "s5", "s4"]  # s1 before s5: equal scores, order of the file
    assert [one.rank for one in found] == [1, 2, 3]
    assert found.scored == 5
    assert ids(dialeval.best(run, "judged", n=2)) == ["s2", "s0"]


def test_the_reason_is_the_note_and_the_lowest_part_that_says_what_low_means(run):
    first, second, third = dialeval.worst(run, "judged", n=3)
    assert first.reason == "is cold; lowest: warmth 1.0"
    assert second.reason == "is cold; lowest: clarity 1.0 (cannot be understood)"
    assert third.reason == "lowest: warmth 3.0 (is cold)"
    assert first.to_record()["lowest"] == {"part": "warmth", "value": 1.0, "meaning": "is cold"}


@dataclass(frozen=True)
class Bounded(Judged):
    name = "bounded"
    range = (1.0, 5.0)


def test_a_part_in_the_upper_half_of_the_range_means_nothing_bad():
    samples = [Sample(id=one, context=(), response=one) for one in ("5 5 4", "1 2 3.5")]
    good, bad = dialeval.best(dialeval.score(samples, [Bounded()]))
    assert good.reason == "lowest: clarity 4.0"
    assert bad.reason == "is cold; lowest: warmth 2.0"


def test_where_lower_is_better_the_worst_are_the_highest(run):
    assert ids(dialeval.worst(run, "errors", n=1)) == ["s2"]
    assert ids(dialeval.best(run, "errors", n=2)) == ["s1", "s5"]


def test_by_system_each_system_has_its_own_list(run):
    found = dialeval.worst(run, "judged", by="system", n=2)
    assert {name: ids(group) for name, group in found.groups.items()} == {
        "a": ["s4", "s0"],
        "b": ["s1", "s5"],
    }
    assert [one.rank for one in found] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "has no metric 'judge'. Name one with --metric: judged, errors, size"),
        ({"metric": "jugded"}, "Did you mean 'judged'"),
        ({"metric": "size"}, "neither more nor less"),
        ({"metric": "judged", "n": 0}, "at least 1"),
        ({"metric": "judged", "by": "mood"}, "not by 'mood'"),
    ],
)
def test_what_has_no_worst_answer_is_refused(run, arguments, message):
    with pytest.raises(UsageError, match=message):
        dialeval.worst(run, **arguments)


def test_the_page_shows_the_answers_in_the_look_of_the_report_and_hostile_text_as_text(tmp_path):
    hostile = "<script>alert(1)</script> \x1b[2J word"
    samples = [
        Sample(id=f"s{i}", context=(Turn("hi", "user"),), response=text, references=("word",))
        for i, text in enumerate(["word", hostile])
    ]
    run = dialeval.score(samples, ["bleu:n=1"], out=tmp_path / "run")
    found = dialeval.worst(run)  # the only metric
    found.save(tmp_path / "worst.html")
    page = (tmp_path / "worst.html").read_text(encoding="utf-8")
    assert "Worst answers by bleu:n=1" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    assert "\x1b" not in page
    assert page.index("alert(1)") < page.rindex(">word<")
    with pytest.raises(UsageError, match="exists already"):
        found.save(tmp_path / "worst.html")


def test_the_record_is_json(run):
    record = json.loads(json.dumps(dialeval.best(run, "judged", n=1).to_record()))
    assert record["answers"][0]["response"] == "5 5 5"
    assert record["answers"][0]["context"] == ["hello", "question 2"]
