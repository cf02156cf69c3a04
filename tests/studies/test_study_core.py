"""What a study is, on made-up ones: when a number is met, what fails, what is missing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.errors import UsageError
from dialeval.studies.result import (
    failure_lines,
    lay_side_by_side,
    result_cells,
    result_markdown,
    run_study,
    verdict_line,
)
from dialeval.studies.study import (
    STUDIES,
    Data,
    Findings,
    Measured,
    Published,
    Setting,
    Study,
    Table,
    find_data,
    find_missing,
    find_study,
    list_studies,
)


def study(measured, published=(), **fields):
    return Study(
        name="made-up",
        paper="Nobody: Nothing. 2020",
        cited="Nobody, 2020",
        repeats="nothing",
        measure=lambda setting: Findings(measured),
        published=tuple(published),
        **fields,
    )


@pytest.mark.parametrize(
    ("printed", "ours", "met"),
    [
        ("0.61", 0.6051, True),
        ("0.61", 0.605, True),
        ("0.61", 0.6149, True),
        ("0.61", 0.6151, False),
        ("0.61", 0.6049, False),
        (".70", 0.6965, True),
        ("0.255528", 0.25552771, True),
        ("0.255528", 0.2555287, False),
        ("31.04", 31.0449, True),
        ("31", 31.4, True),
        ("-0.09", -0.0851, True),
        ("-0.09", 0.0851, False),
    ],
)
def test_a_number_is_met_to_the_printed_digits(printed, ours, met):
    assert Published("x", printed, "Table 1").is_met_by(ours) is met


def test_a_tolerance_replaces_the_printed_digits():
    number = Published("x", "0.51", "Table 1", tolerance=0.02)
    assert number.is_met_by(0.53)
    assert not number.is_met_by(0.5301)


@given(st.floats(-1000, 1000), st.integers(0, 6))
def test_what_is_printed_of_a_number_is_met_by_it(value, decimals):
    assert Published("x", f"{value:.{decimals}f}", "").is_met_by(value)


def test_a_number_that_must_match_and_does_not_is_a_failure():
    published = [Published("a", "0.50", "Table 1"), Published("b", "0.50", "Table 1")]
    result = run_study(study([Measured("a", 0.5), Measured("b", 0.51)], published))
    assert [row.what for row in result.failures] == ["b"]
    assert result.rows[1].difference == pytest.approx(0.01)
    assert verdict_line(result).startswith("1 of 2 ")
    assert failure_lines(result)[1] == "b: published 0.50, ours 0.5100"


def test_an_undefined_number_is_null_with_a_reason_and_fails_where_it_must_match():
    published = [Published("a", "0.50", "Table 1")]
    result = run_study(study([Measured("a", None, reason="constant")], published))
    (row,) = json.loads(json.dumps(result.to_record()))["rows"]
    assert (row["ours"], row["difference"], row["matches"]) == (None, None, False)
    assert row["reason"] == "constant"
    assert "- (constant)" in result_cells(result.rows)[1][0]


def test_a_published_number_that_was_not_measured_fails():
    result = run_study(study([], [Published("a", "0.50", "Table 1")]))
    assert result.failures[0].reason == "not measured"


def test_every_row_says_whether_it_ran_or_is_quoted_and_whether_it_must_match():
    published = [
        Published("ran", "0.50", "Table 1"),
        Published("undefined", "0.50", "Table 1", must_match=False),
        Published("left out", "0.50", "Table 1", must_match=False),
        Published("needs more", "0.50", "Table 1", must_match=False),
    ]
    measured = [
        Measured("ran", 0.5),
        Measured("undefined", None, reason="constant"),
        Measured("needs more", None, reason="needs raters", ran=False),
        Measured("ours alone", 0.5),
    ]
    result = run_study(study(measured, published))
    states = [row["state"] for row in result.to_record()["rows"]]
    assert states == ["ran", "ran", "quoted", "quoted", "ran"]
    header, rows = result_cells(result.rows)
    ours, must = header.index("ours"), header.index("must match")
    assert [row[ours] for row in rows] == [
        "0.5000",
        "- (constant)",
        "- (quoted: not measured)",
        "- (quoted: needs raters)",
        "0.5000",
    ]
    assert [row[must] for row in rows] == ["same", "no", "no", "no", ""]


def test_other_models_and_numbers_that_cannot_be_had_fail_nothing():
    published = [
        Published("a", "0.50", "Table 1"),
        Published("b", "0.50", "Table 1", must_match=False),
    ]
    measured = [
        Measured("a", 0.1, by="another", comparable=False),
        Measured("a", 0.5, by="theirs"),
        Measured("b", None, reason="constant"),
        Measured("c", 0.3),
    ]
    result = run_study(study(measured, published))
    assert result.failures == ()
    assert [(row.what, row.must_match) for row in result.rows] == [
        ("a", False), ("a", True), ("b", False), ("c", False),
    ]  # fmt: skip
    assert result.to_record()["rows"][3]["published"] is None


def test_rows_follow_the_published_order():
    rows = lay_side_by_side(
        [Published("b", "1", ""), Published("a", "1", "")],
        [Measured("z", 0.0), Measured("a", 1.0), Measured("b", 1.0)],
    )
    assert [row.what for row in rows] == ["b", "a", "z"]


def test_columns_that_nothing_is_in_are_left_out():
    rows = lay_side_by_side([Published("a", "0.5", "Table 1")], [Measured("a", 0.5)])
    header, ((*cells,),) = result_cells(rows)
    assert header == ["what", "published", "ours", "difference", "must match", "source"]
    assert cells == ["a", "0.5", "0.500", "+0.000", "same", "Table 1"]


def test_markdown_cannot_be_broken_by_what_was_measured():
    made = study([Measured("a|b<script>", 0.5)], differs=("a * b",))
    text = result_markdown(run_study(made))
    assert "| a\\|b\\<script\\> |" in text
    assert "- a \\* b" in text


def test_tables_and_notes_are_part_of_the_result():
    table = Table("More", ("name", "value"), (("x", 0.12345), ("y", None)), decimals=2)
    made = study([])
    result = run_study(
        Study(**{**vars(made), "measure": lambda _: Findings([], ["a note"], [table])})
    )
    text = result_markdown(result)
    assert "| x | 0.12 |\n| y | - |" in text
    assert "- a note" in text
    assert result.to_record()["tables"][0]["rows"][1] == ("y", None)


def test_data_that_is_missing_is_named_with_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="'fed' is not here: dialeval data get fed"):
        run_study(study([], needs=(Data("fed", ("fed_data.json",)),)))
    assert find_data([Data("fed")]) == {}


def test_a_file_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(tmp_path))
    folder = tmp_path / "rated" / "holistic"
    folder.mkdir(parents=True)
    (folder / "context_data_release.csv").write_text("")
    here = Data("holistic", ("context_data_release.csv",))
    (lack,) = find_missing([Data("holistic", (*here.files, "fluency_data_release.csv"))], [])
    assert "has no fluency_data_release.csv" in lack.what
    assert find_missing([here], []) == []
    assert find_data([here]) == {"holistic": folder}


def test_models_that_are_missing_are_named_with_the_command(tmp_path, monkeypatch):
    pytest.importorskip("torch", reason="needs the extra 'models'")
    monkeypatch.setenv("DIALEVAL_MODELS", str(tmp_path))
    (lack,) = find_missing([], ["smollm2-135m"])
    assert lack.command == "dialeval models get smollm2-135m"


def test_models_and_metrics_are_refused_where_they_would_change_nothing():
    with pytest.raises(UsageError, match="leave out --model"):
        run_study(study([]), models=["gpt2"])
    with pytest.raises(UsageError, match="leave out --metric"):
        run_study(study([]), metrics=["length"])


def test_given_models_and_metrics_reach_the_measurement():
    seen = []
    made = study([], metrics=("length",), models=("smollm2-135m",))
    made = Study(**{**vars(made), "measure": lambda s: seen.append(s) or Findings([])})
    run_study(made, models=["a", "b"], metrics=["bleu"], source=object())
    assert (seen[0].models, seen[0].metrics) == (("a", "b"), ("bleu",))


def test_progress_of_a_part_counts_what_was_done_before():
    told = []
    setting = Setting(progress=lambda done, total: told.append((done, total)))
    setting.after(10, 40).after(5, 1).progress(2, 3)
    assert told == [(17, 40)]


def test_an_unknown_study_is_refused_with_a_proposal():
    with pytest.raises(UsageError, match="Did you mean 'full-fed'"):
        find_study("ful-fed")


def test_every_study_says_what_it_is():
    for name, made in zip(STUDIES, list_studies(), strict=True):
        assert made.name == name
        assert made.paper
        assert made.repeats
        whats = [number.what for number in made.published]
        assert len(set(whats)) == len(whats)
        assert all(number.source for number in made.published)


def test_study_judge_takes_no_more_models_than_it_has_readers():
    with pytest.raises(UsageError, match="--model: at most 5"):
        find_study("judge").measure(Setting(models=("m",) * 6))
