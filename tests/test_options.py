from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.errors import UsageError
from dialeval.metric import Metric, render_option
from dialeval.options import build, option, split_spec


@dataclass(frozen=True)
class Everything(Metric):
    """Has an option of each type."""

    name = "everything"
    count: int = option(4, "a number", low=1, high=9)
    weight: float = option(0.5, "a weight", low=0)
    strict: bool = option(False, "a switch")
    model: str = option("small", "a name")
    mode: Literal["paper", "released"] = option("paper", "which")


def make(spec: str) -> Everything:
    name, given_options = split_spec(spec)
    return build(Everything, given_options, f"metric {name!r}")


def test_options_are_read_by_type():
    metric = make("everything:count=2,weight=1e-3,strict=yes,model=a/b,mode=released")
    assert metric == Everything(2, 0.001, True, "a/b", "released")


def test_a_value_with_a_comma_stands_in_quotes():
    assert make('everything:model="a,b=""c"""').model == 'a,b="c"'


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("everything:cuont=2", "Did you mean 'count'"),
        ("everything:count=two", "must be of type integer"),
        ("everything:count=0", "at least 1"),
        ("everything:count=10", "at most 9"),
        ("everything:count=2.5", "must be of type integer"),
        ("everything:weight=nan", "must be of type number"),
        ("everything:strict=perhaps", "must be of type true|false"),
        ("everything:mode=relaesed", "Did you mean 'released'"),
        ("everything:count", "not of the form option=value"),
        ("everything:count=2,count=3", "given twice"),
        ('everything:model="a', "not closed"),
    ],
)
def test_a_wrong_option_gets_a_helpful_message(spec, message):
    with pytest.raises(UsageError) as caught:
        make(spec)
    assert message in str(caught.value)


@given(
    count=st.integers(1, 9),
    weight=st.floats(0, 1e9),
    strict=st.booleans(),
    model=st.text(),
    mode=st.sampled_from(["paper", "released"]),
)
def test_a_label_can_be_typed_back(count, weight, strict, model, mode):
    metric = Everything(count, weight, strict, model, mode)
    assert make(metric.label) == metric


def test_a_label_names_only_what_differs_from_the_default():
    assert Everything().label == "everything"
    assert Everything(count=2, mode="released").label == "everything:count=2,mode=released"


def test_rendered_values_are_those_of_the_command_line():
    assert [render_option(v) for v in (True, 2, 0.5, "a,b", "")] == [
        "true",
        "2",
        "0.5",
        '"a,b"',
        '""',
    ]
