"""The area under the curve of the consistency study, against counting by hand."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

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


def test_told_right_are_contradictions_above_one_half_and_other_pairs_below():
    """Two contradictions at .9 and .4, two other pairs at .6 and .1: right, wrong, wrong, right."""
    pytest.importorskip("torch", reason="needs the extra 'models'")
    path = Path(__file__).parents[2] / "scripts" / "measure_contradictions.py"
    spec = importlib.util.spec_from_file_location("measure_contradictions", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    contradiction, neutral, entailment = range(3)  # the order of roberta-large-mnli
    labels = (contradiction, contradiction, neutral, entailment)
    pairs = [SimpleNamespace(premise=str(n), hypothesis="", label=i) for n, i in enumerate(labels)]
    read = dict(zip("0123", (0.9, 0.4, 0.6, 0.1), strict=True))
    assert script.share_told(lambda asked: [read[one] for one, _ in asked], pairs) == 0.5
    assert script.share_told(lambda asked: [1.0 for _ in asked], pairs[:3]) == pytest.approx(2 / 3)
