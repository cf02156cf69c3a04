"""The area under the curve of the consistency study, against counting by hand."""

import pytest

from dialeval.studies.holistic_released import area


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    """Inconsistent: .2, .6; consistent: .6, .9. Right, right, tied, right: 3.5 of 4."""
    scores = [0.2, 0.6, 0.6, 0.9, None]
    ratings = [1.0, 2.9, 3.0, 5.0, 4.0]
    assert area(scores, ratings) == pytest.approx(3.5 / 4)
    assert area([-s for s in scores[:4]], ratings[:4]) == pytest.approx(0.5 / 4)


def test_without_both_kinds_of_answers_there_is_none():
    assert area([0.1, 0.2], [4.0, 5.0]) is None
