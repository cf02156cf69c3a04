"""A metric joins a finished run: nothing is scored again, and a kill loses nothing."""

import json
import shutil
from dataclasses import dataclass

import pyarrow.parquet as pq
import pytest

import dialeval
from dialeval.engine import adding
from dialeval.engine.job import Job
from dialeval.errors import UsageError
from dialeval.examples import four_bots
from dialeval.sample import Sample, Turn
from dialeval.scores import Score

CALLS = []


@dataclass(frozen=True)
class Counted(dialeval.Metric):
    """Its value is the number of letters; every call is written down."""

    name = "counted"

    def score(self, sample, answers):
        CALLS.append(sample.id)
        return Score(float(len(sample.response)))


@dataclass(frozen=True)
class Later(Counted):
    name = "later"


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def samples(count=30):
    return [
        Sample(id=f"s{i}", context=(Turn("hi"),), response="x" * i, system="ab"[i % 2])
        for i in range(count)
    ]


def rows(run, *columns):
    table = pq.read_table(run.directory / "scores.parquet")
    return table.select(columns).to_pylist() if columns else table.to_pylist()


def test_a_run_with_an_added_metric_holds_what_a_run_with_both_holds(tmp_path):
    first = dialeval.score(dialeval.load(four_bots()), ["bleu"], out=tmp_path / "first")
    grown = dialeval.add_metrics(first, ["distinct", "chrf"])
    both = dialeval.score(
        dialeval.load(four_bots()), ["bleu", "distinct", "chrf"], out=tmp_path / "both"
    )
    assert rows(grown) == rows(both)
    assert str(grown.table()) == str(both.table())
    for name in ("metrics", "systems", "data"):
        assert grown.manifest[name] == both.manifest[name], name
    added = grown.manifest["added"]
    assert [one["metrics"] for one in added] == [["distinct", "chrf"]]
    assert not (tmp_path / "first" / "adding").exists()
    assert dialeval.open_run(tmp_path / "first").history[-1]["event"] == "added"


def test_nothing_is_scored_again_and_a_metric_that_is_there_is_left_alone(tmp_path):
    run = dialeval.score(samples(), [Counted()], out=tmp_path / "run")
    CALLS.clear()
    run = dialeval.add_metrics(run, [Counted(), Later()])
    assert len(CALLS) == 30
    assert run.metrics == ["counted", "later"]
    CALLS.clear()
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    dialeval.add_metrics(tmp_path / "run", [Later()])
    assert CALLS == []
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_a_killed_addition_goes_on_and_leaves_the_run_readable(tmp_path, monkeypatch):
    run = dialeval.score(samples(), [Counted()], out=tmp_path / "run")
    usual = Job.__init__
    monkeypatch.setattr(
        Job, "__init__", lambda self, *a, **k: usual(self, *a, **{**k, "chunk": 10})
    )
    CALLS.clear()

    def killed(done, read):
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dialeval.add_metrics(run, [Later()], progress=killed)
    assert dialeval.open_run(tmp_path / "run").metrics == ["counted"]
    scored = len(CALLS)
    CALLS.clear()
    grown = dialeval.add_metrics(run, [Later()])
    assert len(CALLS) == 30 - scored // 10 * 10
    assert grown.scores("later") == [float(i) for i in range(30)]


@pytest.mark.parametrize("after", ["nothing", "scores"])
def test_a_kill_between_the_last_two_renames_is_told_and_put_right(tmp_path, monkeypatch, after):
    run = dialeval.score(samples(), [Counted()], out=tmp_path / "run")
    monkeypatch.setattr(adding, "finish_addition", lambda directory: None)
    added = dialeval.score(run.samples(), [Later()], out=tmp_path / "run" / "adding")
    adding.join_addition(run, added)
    monkeypatch.undo()
    if after == "scores":
        joined = tmp_path / "run" / "adding" / "joined" / "scores.parquet"
        joined.replace(tmp_path / "run" / "scores.parquet")
    with pytest.raises(UsageError, match="interrupted at the very end"):
        dialeval.open_run(tmp_path / "run")
    CALLS.clear()
    grown = dialeval.add_metrics(tmp_path / "run", [Later()])
    assert CALLS == []
    assert grown.metrics == ["counted", "later"]
    assert grown.scores("later") == grown.scores("counted")


def test_a_run_in_parts_stays_one_in_parts(tmp_path):
    place = tmp_path / "run"
    Job(place, [Counted()], chunk=2, part=4).run(samples(40))
    files = [path.name for path in dialeval.open_run(place).score_files]
    assert len(files) > 1
    grown = dialeval.add_metrics(place, [Later()])
    assert [path.name for path in grown.score_files] == files
    assert grown.scores("later") == [float(i) for i in range(40)]


def test_the_first_command_still_finds_its_run(tmp_path):
    dialeval.score(samples(), [Counted()], out=tmp_path / "run")
    dialeval.add_metrics(tmp_path / "run", [Later()])
    CALLS.clear()
    run = dialeval.score(samples(), [Counted()], out=tmp_path / "run")
    assert (run.metrics, CALLS) == (["counted", "later"], [])
    with pytest.raises(UsageError, match="with other metrics"):
        dialeval.score(samples(), [Later()], out=tmp_path / "run")


def test_a_metric_that_was_measured_in_another_way_does_not_join(tmp_path):
    run = dialeval.score(samples(), [Counted()], out=tmp_path / "run")

    @dataclass(frozen=True)
    class Changed(Counted):
        version = 2

    with pytest.raises(UsageError, match="has counted already, measured in another way"):
        dialeval.add_metrics(run, [Changed()])


def test_the_verb_adds_and_refuses_what_makes_no_sense(tmp_path, capsys, monkeypatch):
    import sys

    from dialeval.cli import main

    def verb(*words):
        monkeypatch.setattr(sys, "argv", ["dialeval", *words])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, capsys.readouterr()

    run = str(tmp_path / "run")
    assert verb("score", str(four_bots()), "-m", "length", "-o", run, "-q")[0] == 0
    code, shown = verb("score", "--add", "distinct", run, "--json")
    assert code == 0, shown.err
    assert [m["label"] for m in json.loads(shown.out)["manifest"]["metrics"]] == [
        "length",
        "distinct",
    ]
    for words, message in (
        (["--add", "distinct", run, "-m", "bleu"], "takes one finished run"),
        (["--add", "distinct", run, run], "takes one finished run"),
        (["--add", "distinct", str(four_bots())], "is a file, not a run"),
        (["--add", "distnct", run], "Did you mean 'distinct'"),
    ):
        code, shown = verb("score", *words)
        assert (code, message in shown.err) == (2, True), shown.err
    shutil.rmtree(run)
