"""A build that fails: `compare --fail-if-worse`, the pytest plugin, and `examples/ci`."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
def runs(dialeval, tmp_path):
    for name in ("old", "new", "same"):
        path = answers(tmp_path / f"{name}.jsonl", name == "new")
        done = dialeval("score", path, "-m", "bleu", "-o", str(tmp_path / name), "-q")
        assert done.code == 0, done.err
    return {name: str(tmp_path / name) for name in ("old", "new", "same")}


QUICK = ("--rounds", "999")


def test_a_worse_version_exits_with_1_and_ends_with_one_sentence(dialeval, runs):
    gate = ("--fail-if-worse", "bleu", "--margin", "2", *QUICK)
    done = dialeval("compare", runs["old"], runs["new"], *gate)
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith("FAILED: new is worse than old on bleu: ")
    swapped = dialeval("compare", runs["new"], runs["old"], *gate)
    assert swapped.code == 0
    assert swapped.out.splitlines()[-1].startswith("PASSED: old is better than new on bleu: ")
    same = dialeval("compare", runs["old"], runs["same"], *gate)
    assert same.code == 0
    assert same.out.splitlines()[-1].endswith("Every score is the same.")
    assert "no difference shown between old and same on bleu" in same.out


def test_the_decision_is_in_the_json_too(dialeval, runs):
    gate = ("--fail-if-worse=bleu", "--json", *QUICK)
    done = dialeval("compare", runs["old"], runs["new"], *gate)
    assert (done.code, json.loads(done.out)["failed"]) == (1, True)


def test_the_name_of_the_metric_may_be_left_out_wherever_the_option_stands(dialeval, runs):
    for words in (
        [runs["old"], runs["new"], "--fail-if-worse"],
        [runs["old"], runs["new"], "--fail-if-worse", "--margin", "1"],
        ["--fail-if-worse", runs["old"], runs["new"]],
    ):
        done = dialeval("compare", *words)
        assert (done.code, "no metric 'judge' in old, new" in done.err) == (2, True), done.err


def test_junit_and_summary_are_written_and_a_summary_is_appended(
    dialeval, runs, tmp_path, monkeypatch
):
    junit, summary = tmp_path / "reports" / "compare.xml", tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    gate = ("--fail-if-worse", "bleu", "--junit", str(junit), "--github-summary", *QUICK)
    assert dialeval("compare", runs["old"], runs["new"], *gate).code == 1
    assert '<testsuite name="dialeval compare" tests="1" failures="1"' in junit.read_text()
    text = summary.read_text()
    assert text.startswith("before\n### dialeval compare: old and new")
    assert "FAILED: new is worse than old on bleu" in text
    assert re.search(r"^\| bleu \(turns\) \| old \| new \|.*\| worse \|$", text, re.M)
    named = tmp_path / "named.md"
    dialeval("compare", runs["old"], runs["new"], "--github-summary", str(named), *QUICK)
    assert named.read_text().startswith("### dialeval compare")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--junit", "x.xml"], "--fail-if-worse decides"),
        (["--margin", "1"], "for --fail-if-worse"),
        (["--fail-if-worse", "bleu", "--margin", "much"], "expected a number"),
        (["--fail-if-worse", "bleu", "--margin", "1", "--margin", "2"], "name the metric of each"),
        (["--fail-if-worse", "bleu", "--margin", "blue=1"], "Did you mean 'bleu'?"),
        (["--fail-if-worse", "blue"], "Did you mean 'bleu'?"),
        (["--github-summary"], "$GITHUB_STEP_SUMMARY is not set"),
    ],
)
def test_a_gate_that_makes_no_sense_is_refused(dialeval, runs, monkeypatch, options, message):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    done = dialeval("compare", runs["old"], runs["new"], *options, *QUICK)
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


def test_the_pytest_plugin_fails_the_test_of_a_worse_version_with_the_sentence(runs, tmp_path):
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
