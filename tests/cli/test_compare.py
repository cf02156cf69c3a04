"""Two versions of a chatbot, three chatbots in one run, and decisions for a build."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
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
        ids=("a", "b"), difference=1.5, context=(), scores=(4.0, 2.5), responses=("x", "y")
    )
    new = SimpleNamespace(first="new", second="old", deciding=(change,), sentence=lambda: "S")
    _show_preferences(SimpleNamespace(preferences=(new,), sides=("old", "new")))
    assert "  +1.5  a / b" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--max-requests", "3"), "need --judge"),
        (("--judge", "m", "--junit", "x.xml"), "--judge compares answers, not scores"),
        (("--judge", "m", "--margin", "1"), "--judge compares answers, not scores"),
    ],
)
def test_options_that_would_be_ignored_are_refused(dialeval, runs, words, message):
    done = dialeval("compare", str(runs / "old"), str(runs / "new"), *words)
    assert (done.code, message in done.err) == (2, True)


ROOT = Path(__file__).parent.parent.parent


def answers(path, quarter_worse=False):
    """Forty answers of the references' words; the worse version loses most in every fourth."""
    rows = [
        {
            "id": f"q{i}",
            "context": [f"question {i}"],
            "response": "no idea" if quarter_worse and i % 4 == 0 else f"the answer is {i} or so",
            "references": [f"the answer is {i} or so"],
        }
        for i in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def gated(dialeval, tmp_path):
    """Runs to decide on: an old version, a worse one, and the old one again."""
    for name in ("old", "new", "same"):
        path = answers(tmp_path / f"{name}.jsonl", name == "new")
        done = dialeval("score", path, "-m", "bleu", "-o", str(tmp_path / name), "-q")
        assert done.code == 0, done.err
    return {name: str(tmp_path / name) for name in ("old", "new", "same")}


QUICK = ("--rounds", "999")


def test_a_worse_version_exits_with_1_and_ends_with_one_sentence(dialeval, gated):
    gate = ("--fail-if-worse", "bleu", "--margin", "2", *QUICK)
    done = dialeval("compare", gated["old"], gated["new"], *gate)
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith("FAILED: new is worse than old on bleu: ")
    swapped = dialeval("compare", gated["new"], gated["old"], *gate)
    assert swapped.code == 0
    assert swapped.out.splitlines()[-1].startswith("PASSED: old is better than new on bleu: ")
    same = dialeval("compare", gated["old"], gated["same"], *gate)
    assert same.code == 0
    assert same.out.splitlines()[-1].endswith("Every score is the same.")
    assert "no difference shown between old and same on bleu" in same.out


def test_the_decision_is_in_the_json_too(dialeval, gated):
    gate = ("--fail-if-worse=bleu", "--json", *QUICK)
    done = dialeval("compare", gated["old"], gated["new"], *gate)
    assert (done.code, json.loads(done.out)["failed"]) == (1, True)


def test_the_name_of_the_metric_may_be_left_out_wherever_the_option_stands(dialeval, gated):
    for words in (
        [gated["old"], gated["new"], "--fail-if-worse"],
        [gated["old"], gated["new"], "--fail-if-worse", "--margin", "1"],
        ["--fail-if-worse", gated["old"], gated["new"]],
    ):
        done = dialeval("compare", *words)
        assert (done.code, "no metric 'judge' in old, new" in done.err) == (2, True), done.err


def test_junit_and_summary_are_written_and_a_summary_is_appended(
    dialeval, gated, tmp_path, monkeypatch
):
    junit, summary = tmp_path / "reports" / "compare.xml", tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    gate = ("--fail-if-worse", "bleu", "--junit", str(junit), "--github-summary", *QUICK)
    assert dialeval("compare", gated["old"], gated["new"], *gate).code == 1
    assert '<testsuite name="dialeval compare" tests="1" failures="1"' in junit.read_text()
    text = summary.read_text()
    assert text.startswith("before\n### dialeval compare: old and new")
    assert "FAILED: new is worse than old on bleu" in text
    assert re.search(r"^\| bleu \(turns\) \| old \| new \|.*\| worse \|$", text, re.M)
    named = tmp_path / "named.md"
    dialeval("compare", gated["old"], gated["new"], "--github-summary", str(named), *QUICK)
    assert named.read_text().startswith("### dialeval compare")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--junit", "x.xml"], "decisions of --fail-if-worse"),
        (["--margin", "1"], "for --fail-if-worse"),
        (["--fail-if-worse", "bleu", "--margin", "much"], "expected a number"),
        (["--fail-if-worse", "bleu", "--margin", "1", "--margin", "2"], "name the metric of each"),
        (["--fail-if-worse", "bleu", "--margin", "blue=1"], "Did you mean 'bleu'?"),
        (["--fail-if-worse", "blue"], "Did you mean 'bleu'?"),
        (["--github-summary"], "$GITHUB_STEP_SUMMARY is not set"),
    ],
)
def test_a_gate_that_makes_no_sense_is_refused(dialeval, gated, monkeypatch, options, message):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    done = dialeval("compare", gated["old"], gated["new"], *options, *QUICK)
    assert (done.code, message in done.err) == (2, True), done.err


PLUGIN_TESTS = """
from dialeval.pytest_plugin import assert_not_worse

def compared(dialeval_compare, old, new):
    return dialeval_compare(old, new, metrics=["bleu"], rounds=999)

def test_worse(dialeval_compare):
    assert_not_worse(compared(dialeval_compare, "old.jsonl", "new.jsonl"), "bleu", margin=2)

def test_better(dialeval_compare):
    assert_not_worse(compared(dialeval_compare, "new.jsonl", "old.jsonl"), "bleu")

def test_a_run_and_a_file(dialeval_compare):
    assert_not_worse(compared(dialeval_compare, "old", "old.jsonl"), "bleu", fail_if_unsure=True)
"""


def test_the_pytest_plugin_fails_the_test_of_a_worse_version_with_the_sentence(gated, tmp_path):
    (tmp_path / "test_bot.py").write_text(PLUGIN_TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "dialeval.pytest_plugin", "test_bot.py"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "AssertionError: FAILED: new is worse than old on bleu: " in done.stdout
    assert "pytest_plugin.py:" not in done.stdout  # the frame of the helper is hidden


def test_the_plugin_is_an_entry_point_and_imports_nothing_until_it_is_used():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module = project["entry-points"]["pytest11"]["dialeval"]
    code = (
        f"import sys, {module} as plugin; plugin.dialeval_compare;"
        "heavy = {'numpy', 'pyarrow', 'torch', 'typer', 'dialeval.metric'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_script_for_continuous_integration_fails_the_build_of_a_worse_version(tmp_path):
    answers(tmp_path / "old.jsonl")
    answers(tmp_path / "new.jsonl", quarter_worse=True)
    command = tmp_path / "bin" / "dialeval"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dialeval "$@"\n')
    command.chmod(0o755)
    places = {k: v for k, v in os.environ.items() if k != "GITHUB_STEP_SUMMARY"}
    places["PATH"] = f"{command.parent}:{places['PATH']}"

    def check(*arguments):
        script = [str(ROOT / "examples" / "ci" / "check_bot.sh"), *arguments]
        return subprocess.run(script, capture_output=True, text=True, cwd=tmp_path, env=places)

    worse = check("old.jsonl", "new.jsonl", "bleu", "2")
    assert worse.returncode == 1, worse.stderr
    assert worse.stdout.splitlines()[-1].startswith("FAILED: new is worse than old on bleu")
    assert 'failures="1"' in (tmp_path / "runs" / "compare.xml").read_text()
    assert "Answers that changed most" in (tmp_path / "runs" / "summary.md").read_text()
    better = check("new.jsonl", "old.jsonl", "bleu", "2")
    assert better.returncode == 0, better.stderr


def test_the_workflow_runs_the_script_on_files_that_are_there():
    yaml = pytest.importorskip("yaml")
    text = (ROOT / "examples" / "ci" / "workflow.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    steps = workflow["jobs"]["answers"]["steps"]
    assert all("uses" in step or "run" in step for step in steps)
    for path in re.findall(r"examples/ci/\S+", " ".join(step.get("run", "") for step in steps)):
        assert (ROOT / path).exists(), path
    assert os.access(ROOT / "examples" / "ci" / "check_bot.sh", os.X_OK)
