from __future__ import annotations

import csv

import pytest
from metrics.texts import score

from dialeval.metrics.length import Length


def test_words_are_what_stands_between_whitespace():
    assert score(Length(), "Sure , what's\tthe \n matter ?").value == 6


def test_characters_count_spaces_too():
    assert score(Length(unit="characters"), "a b é").value == 5


def test_an_empty_response_has_length_zero():
    assert score(Length(), "").value == 0
    assert score(Length(), "  ").value == 0


@pytest.mark.parametrize(
    ("file", "first_rating", "pearson", "spearman"),
    [
        ("context_data_release.csv", 3, 0.448, 0.494),
        ("fluency_data_release.csv", 2, 0.628, 0.648),
    ],
)
def test_minus_length_agrees_with_people_as_finding_2_says(
    datasets, file, first_rating, pearson, spearman
):
    stats = pytest.importorskip("scipy.stats")
    with (datasets / "rated" / "holistic" / file).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    human = [sum(map(float, row[first_rating:])) / 10 for row in rows]
    ours = [-(score(Length(), row[first_rating - 1]).value or 0) for row in rows]

    assert len(rows) == 200
    assert round(stats.pearsonr(ours, human).statistic, 3) == pearson
    assert round(stats.spearmanr(ours, human).statistic, 3) == spearman
