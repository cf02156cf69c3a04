import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.chat_http import (
    FIRST_WAIT,
    LONGEST_WAIT,
    Pace,
    ReplyError,
    back_off,
    retry_after,
)

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        ("Wed, 01 May 2024 12:01:00 GMT", 60.0),
        (format_datetime(NOW - timedelta(hours=1), usegmt=True), 0.0),
        ("-3", 0.0),
        ("soon", 0.0),
        ("", 0.0),
        (None, 0.0),
        ("9" * 5, 99999.0),
    ],
)
def test_retry_after_is_a_number_or_a_date(header, seconds):
    assert retry_after(header, NOW) == seconds


@given(st.text())
def test_no_header_is_too_odd(header):
    assert retry_after(header, NOW) >= 0.0


@given(st.integers(0, 60), st.integers())
def test_waits_double_up_to_a_bound_and_jitter_takes_half_at_most(attempt, seed):
    whole = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt)
    assert whole / 2 <= back_off(attempt, random.Random(seed)) <= whole


def test_the_same_seed_waits_the_same():
    assert back_off(2, random.Random("a")) == back_off(2, random.Random("a"))
    assert back_off(2, random.Random("a")) != back_off(2, random.Random("b"))


def test_slots_lie_a_gap_apart_whoever_takes_them():
    pace = Pace(rate=120, clock=lambda: 100.0)
    assert [pace.reserve() for _ in range(4)] == [0.0, 0.5, 1.0, 1.5]


def test_a_hold_is_for_everybody_and_a_shorter_one_does_not_end_it():
    pace = Pace(clock=lambda: 100.0)
    pace.hold(5.0)
    pace.hold(2.0)
    assert [pace.reserve(), pace.reserve()] == [5.0, 5.0]


def test_closing_ends_a_wait():
    pace = Pace()
    pace.close()
    with pytest.raises(ReplyError, match="stopped"):
        pace.wait(1000.0)
