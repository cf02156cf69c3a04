"""A run too large for one file is written in parts, and read as if it were in one."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from made_up import samples

import dialeval
from dialeval.agreement.sources import load_ratings
from dialeval.engine.job import Job
from dialeval.registry import make_metrics
from dialeval.report.material import read_rows
from dialeval.web.rows import Query, RunRows

METRICS = ("length", "distinct")


def scored(directory, **options):
    Job(directory, make_metrics(METRICS), chunk=5, **options).run(samples(100))
    return dialeval.open_run(directory)


@pytest.fixture
def runs(tmp_path):
    """Of a hundred samples. A row group has eight chunks of five, which is more than a part."""
    return scored(tmp_path / "one"), scored(tmp_path / "parts", part=30)


def test_parts_hold_whole_row_groups_and_the_manifest_differs_by_their_names_only(runs):
    one, parts = runs
    assert [path.name for path in one.score_files] == ["scores.parquet"]
    names = [f"scores.parquet/part-0000{number}.parquet" for number in range(3)]
    assert [str(path.relative_to(parts.directory)) for path in parts.score_files] == names
    assert [pq.read_metadata(path).num_rows for path in parts.score_files] == [40, 40, 20]
    of_files = ("files", "sha256")
    manifests = [{k: v for k, v in run.manifest.items() if k not in of_files} for run in runs]
    assert manifests[0] == manifests[1]


def test_other_programs_read_the_parts_as_one_table(runs):
    one, parts = (pq.read_table(run.directory / "scores.parquet") for run in runs)
    assert parts.equals(one)


def test_samples_scores_and_ratings_are_those_of_one_file(runs):
    one, parts = runs
    assert list(parts.samples()) == list(one.samples()) == samples(100)
    assert parts.scores("length") == one.scores("length")
    assert list(load_ratings([parts.directory])) == list(load_ratings([one.directory]))
    rows = [0, 39, 40, 99]
    assert read_rows(parts, rows, ["length"]) == read_rows(one, rows, ["length"])


def test_a_page_finds_its_rows_in_any_part(runs):
    one, parts = map(RunRows, runs)
    assert len(parts) == 100
    query = Query(sort="length", descending=True)
    np.testing.assert_array_equal(parts.ordering(query, None), one.ordering(query, None))
    numbers = [99, 0, 40, 39, 79, 80]
    assert [row["id"] for row in parts.take(numbers)] == [f"s{number}" for number in numbers]


def test_a_copy_has_the_parts_too(runs, tmp_path):
    copy = runs[1].save(tmp_path / "copy")
    assert copy.scores("length") == runs[1].scores("length")


@pytest.mark.parametrize("left", ["a part", "a file"])
def test_an_end_that_was_interrupted_is_made_anew(runs, tmp_path, monkeypatch, left):
    """Killed before the manifest was there, and something else lies in the way."""
    directory = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr(Job, "_finish", lambda *given: None)
        Job(directory, make_metrics(METRICS), chunk=5, part=30).run(samples(100))
    scores = directory / "scores.parquet"
    if left == "a part":
        scores.mkdir()
        shutil.copy(runs[1].score_files[0], scores / "part-00009.parquet")
    else:
        shutil.copy(runs[0].score_files[0], scores)
    run = scored(directory, part=30)
    assert [path.read_bytes() for path in run.score_files] == [
        path.read_bytes() for path in runs[1].score_files
    ]


def test_a_run_without_its_parts_is_damaged(runs):
    for path in runs[1].score_files:
        path.unlink()
    with pytest.raises(dialeval.UsageError, match=r"scores\.parquet is missing"):
        dialeval.open_run(runs[1].directory)


def test_parts_are_replaced_with_the_run(runs):
    directory = runs[1].directory
    run = scored(directory, overwrite=True)
    assert [path.is_file() for path in run.score_files] == [True]
    assert json.loads((directory / "manifest.json").read_text())["data"]["samples"] == 100
