"""What if the bot had said something else? Expected values are counted by hand."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest
from made_up import Asking, Floored, LengthModels, sample, samples

from dialeval import score
from dialeval.errors import UsageError
from dialeval.registry import METRICS
from dialeval.web.rescore import MOST_WAITING, BusyError, Rescorer, _take_idle_cores, sample_of
from dialeval.web.rows import RunRows


@pytest.fixture
def rescorer():
    made = []

    def make(models=None) -> Rescorer:
        made.append(Rescorer(models))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(autouse=True)
def _made_up_metrics(monkeypatch):
    """The metrics of a run are found by name, as those of a plugin would be."""
    for metric in (Asking, Floored):
        monkeypatch.setitem(METRICS._loaded, metric.name, metric)


def what_if(rescorer, run, number, response):
    found = rescorer.submit(run, RunRows(run).take([number])[0], response).result(20)
    return found, {one.label: one for one in found.metrics}


def test_each_metric_is_scored_again_and_compared(tmp_path, rescorer):
    run = score(samples(10), ["length", "distinct:n=1"], out=tmp_path / "run")
    found, by_label = what_if(rescorer(), run, 3, "no no yes")  # was: word word word word
    length, distinct = by_label["length"], by_label["distinct:n=1"]
    assert (length.before, length.after, length.difference) == (4.0, 3.0, -1.0)
    assert length.verdict == ""  # more words are neither better nor worse
    assert (distinct.before, distinct.after) == (0.25, pytest.approx(2 / 3))
    assert distinct.verdict == "better"
    assert "not pooled" in distinct.remark
    assert found.row["response"] == "no no yes"
    assert found.row["length"] == 3.0


def test_the_scale_is_that_of_the_run(tmp_path, rescorer):
    """Raw values are minus the number of words, 1 to 7 of them; the 5th percentile is -7."""
    run = score(samples(14), [Floored()], out=tmp_path / "run")
    low = run.calibrations["floored"].low
    assert low == -7.0
    _, by_label = what_if(rescorer(), run, 0, "one two three")
    assert by_label["floored"].after == pytest.approx((-3 + 7) / 7)
    _, by_label = what_if(rescorer(), run, 0, " ".join(["word"] * 30))
    assert by_label["floored"].after == 0.0


def test_a_model_is_loaded_once_and_known_answers_are_not_asked_for_again(tmp_path, rescorer):
    run = score(samples(4), [Asking()], out=tmp_path / "run", models=LengthModels())
    models = LengthModels()
    scorer = rescorer(models)
    for response, characters in (("abc", 3), ("abcd", 4), ("abc", 3)):
        _, by_label = what_if(scorer, run, 0, response)
        assert by_label["asking"].after == characters
    assert models.loaded == 1
    assert models.model.batches == [1, 1]  # "hello" was cached by the run, the third by the first


def test_other_weights_than_those_of_the_run_are_named(tmp_path, rescorer):
    run = score(samples(4), [Asking()], out=tmp_path / "run", models=LengthModels("a" * 64))
    _, same = what_if(rescorer(LengthModels("a" * 64)), run, 0, "abc")
    assert same["asking"].remark == ""
    _, other = what_if(rescorer(LengthModels("b" * 64)), run, 0, "abc")
    assert "lm was counter@aaaaaaaa, is counter@bbbbbbbb" in other["asking"].remark


def test_a_metric_that_cannot_be_scored_says_why_and_the_others_are(tmp_path, rescorer):
    class Missing(LengthModels):
        def fingerprint(self, name: str) -> str:
            raise UsageError(f"{name} is not here. Get it: dialeval models get {name}")

    bare = [replace(one, references=()) for one in samples(4)]
    metrics = ["length", "bleu", Asking()]
    run = score(bare, metrics, out=tmp_path / "run", models=LengthModels())
    _, by_label = what_if(rescorer(Missing()), run, 0, "two words")
    assert by_label["bleu"].problem == "cannot be scored: no references"
    assert "dialeval models get counter" in by_label["asking"].problem
    assert by_label["asking"].after is None
    assert by_label["length"].after == 2.0


def test_a_metric_that_is_not_installed_any_more_is_named(tmp_path, rescorer, monkeypatch):
    run = score(samples(4), ["length", Floored()], out=tmp_path / "run")
    monkeypatch.delitem(METRICS._loaded, "floored")
    _, by_label = what_if(rescorer(), run, 0, "x")
    assert "no metric 'floored'" in by_label["floored"].problem
    assert by_label["length"].after == 1.0


def test_an_empty_response_is_scored_like_any_other(tmp_path, rescorer):
    run = score(samples(4), ["length", "distinct"], out=tmp_path / "run")
    _, by_label = what_if(rescorer(), run, 0, "")
    assert by_label["length"].after == 0.0
    assert by_label["distinct"].after is None
    assert by_label["distinct"].problem


def test_too_many_at_once_are_turned_away(tmp_path, rescorer):
    go = threading.Event()

    class Slow(LengthModels):
        def load(self, name: str):
            go.wait(20)
            return super().load(name)

    run = score(samples(4), [Asking()], out=tmp_path / "run", models=LengthModels())
    scorer, row = rescorer(Slow()), RunRows(run).take([0])[0]
    waiting = [scorer.submit(run, row, f"text {i}") for i in range(MOST_WAITING)]
    with pytest.raises(BusyError):
        scorer.submit(run, row, "one more")
    go.set()
    assert [future.result(20).metrics[0].after for future in waiting] == [6.0] * MOST_WAITING
    assert scorer.submit(run, row, "one more").result(20).metrics[0].after == 8.0


def test_a_row_gives_its_sample_back(tmp_path):
    run = score([sample(1)], ["length"], out=tmp_path / "run")
    assert sample_of(RunRows(run).take([0])[0]) == sample(1)


@pytest.mark.parametrize(("load", "threads"), [(0.2, 4), (2.6, 1), (50.0, 1)])
def test_models_take_the_cores_that_have_nothing_to_do(monkeypatch, load, threads):
    torch = pytest.importorskip("torch", reason="needs the extra 'models'")
    before = torch.get_num_threads()
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    try:
        _take_idle_cores()
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
