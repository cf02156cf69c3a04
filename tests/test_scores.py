import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dialeval.errors import UsageError
from dialeval.scores import Calibration, Score, Signature

numbers = st.floats(-1e6, 1e6)


def test_a_score_is_a_finite_number_or_has_a_reason():
    assert Score.missing("no references").note == "no references"
    with pytest.raises(ValueError, match="needs a note"):
        Score(None)
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(ValueError, match="finite"):
            Score(bad)


@given(
    name=st.text(min_size=1),
    version=st.integers(0, 999),
    fields=st.lists(st.tuples(st.text(min_size=1), st.text())),
)
def test_a_signature_reads_back_as_it_was_written(name, version, fields):
    signature = Signature(name, version, tuple(fields))
    assert Signature.parse(str(signature)) == signature
    assert str(signature).isprintable()


def test_the_signature_of_the_design_document_parses():
    text = "full|v1|mode:paper|lm:smollm2-135m@b179c952|followups:5|trunc:left/1024|dialeval:0.1.0"
    signature = Signature.parse(text)
    assert (signature.name, signature.version) == ("full", 1)
    assert dict(signature.fields)["trunc"] == "left/1024"
    assert str(signature) == text
    assert signature.short() == text.removesuffix("|dialeval:0.1.0")


@pytest.mark.parametrize("text", ["", "full", "full|1", "full|vx", "full|v1|mode"])
def test_what_is_not_a_signature_is_refused(text):
    with pytest.raises(UsageError, match="not a signature"):
        Signature.parse(text)


def test_floor_calibration_is_equation_2_of_holistic_eval(golden):
    fixture = golden["holistic_norm"]
    calibration = Calibration.fit("floor", fixture["raw"])
    assert calibration.low == pytest.approx(fixture["cutoff_np_quantile_0.05_linear"])
    assert [calibration.apply(x) for x in fixture["raw"]] == pytest.approx(fixture["normalised"])


def test_quartile_calibration_is_that_of_usl_h(golden):
    fixture = golden["mlm"]["minmax_by_quartiles"]
    calibration = Calibration.fit("quartile", fixture["values"])
    assert (calibration.low, calibration.high) == (fixture["q25"], fixture["q75"])
    found = [calibration.apply(x) for x in fixture["values"]]
    assert found == pytest.approx(fixture["normalised"])


def test_minmax_calibration_is_that_of_ruber(golden):
    fixture = golden["ruber_blend"]
    calibration = Calibration.fit("minmax", fixture["referenced"])
    found = [calibration.apply(x) for x in fixture["referenced"]]
    assert found == pytest.approx(fixture["minmax_ref"])


@given(
    st.sampled_from(["floor", "quartile", "percentile", "minmax"]), st.lists(numbers, min_size=1)
)
@example("floor", [0.0, 1.0, 5.82472647379445e-309])
def test_a_calibration_never_reverses_an_order(kind, values):
    calibration = Calibration.fit(kind, values)
    found = [calibration.apply(x) for x in sorted(values)]
    assert all(a <= b + 1e-12 for a, b in pairwise(found))
    assert np.isfinite(found).all()


@given(
    st.sampled_from(["floor", "quartile", "percentile", "minmax"]), st.lists(numbers, min_size=1)
)
def test_a_calibration_survives_the_manifest(kind, values):
    calibration = Calibration.fit(kind, values)
    assert Calibration.from_record(calibration.to_record()) == calibration


def test_where_all_values_are_equal_every_score_is_zero():
    assert Calibration.fit("minmax", [3.0, 3.0]).apply(3.0) == 0.0
    assert Calibration.fit("floor", [0.0]).apply(1.0) == 0.0


@pytest.mark.parametrize("part", [float("nan"), float("inf")])
def test_a_part_is_finite_as_a_score_is(part):
    with pytest.raises(ValueError, match="leave out a part that is not a number"):
        Score(0.5, {"p": part})
