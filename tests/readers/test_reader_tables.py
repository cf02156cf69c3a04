"""CSV, TSV and Parquet."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.errors import InputError
from dialeval.readers import load
from dialeval.sample import Rating, Sample, Turn

from .conftest import Read


@pytest.mark.parametrize(("delimiter", "format"), [(",", "csv"), (";", "csv"), ("\t", "tsv")])
def test_tables_are_recognised_by_their_header(read: Read, delimiter: str, format: str) -> None:
    text = f"id{delimiter}response{delimiter}system\n1{delimiter}Hello{delimiter}v2\n"
    reading = read(text, name="data.txt")
    assert reading.format == format
    assert (reading.samples[0].id, reading.samples[0].system) == ("1", "v2")


def test_turns_are_separated_by_bars_or_line_breaks(read: Read) -> None:
    reading = read('context,response\na|||b,c\n"a\nb",c\n', name="t.csv")
    assert [s.context for s in reading.samples] == [(Turn("a"), Turn("b"))] * 2


def test_references_may_be_in_one_cell_or_in_several(read: Read) -> None:
    text = "response,references,reference_1,reference_2\na,x|||y,z,\n"
    assert read(text, name="t.csv").samples[0].references == ("x", "y", "z")


def test_rating_columns_name_quality_and_rater(read: Read) -> None:
    header = "response,rating_fun,rating_language_usage,rating_overall_1,rating_overall_r2"
    text = f"{header},rating_sense__ann\na,1,2,3,,5\n"
    ratings = read(text, name="t.csv").samples[0].ratings
    assert ratings == {
        "fun": Rating((1.0,)),
        "language_usage": Rating((2.0,)),
        "overall": Rating((3.0, None), None, ("1", "r2")),
        "sense": Rating((5.0,), None, ("ann",)),
    }


def test_numbers_are_ratings_only_where_a_name_or_the_user_says_so(read: Read) -> None:
    text = "response,score,rating_fun\na,4,1\n"
    guessed = read(text, name="t.csv")
    assert list(guessed.samples[0].ratings) == ["fun"]
    assert guessed.problems[0].startswith(":1: header: not used: score.")
    assert list(read(text, name="t.csv", ratings=["score"]).samples[0].ratings) == ["score"]


def test_line_numbers_are_right_after_cells_with_line_breaks(read: Read) -> None:
    reading = read('response,id\n"a\nb\nc",1\n"x\ny",2,3\nz,4\n', name="t.csv")
    assert [s.id for s in reading.samples] == ["1", "4"]
    assert reading.problems == [":5: 3 cells, but the header has 2 columns"]


def test_a_quote_that_is_never_closed_is_an_error(read: Read) -> None:
    reading = read('response,id\na,1\n"b,2\n' + "c,3\n" * 200_000, name="t.csv")
    assert reading.problems[0].startswith(":3: a cell is longer than 131,072 characters")
    reading = read('response,id\na,1\n"b,2\n', name="t.csv")
    assert reading.problems == [
        ":3: unexpected end of data: is a quote not closed, or not doubled inside a cell?"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("response,id\n", "there is a header but no row below it"),
        ("hello there,1\nhow are you,2\n", "there is no column 'response'."),
        ("respnse,id\na,1\n", "Did you mean 'respnse'?"),
        ("response,response\na,b\n", "the column 'response' occurs twice"),
    ],
)
def test_a_table_without_what_we_need_gets_one_helpful_error(
    read: Read, text: str, problem: str
) -> None:
    problems = read(text, name="t.csv").problems
    assert len(problems) == 1
    assert problem in problems[0]


def test_byte_order_mark_crlf_and_nul_do_no_harm(read: Read) -> None:
    reading = read(b"\xef\xbb\xbfresponse,id\r\na\0b,1\r\n", name="t.csv")
    assert reading.samples[0].response == "a\ufffdb"
    assert reading.problems == [":2: holds NUL: replaced by U+FFFD"]


def test_flat_parquet_is_read_by_its_column_names(tmp_path: Path) -> None:
    path = tmp_path / "flat.parquet"
    pq.write_table(
        pa.table(
            {
                "context": ["a\nb", None],
                "response": ["c", "d"],
                "reference_1": ["r", None],
                "rating_fun": [3, None],
                "when": pa.array([1, 2], pa.timestamp("us")),
            }
        ),
        path,
    )
    first, second = load(path)
    assert first.id == "flat-000001"
    assert first.context == (Turn("a"), Turn("b"))
    assert first.references == ("r",)
    assert first.ratings == {"fun": Rating((3.0,))}
    assert (second.context, second.ratings) == ((), {})


def test_parquet_without_a_response_column_says_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "flat.parquet"
    pq.write_table(pa.table({"bot_says": ["a"]}), path)
    with pytest.raises(InputError, match=r"no column 'response'.* The file has: bot_says"):
        list(load(path))


def test_what_a_spreadsheet_can_hold_survives_the_way_through_it(tmp_path: Path) -> None:
    sample = Sample(
        id="1",
        context=(Turn('He said: "Hi, you"'), Turn("é;😀")),
        response='a "quoted", two-line\nanswer',
        references=("r1", "r2"),
        system="v2",
        ratings={"fun": Rating((1.0, None, 2.5), None, ("1", "2", "3"))},
    )
    path = tmp_path / "sheet.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(
            ["id", "context", "response", "references", "system"]
            + [f"rating_fun_{rater}" for rater in (1, 2, 3)]
        )
        context = "|||".join(turn.text for turn in sample.context)
        table.writerow(["1", context, sample.response, "r1|||r2", "v2", 1, "", 2.5])
    assert list(load(path)) == [sample]


def test_raters_of_one_quality_are_all_named_or_none(read: Read) -> None:
    reading = read("response,rating_fun,rating_fun_1\na,1,2\n", name="t.csv")
    assert "some raters of 'fun' are named" in reading.problems[0]
