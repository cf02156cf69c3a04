"""Cells that a spreadsheet must not run, and names that must survive the way there and back."""

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.agreement.sources import read_scores
from dialeval.readers import load
from dialeval.text import FORMULA_STARTS, neutralise, restored

names = st.text(st.sampled_from("'=+-@a1 \t"), min_size=1)


@given(names)
def test_a_name_comes_back_as_it_was_and_is_never_run(name):
    assert not neutralise(name).startswith(FORMULA_STARTS)
    assert restored(neutralise(name)) == name


@pytest.mark.parametrize("name", ["-1", "=SUM(A1)", "+x", "@me", "'-1", "plain", "'quoted'"])
def test_a_table_that_was_made_safe_joins_by_the_names_that_were_meant(tmp_path, name):
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "mine"], [neutralise(name), 1]])
    assert list(read_scores(path)["mine"]) == [name]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["id", "system", "item", "response"], [neutralise(name)] * 3 + ["hello"]]
        )
    (sample,) = load(path)
    assert (sample.id, sample.system, sample.item) == (name, name, name)
