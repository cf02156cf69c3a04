"""Two versions of a chatbot, and three chatbots in one run."""

import json
from types import SimpleNamespace

import pytest
from made_up import edit_manifest

from dialeval.cli.show_agreement import _show_preferences


@pytest.fixture
def runs(dialeval, tmp_path):
    """Twenty questions; the new version says more, and its last answer is hostile."""
    for name, words in (("old", 4), ("new", 7)):
        rows = [
            {
                "id": f"q{i}",
                "context": [f"question {i}"],
                "response": " ".join(f"w{j}" for j in range(words + (i * words) % 3)),
                "references": ["w0 w1 w2 w3"],
                "system": "bot",
            }
            for i in range(20)
        ]
        if name == "new":
            rows[-1]["response"] = "\x1b[2J"
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        metrics = ["-m", "length", "-m", "bleu:n=1", "-m", "distinct"]
        dialeval("score", str(path), *metrics, "-o", str(tmp_path / "runs" / name))
    return tmp_path / "runs"


def test_a_newcomer_reads_who_is_better(dialeval, runs):
    done = dialeval("compare", str(runs / "old"), str(runs / "new"))
    assert done.code == 0, done.err
    assert "samples: old 20, new 20; 20 joined by id" in done.out
    assert "old is better than new on bleu:n=1: +" in done.out
    assert "new differs from old on length: +" in done.out
    assert "after Holm" in done.out


def test_json_has_a_row_for_each_metric_and_the_verdict(dialeval, runs):
    found = json.loads(dialeval("compare", str(runs / "old"), str(runs / "new"), "--json").out)
    assert [row["metric"] for row in found["rows"]] == ["length", "bleu:n=1", "distinct"]
    row = found["rows"][1]
    assert (row["first"], row["second"], row["outcome"]) == ("old", "new", "worse")
    assert row["low"] < row["difference"] < row["high"] < 0
    assert found["verdict"][0].startswith("old is better than new on bleu:n=1")


def test_the_samples_that_fell_most_are_shown_and_cannot_steer_the_terminal(dialeval, runs):
    arguments = ["compare", str(runs / "old"), str(runs / "new"), "-m", "bleu:n=1", "--worst", "1"]
    done = dialeval(*arguments)
    assert "bleu:n=1: fell most in new" in done.out
    assert "q19" in done.out
    assert "before: question 19" in done.out
    assert "\x1b" not in done.out
    found = json.loads(dialeval(*arguments, "--json").out)
    assert found["changes"][0]["ids"] == ["q19", "q19"]


def test_systems_of_one_run_are_compared(dialeval, tmp_path):
    run = str(tmp_path / "bots")
    dialeval("score", "examples/four-bots.jsonl", "-m", "length", "-m", "meteor", "-o", run)
    done = dialeval("compare", run)
    assert done.code == 0, done.err
    assert "attentive" in done.out.split("\n\n")[1].splitlines()[2]
    assert "attentive is better than" not in done.out
    assert "attentive is better than broken on meteor" in dialeval("compare", run, "--pairs").out
    found = json.loads(dialeval("compare", run, "--json").out)
    meteor = next(one for one in found["standings"] if one["metric"] == "meteor")
    assert meteor["sides"][0]["name"] == "attentive"
    two = ["compare", run, "--system", "attentive", "--system", "bland", "--worst", "1"]
    assert "fell most in bland" in dialeval(*two).out


def test_a_picture_shows_the_differences(dialeval, runs, tmp_path):
    picture = tmp_path / "differences.svg"
    dialeval("compare", str(runs / "old"), str(runs / "new"), "--plot", str(picture))
    assert "new against old" in picture.read_text(encoding="utf-8")


def test_other_scales_are_warned_about(dialeval, runs):
    for name in ("old", "new"):
        edit_manifest(runs / name, "distinct|v1|", f"distinct|v1|calibration:floor@{name}|")
    done = dialeval("compare", str(runs / "old"), str(runs / "new"))
    assert "distinct: not comparable, the runs have different scales" in done.err
    assert "not comparable between old and new: distinct" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["old"], "holds one system"),
        (["old", "old"], "given twice"),
        (["old", "nowhere"], "no such folder"),
        (["old", "new", "-m", "blue:n=1"], "Did you mean 'bleu:n=1'?"),
        (["old", "new", "--join", "item"], "has the same item"),
        (["old", "new", "--system", "bto"], "Did you mean 'bot'?"),
        (["old", "new", "--plot", "x.pdf"], ".svg or .png"),
        (["old", "new", "--rounds", "3"], "99"),
    ],
)
def test_what_makes_no_sense_is_refused(dialeval, runs, arguments, message):
    names = [str(runs / word) if word in ("old", "new", "nowhere") else word for word in arguments]
    done = dialeval("compare", *names)
    assert (done.code, message in done.err) == (2, True), done.err


def test_systems_that_are_taken_together_are_said_to_be(dialeval, tmp_path):
    for name, extra in (("old", ""), ("new", " more")):
        lines = [
            {"id": f"{bot}{n}", "system": bot, "context": ["hi"], "response": f"word {n}{extra}"}
            for n in range(6)
            for bot in "AB"
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert dialeval("score", str(path), "-m", "length", "-o", str(tmp_path / name)).code == 0
    runs = (str(tmp_path / "old"), str(tmp_path / "new"), "--rounds", "199")
    assert "all systems are taken together" in dialeval("compare", *runs).err
    assert "taken together" not in dialeval("compare", *runs, "--system", "A").err


def test_an_answer_that_speaks_for_the_preferred_side_has_a_plus(capsys):
    change = SimpleNamespace(
        ids=("a", "b"), difference=-1.5, context=(), scores=(4.0, 2.5), responses=("x", "y")
    )
    new = SimpleNamespace(first="new", second="old", deciding=(change,), sentence=lambda: "S")
    _show_preferences(SimpleNamespace(preferences=(new,), sides=("old", "new")))
    assert "  +1.5  a / b" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-requests", "3"), "are for --judge"),
        (("--judge", "m", "--junit", "x.xml"), "--judge compares answers, not scores"),
        (("--judge", "m", "--margin", "1"), "--judge compares answers, not scores"),
    ],
)
def test_options_that_would_be_ignored_are_refused(dialeval, runs, words, message):
    done = dialeval("compare", str(runs / "old"), str(runs / "new"), *words)
    assert (done.code, message in done.err) == (2, True)
