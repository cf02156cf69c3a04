"""`dialeval study`: the list, a run, and the exits."""

import json
import os

import pytest

from dialeval.studies import study as catalogue
from dialeval.studies.study import Findings, Measured, Published, Study


@pytest.fixture
def made_up(monkeypatch):
    """A study that gives what it is told to give."""

    def make(value, reason=""):
        study = Study(
            name="made-up",
            paper="Nobody: Nothing. 2020",
            cited="Nobody, 2020",
            repeats="nothing at all",
            measure=lambda setting: Findings([Measured("x", value, reason=reason)]),
            published=(Published("x", "0.50", "Table 1"),),
        )
        monkeypatch.setattr(catalogue, "find_study", lambda name: study)

    return make


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path))


def test_the_list_says_what_is_missing_and_how_to_get_it(dialeval, no_data):
    done = dialeval("study")
    assert done.code == 0
    assert all(name in done.out for name in catalogue.STUDIES)
    assert "holistic-raters: the data set 'holistic' is not here: dialeval data get" in done.out
    found = {row["name"]: row for row in json.loads(dialeval("study", "--json").out)}
    assert found["pone-bleu"]["here"] is True
    assert found["full-fed"]["here"] is False
    commands = [lack["command"] for lack in found["full-fed"]["missing"]]
    assert commands[0].startswith("dialeval data get fed")
    assert dialeval("study", "--markdown").out.startswith("| study |")


def test_a_study_shows_published_beside_ours(dialeval, no_data):
    done = dialeval("study", "pone-bleu")
    assert done.code == 0
    assert "0.255528" in done.out
    assert "0.25552771" in done.out
    assert "4 of 4 numbers that must match do" in done.out
    assert "Known to differ" in done.out
    assert "Known to differ" not in dialeval("study", "pone-bleu", "-q").out


def test_a_number_that_must_match_and_does_not_exits_1_and_is_named(dialeval, made_up):
    made_up(0.6)
    done = dialeval("study", "made-up")
    assert done.code == 1
    assert "DIFFERS" in done.out
    assert "x: published 0.50, ours 0.6000" in done.err
    done = dialeval("study", "made-up", "--json")
    assert (done.code, json.loads(done.out)["ok"]) == (1, False)


def test_an_undefined_number_is_null(dialeval, made_up):
    made_up(None, "constant")
    done = dialeval("study", "made-up", "--json")
    (row,) = json.loads(done.out)["rows"]
    assert (done.code, row["ours"], row["reason"]) == (1, None, "constant")


def test_a_match_exits_0(dialeval, made_up):
    made_up(0.4951)
    assert dialeval("study", "made-up").code == 0


def test_the_result_can_be_saved(dialeval, made_up, tmp_path):
    made_up(0.6)
    assert dialeval("study", "made-up", "-o", str(tmp_path / "a.md")).code == 1
    assert "| x | 0.50 | 0.6000 | +0.1000 | DIFFERS | Table 1 |" in (tmp_path / "a.md").read_text()
    assert dialeval("study", "made-up", "--markdown").out == (tmp_path / "a.md").read_text()
    dialeval("study", "made-up", "-o", str(tmp_path / "a.json"))
    saved = json.loads((tmp_path / "a.json").read_text())
    assert saved == json.loads(dialeval("study", "made-up", "--json").out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ful-fed"], "Did you mean 'full-fed'"),
        (["full-fed"], "the data set 'fed' is not here: dialeval data get fed"),
        (["pone-bleu", "--model", "gpt2"], "leave out --model"),
        (["pone-bleu", "-m", "length"], "leave out --metric"),
        (["dstc10-table", "--data", "no/such/place"], "no such directory"),
        (["pone-bleu", "--json", "--markdown"], "not both"),
        (["--model", "gpt2"], "name a study"),
        (["--plot", "a.svg"], "name a study"),
        (["pone-bleu", "--plot", "a.svg"], "leave out --plot"),
        (["pone-ablation", "--plot", "a.jpg"], "ends in .svg or .png"),
        (["pone-bleu", "--positives", "ctg"], "leave out --positives"),
    ],
)
def test_bad_usage_exits_2_and_says_why(dialeval, no_data, arguments, message):
    done = dialeval("study", *arguments)
    assert done.code == 2
    assert message in done.err


def test_the_option_data_points_at_the_data_sets(dialeval, no_data, datasets):
    if not (datasets / "rated" / "holistic").exists():
        pytest.skip("no data of HolisticEval")
    before = os.environ["DIALEVAL_DATA"]
    done = dialeval("study", "holistic-raters", "--data", str(datasets))
    assert (done.code, "20 of 20 numbers" in done.out) == (0, True)
    assert os.environ["DIALEVAL_DATA"] == before


def test_metrics_can_be_chosen_where_a_study_takes_them(dialeval, datasets):
    if not (datasets / "rated" / "dstc10").exists():
        pytest.skip("no development files of DSTC10")
    arguments = ["study", "dstc10-table", "-m", "length", "--json", "--data", str(datasets)]
    record = json.loads(dialeval(*arguments).out)
    tables = {table["title"]: table for table in record["tables"]}
    table = tables["Development data: Spearman x 100"]
    assert table["header"] == ["data set", "quality", "length"]
    assert ["fed-dial", "Overall", None] in table["rows"]
    done = dialeval("study", "dstc10-table", "-m", "lenght", "--data", str(datasets))
    assert (done.code, "Did you mean 'length'" in done.err) == (2, True)
