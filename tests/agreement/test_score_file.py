"""Scores from anywhere, and files that only look like them."""

import gzip
import os
from pathlib import Path

import pytest
from made_up import Asking, Floored, LengthModels, Told, samples, two_bots

import dialeval
from dialeval.agreement.sources import read_all_scores, read_scores, scores_of_run
from dialeval.errors import DialevalError
from dialeval.runs.export import export


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_commas_semicolons_and_tabs_are_told_apart(tmp_path, separator):
    path = tmp_path / "scores.csv"
    rows = [["ID", "mine", "a,b" if separator != "," else "ab"], ["s1", "1.5", ""], ["s2", "", "2"]]
    path.write_text("".join(separator.join(row) + "\n" for row in rows))
    scores = read_scores(path)
    assert scores["mine"] == {"s1": 1.5, "s2": None}
    assert list(scores)[1] in ("a,b", "ab")


def test_a_compressed_file_is_read(tmp_path):
    path = tmp_path / "scores.csv.gz"
    path.write_bytes(gzip.compress(b"id,mine\ns1,2\n"))
    assert read_scores(path) == {"mine": {"s1": 2.0}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,mine,mine\ns1,1,2\n", "the column 'mine' occurs twice"),
        (b"id,mine\ns1,1,2\n", "bad.csv:2: 3 cells, but the header has 2 columns"),
        (b"id,mine\ns1\n", "bad.csv:2: 1 cells, but the header has 2 columns"),
        (b"id,mine\ns1,1\n\ns1,2\n", "bad.csv:4: id: 's1' occurs twice"),
        (b"id,mine\n,1\n", "id: missing"),
        (b"id,mine\n", "no row below it"),
        (b"id;mine\ns1;0,5\n", "'0,5' is not a number: write decimals with a point"),
        (b"id,mine,\ns1,1,2\n", "column 3 has no name"),
        (b"id,mine\ns1,nan\ns2,\n", "no score in it, only empty cells and NaN"),
        (b"name,mine\ns1,1\n", "a column named 'id' is needed"),
        (b"id\ns1\n", "no column of scores"),
        (b"", "empty"),
        (bytes(range(256)) * 4, "is binary"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(DialevalError) as caught:
        read_scores(path)
    assert message in str(caught.value)
    assert "bad.csv" in str(caught.value)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux lists open files there")
def test_an_error_that_somebody_keeps_does_not_keep_the_file_open(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(b"id,mine,mine\ns1,1,2\n")
    with pytest.raises(DialevalError) as kept:
        read_scores(path)
    opened = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
    assert (kept.value is None, str(path.resolve()) in opened) == (False, False)


def test_a_missing_file_and_a_folder_are_called_so(tmp_path):
    with pytest.raises(DialevalError, match="no such file"):
        read_scores(tmp_path / "nowhere.csv")
    with pytest.raises(DialevalError, match="is a folder"):
        read_scores(tmp_path)


@pytest.fixture
def run(tmp_path):
    """Parts that are lists, raw values, notes, ratings and texts: all that an export can hold."""
    metrics = [Asking(), Floored(), "bleu", "distinct"]
    cache = tmp_path / "answers.sqlite"
    return dialeval.score(
        samples(20), metrics, out=tmp_path / "run", models=LengthModels(), cache=cache
    )


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_what_export_writes_is_read_as_the_run_itself(run, tmp_path, form):
    path = tmp_path / f"scores.{form}"
    export(run, form, path)
    found = read_scores(path)
    assert found == scores_of_run(run)
    assert list(found) == ["asking", "floored", "bleu", "distinct"]


def test_what_is_handed_in_to_dstc10_is_read(tmp_path):
    run = dialeval.score(samples(5), ["length"], out=tmp_path / "run")
    export(run, "dstc10", tmp_path / "scores.csv")
    assert read_scores(tmp_path / "scores.csv") == {"score": scores_of_run(run)["length"]}


def test_json_of_another_tool_is_read(tmp_path):
    path = tmp_path / "scores.jsonl"
    path.write_text('{"id": "s1", "mine": 1, "other": null}\n{"id": "s2", "mine": 2.5}\n')
    assert read_scores(path) == {"mine": {"s1": 1.0, "s2": 2.5}, "other": {"s1": None}}
    path.write_text('{"id": "s1", "mine": [1, 2]}\n{"mine": true}\n')
    with pytest.raises(DialevalError) as caught:
        read_scores(path)
    for problem in (":1: mine: '[1, 2]' is not", ":2: id: missing", "like it, at line 2)"):
        assert problem in str(caught.value)


def test_scores_of_several_tables_are_joined(run, tmp_path):
    (tmp_path / "a.csv").write_text("id,mine,shared\ns1,1,7\ns2,2,8\n")
    (tmp_path / "b.csv").write_text("id,yours,shared\ns1,5,\ns3,6,9\n")
    with pytest.raises(DialevalError, match=r"'shared' of the sample 's1' is in .*a.csv and in"):
        read_all_scores([tmp_path / "a.csv", tmp_path / "b.csv"])
    (tmp_path / "b.csv").write_text("id,yours,shared\ns3,6,9\n")
    found = read_all_scores([tmp_path / "a.csv", tmp_path / "b.csv", run.directory])
    assert found["mine"] == {"s1": 1.0, "s2": 2.0}
    assert found["yours"] == {"s3": 6.0}
    assert found["shared"] == {"s1": 7.0, "s2": 8.0, "s3": 9.0}
    assert found["bleu"] == scores_of_run(run)["bleu"]


def test_runs_on_scales_of_their_own_are_not_one_column(tmp_path):
    paths = [tmp_path / "good", tmp_path / "bad"]
    for path, answers in zip(paths, two_bots(), strict=True):
        dialeval.score(answers, [Told()], out=path)
    with pytest.raises(DialevalError, match=r"measured 'told-scaled' differently \(calibration\)"):
        read_all_scores(paths)
