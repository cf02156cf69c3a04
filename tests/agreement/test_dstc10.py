"""DSTC10's protocol: two means that differ, ratings as the track counts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dialeval.agreement.coefficient import Coefficient
from dialeval.agreement.dstc10 import (
    DEVELOPMENT_SETS,
    ScoredSet,
    dstc10_table,
    flat_mean,
    protocol_rating,
    protocol_sample,
    protocol_samples,
    track_files,
    two_level_mean,
)
from dialeval.agreement.dstc10 import test_set as known_test_set
from dialeval.sample import Rating, Sample, Turn


def correlations(values):
    return {
        dataset: {quality: Coefficient(value, 9) for quality, value in qualities.items()}
        for dataset, qualities in values.items()
    }


def rated(name, ratings, response="word"):
    return Sample(
        id=name,
        context=(Turn("hi"),),
        response=response,
        ratings={quality: Rating(tuple(values)) for quality, values in ratings.items()},
    )


def test_the_two_means_are_those_of_the_track(golden):
    known = golden["dstc10_protocol"]
    rho = correlations(known["spearman"])
    assert two_level_mean(rho).value == pytest.approx(known["dev_two_level_mean"])
    assert flat_mean(rho).value == pytest.approx(known["test_flat_mean_over_qualities"])


def test_what_is_undefined_is_left_out_and_counted_and_never_zero():
    rho = correlations({"a": {"x": 0.5, "y": None}, "b": {"x": None}})
    assert (flat_mean(rho).value, flat_mean(rho).n, flat_mean(rho).n_missing) == (0.5, 1, 2)
    assert (two_level_mean(rho).value, two_level_mean(rho).n_missing) == (0.5, 1)
    assert flat_mean(correlations({"a": {"x": None}})).value is None


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=6), st.integers(1, 5))
def test_with_equally_many_qualities_everywhere_the_means_are_equal(values, sets):
    rho = correlations({f"d{i}": {f"q{j}": v for j, v in enumerate(values)} for i in range(sets)})
    assert two_level_mean(rho).value == pytest.approx(flat_mean(rho).value)


def test_there_are_fourteen_development_sets():
    assert len(set(DEVELOPMENT_SETS)) == 14


def test_ratings_are_means_except_where_the_first_annotator_counts():
    rating = Rating((1.0, 4.0, None))
    assert protocol_rating("dailydialog-zhao", rating) == 2.5
    assert protocol_rating("dailydialog-gupta", rating) == 1.0
    assert protocol_rating("dstc6", Rating((None,))) is None


def test_an_empty_response_is_judged_as_the_words_no_response():
    assert protocol_sample(rated("a", {}, "  ")).response == "no response"
    assert protocol_sample(rated("a", {}, "ok")).response == "ok"
    assert protocol_sample(rated("a", {}, None)).response is None


def test_items_of_a_test_set_without_a_response_are_not_counted():
    """The organisers' script for JSALT passes over them."""
    samples = [rated("a", {}, ""), rated("b", {}, "yes")]
    assert [one.id for one in protocol_samples("jsalt", samples)] == ["b"]
    assert [one.response for one in protocol_samples("dstc7", samples)] == ["no response", "yes"]


def test_test_files_are_known_by_the_names_of_the_challenge(tmp_path):
    names = ("jsalt_eval.json", "esl_eval.json", "ncm_eval.json", "fed-turn_eval.json")
    both = ("dstc10-persona_eval.json", "dstc10-persona_clean_eval.json")
    for name in (*names, *both, "dstc10-topical_clean_eval.json"):
        (tmp_path / name).write_text("[]")
    found = [path.name for path in track_files(tmp_path)]
    assert both[0] not in found
    assert len(found) == 6
    known = [known_test_set(name) for name in found]
    assert known == ["DSTC10-Persona", "DSTC10-Topical", "ESL", None, "JSALT", "NCM"]


def test_the_table_holds_spearman_of_every_quality_of_every_set():
    first = [rated(f"a{i}", {"x": [i, i + 1], "y": [(i * 3) % 7]}) for i in range(8)]
    second = [rated(f"b{i}", {"x": [-i]}) for i in range(5)]
    scores = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
    table = dstc10_table(
        [
            ScoredSet("one", first, {"m": scores, "none": [None] * 8}),
            ScoredSet("two", second, {"m": [1.0, 2.0, 3.0, 4.0, 5.0], "none": [None] * 5}),
        ]
    )
    x = stats.spearmanr(scores, range(8)).statistic
    y = stats.spearmanr(scores, [(i * 3) % 7 for i in range(8)]).statistic
    assert table.columns == [("one", "x"), ("one", "y"), ("two", "x")]
    assert table.metrics["m"]["one"]["x"].value == pytest.approx(x)
    assert flat_mean(table.metrics["m"]).value == pytest.approx((x + y - 1) / 3)
    assert two_level_mean(table.metrics["m"]).value == pytest.approx(((x + y) / 2 - 1) / 2)
    mine, none = table.to_records()
    assert mine["spearman"]["two"]["x"]["value"] == pytest.approx(-1)
    assert none["flat_mean"]["value"] is None
    assert none["flat_mean"]["reason"] == "fewer than 3 pairs"


def test_items_that_a_quality_was_not_asked_of_are_counted_as_missing():
    samples = [rated(f"s{i}", {"x": [i]} if i else {"other": [1]}) for i in range(5)]
    table = dstc10_table([ScoredSet("one", samples, {"m": [0.0, 1.0, 2.0, 3.0, 4.0]})])
    found = table.metrics["m"]["one"]["x"]
    assert (found.value, found.n, found.n_missing) == (pytest.approx(1), 4, 1)
