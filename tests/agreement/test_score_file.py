"""Scores from anywhere, and files that only look like them."""

import gzip

import pytest

from dialeval.agreement.score_file import read_scores
from dialeval.errors import DialevalError


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


def test_a_missing_file_and_a_folder_are_called_so(tmp_path):
    with pytest.raises(DialevalError, match="no such file"):
        read_scores(tmp_path / "nowhere.csv")
    with pytest.raises(DialevalError, match="is a folder"):
        read_scores(tmp_path)
