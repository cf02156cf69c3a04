"""Compositions as files: what is written is read, and what is wrong is said with its field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.errors import DialevalError, InputError, UsageError
from dialeval.metrics.composition import (
    MEAN_OF_ALL,
    VALUE,
    Composition,
    Term,
    find_composition,
    read_composition,
    save_composition,
)
from dialeval.scores import Calibration

LENGTH = Term(
    "length", "length|v1|unit:words", "neither", {VALUE: Calibration("quartile", 2, 10, 9)}
)
BLEU = Term("bleu:n=1", "bleu|v1|n:1")
COMPOSITION = Composition(
    (LENGTH, BLEU),
    {"overall": (0.25, 0.75), "relevance": (0.0, 1.0)},
    {"Overall": "overall", "Relevant": "relevance"},
    {"seed": 0},
)

FITTED = {"name": "a", "counts as": "a", "samples": 9, "fitted": []}


def written(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "crs.json"
    path.write_text(json.dumps({"format": 1, **COMPOSITION.to_record(), **changes}))
    return path


def test_what_is_written_is_read(tmp_path):
    save_composition(COMPOSITION, tmp_path / "crs.json")
    assert read_composition(tmp_path / "crs.json") == COMPOSITION
    assert json.loads((tmp_path / "crs.json").read_text())["format"] == 1


def test_the_digest_is_of_what_moves_a_score(tmp_path):
    other = Composition(COMPOSITION.terms, COMPOSITION.weights, COMPOSITION.names, {"seed": 1})
    assert other.digest() == COMPOSITION.digest()
    moved = Composition(COMPOSITION.terms, {"overall": (0.5, 0.5)}, COMPOSITION.names)
    assert moved.digest() != COMPOSITION.digest()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format: is 2; this dialeval reads 1"),
        ({"terms": []}, "terms: must be a list of at least one term"),
        ({"terms": [3, 4]}, r"terms\[0\]: must be an object, not 3"),
        ({"weights": {}}, "weights: must hold weights for at least one quality"),
        ({"weights": {"overall": [1.0]}}, "weights.overall: must be a list of 2 numbers"),
        ({"weights": {"overall": [1.0, 1.0]}}, "weights.overall: the weights sum to 2, not to 1"),
        ({"weights": {"overall": [2.0, -1.0]}}, "weights.overall: a weight is negative"),
        ({"weights": {"overall": ["1", 0]}}, r'weights.overall\[0\]: must be a number, not "1"'),
        ({"weights": {"overall": [float("nan"), 1]}}, "NaN is no number of JSON"),
        ({"weights": {"overall": [10**400, 1]}}, "must be a number, not 1000"),
        ({"weights": {"overall": [True, 0]}}, "must be a number, not true"),
        ({"names": {"Overall": 3}}, "names.Overall: is 3, not a text"),
        ({"provenance": []}, r"provenance: must be an object, not \[\]"),
        ({"provenance": {"sets": 3}}, "provenance.sets: must be a list, not 3"),
        ({"provenance": {"sets": [{}]}}, r"provenance.sets\[0\].fitted: must be a list, not null"),
        ({"provenance": {"sets": [FITTED]}}, "provenance.sample: must be a number, not null"),
        (
            {"provenance": {"sets": [FITTED | {"fitted": [{}]}]}},
            r"sets\[0\].fitted\[0\].correlations: must be a list of 2",
        ),
        ({"provenance": {"notes": [1]}}, r"provenance.notes\[0\]: must be a text"),
    ],
)
def test_a_wrong_field_is_named(tmp_path, changes, message):
    with pytest.raises(DialevalError, match=message) as caught:
        read_composition(written(tmp_path, **changes))
    assert str(tmp_path / "crs.json") in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "lenght"}, r"terms\[0\].metric: no metric 'lenght'. Did you mean 'length'"),
        ({"metric": 7}, r"terms\[0\].metric: must be a text"),
        ({"metric": "length:unit=words"}, "is written 'length'"),
        ({"metric": "mme-crs"}, "mme-crs is a composition itself"),
        ({"signature": "length"}, r"terms\[0\].signature: not a signature"),
        ({"direction": "up"}, r"terms\[0\].direction: is 'up'"),
        ({"scale": {"kind": "x", "low": 0, "high": 1, "n": 1}}, r"terms\[0\].scale.kind: is \"x\""),
        ({"scale": {"kind": "quartile", "low": 1, "high": 0, "n": 1}}, "low is 1, which is more"),
        ({"scale": {"kind": "quartile", "low": 0}}, r"terms\[0\].scale.high: must be a number"),
        ({"scale": {"parts": {"x": {"kind": "minmax", "low": 0, "high": 1, "n": 1}}}},
         "length has a scale for its value, and no other"),
        ({"metric": "bleu:n=1"}, "terms: 'bleu:n=1' occurs twice"),
    ],
)  # fmt: skip
def test_a_wrong_term_is_named(tmp_path, changes, message):
    first, second = COMPOSITION.to_record()["terms"]
    with pytest.raises(InputError, match=message):
        read_composition(written(tmp_path, terms=[first | changes, second]))


def test_everything_wrong_is_told_at_once(tmp_path):
    path = written(tmp_path, weights={"overall": [3, 4], "relevance": "x"}, names=1)
    with pytest.raises(InputError) as caught:
        read_composition(path)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_composition_is_refused(tmp_path, content):
    path = tmp_path / "crs.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"crs\.json"):
        read_composition(path)


leaves = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(["terms", "weights", "names", "provenance"]), anything)
def test_no_content_gets_further_than_an_error_with_a_text(tmp_path, field, value):
    path = written(tmp_path, **{field: value})
    message, found = str(path), COMPOSITION
    try:
        found = read_composition(path)
    except DialevalError as error:
        message = str(error)
    assert str(path) in message
    assert found.terms == COMPOSITION.terms


def test_a_quality_by_any_of_its_names():
    assert COMPOSITION.weights_for("relevance").quality == "relevance"
    assert COMPOSITION.weights_for("Relevant").quality == "relevance"
    assert COMPOSITION.weights_for("RELEVANCE").quality == "relevance"
    assert COMPOSITION.weights_for("appropriateness").quality == "overall"
    with pytest.raises(UsageError, match="no weights for the quality 'relevence'"):
        COMPOSITION.weights_for("relevence")


def test_overall_without_weights_is_the_mean_over_all_qualities():
    composition = Composition((LENGTH, BLEU), {"a": (1.0, 0.0), "b": (0.0, 1.0)})
    assert composition.weights_for("overall").quality == MEAN_OF_ALL
    assert composition.weights_for("overall").weights == (0.5, 0.5)


def test_weights_that_are_not_shipped_are_missing_with_advice():
    with pytest.raises(UsageError, match="Fit your own: dialeval compose fit"):
        find_composition("no-such-weights")


def test_a_changed_file_is_read_again(tmp_path):
    path = written(tmp_path)
    assert find_composition(str(path)).weights["overall"] == (0.25, 0.75)
    written(tmp_path, weights={"overall": [0.125, 0.875]})
    assert find_composition(str(path)).weights["overall"] == (0.125, 0.875)
