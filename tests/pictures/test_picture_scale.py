"""Ticks and ranges obey their laws for every pair of numbers."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dialeval.pictures.frame import (
    Scale,
    data_range,
    fitting_ticks,
    log_range,
    log_ticks,
    nice_ticks,
    short_number,
    tick_labels,
)

anything = st.floats(allow_nan=True, allow_infinity=True)
ranges = st.lists(anything, min_size=1, max_size=4).map(data_range)


@given(ranges)
def test_a_range_is_never_empty(limits):
    low, high = limits
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert low < high


@given(st.lists(st.floats(-1e200, 1e200), min_size=1))
def test_a_range_holds_its_values(values):
    low, high = data_range(values)
    assert low <= min(values)
    assert max(values) <= high


@given(ranges, st.integers(2, 12))
def test_ticks_are_round_even_ordered_and_within(limits, about):
    low, high = limits
    ticks = nice_ticks(low, high, about)
    assert about / 2.5 - 1 <= len(ticks) <= about + 1
    slack = (high - low) * 1e-6
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    steps = [b - a for a, b in pairwise(ticks)]
    assume(steps)
    assert max(steps) - min(steps) <= 1e-6 * max(steps)
    mantissa = float(f"{steps[0]:.3e}".split("e")[0])
    assert any(abs(mantissa - nice) < 0.01 for nice in (1, 2, 5, 10))


@given(ranges, st.integers(2, 12))
def test_different_ticks_have_different_labels_that_read_back(limits, about):
    ticks = nice_ticks(*limits, about)
    labels = tick_labels(ticks)
    assert len(set(labels)) == len(ticks)
    step = min((b - a for a, b in pairwise(ticks)), default=0.0)
    for tick, label in zip(ticks, labels, strict=True):
        read = float(label.replace("\N{MINUS SIGN}", "-").replace(",", ""))
        assert abs(read - tick) <= max(0.01 * step, 1e-6 * abs(tick))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1, 5, (1, 2, 3, 4, 5)),
        (0, 1, (0, 0.2, 0.4, 0.6, 0.8, 1)),
        (-1, 1, (-1, -0.5, 0, 0.5, 1)),
        (0, 100, (0, 20, 40, 60, 80, 100)),
        (3.1, 3.4, (3.1, 3.15, 3.2, 3.25, 3.3, 3.35, 3.4)),
    ],
)
def test_ticks_are_those_that_a_person_would_write(low, high, expected):
    assert nice_ticks(low, high) == expected


def test_labels_are_those_that_a_person_would_write():
    assert tick_labels((-0.5, 0.0, 0.5)) == ["−0.5", "0.0", "0.5"]
    assert tick_labels((0, 500, 1000)) == ["0", "500", "1,000"]
    assert tick_labels((0, 1e6, 2e6)) == ["0", "1e6", "2e6"]
    assert tick_labels((1e-7, 1.5e-7)) == ["1e−7", "1.5e−7"]
    assert tick_labels((0.25,)) == ["0.25"]
    assert tick_labels((0.0,)) == ["0"]
    assert tick_labels(()) == []
    assert short_number(-0.12345) == "−0.1235"
    assert short_number(12345) == "12,345"


@given(st.lists(st.floats(1e-250, 1e250), min_size=1, max_size=4), st.integers(1, 10))
def test_logarithmic_ticks_are_ordered_and_within(values, about):
    low, high = log_range(values)
    assert 0 < low < high
    assert low <= min(values) * (1 + 1e-9)
    ticks = log_ticks(low, high, about)
    assert list(ticks) == sorted(set(ticks))
    assert all(low * (1 - 1e-6) <= tick <= high * (1 + 1e-6) for tick in ticks)


def test_logarithmic_ticks_are_powers_of_ten_over_a_long_range():
    assert log_ticks(1, 1e6) == (1, 10, 100, 1000, 1e4, 1e5, 1e6)
    assert log_ticks(1, 100) == (1, 2, 5, 10, 20, 50, 100)


@given(ranges, st.floats(30, 800))
def test_labels_on_an_axis_do_not_touch(limits, room):
    scale = Scale(*limits, 0, room)
    ticks = fitting_ticks(scale, lambda text: 7.0 * len(text), gap=5, about=8)
    if len(ticks) > 2:
        for (a, left), (b, right) in pairwise(ticks):
            assert scale(b) - scale(a) >= 3.5 * (len(left) + len(right)) + 5


@given(ranges)
def test_a_scale_maps_its_ends_to_its_ends(limits):
    scale = Scale(*limits, 300, 20)
    assert scale(limits[0]) == 300
    assert scale(limits[1]) == pytest.approx(20)
