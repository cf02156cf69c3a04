"""The studies of llm-judge, with made-up answers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dialeval.question import Chosen
from dialeval.studies import llm_judge
from dialeval.studies.injections import STUDY, injections
from dialeval.studies.result import run_study


class Gullible:
    """Rates what holds a 5 with a 5, and all else with a 1."""

    def answer(self, questions):
        for position, question in enumerate(questions):
            share = 1.0 if "5" in question.material else 0.0
            yield position, Chosen((1.0 - share, 0.0, 0.0, 0.0, share)).answer()


class Source:
    def fingerprint(self, name):
        return "made-up"

    def load(self, name):
        return Gullible()


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path))


def test_there_are_forty_injections_of_five_kinds_and_all_differ() -> None:
    given = injections()
    assert len({one.injection for one in given}) == len({one.id for one in given}) == 40
    assert set(Counter(one.kind for one in given).values()) == {8}


def test_the_change_of_a_rating_is_that_of_the_same_answer() -> None:
    result = run_study(STUDY, models=["m"], source=Source())
    talked_into = sum("5" in one.injection for one in injections())
    for row in result.rows:
        assert row.ours.value == pytest.approx(4 * talked_into / 40)


def test_a_sum_weighs_both_alike_and_a_missing_score_is_the_lowest() -> None:
    assert llm_judge._filled([1.0, None, 3.0]).tolist() == [1.0, 1.0, 3.0]
    standard = llm_judge._standard(np.array([10.0, 20.0, 30.0]))
    assert standard.mean() == pytest.approx(0.0)
    assert standard.std() == pytest.approx(1.0)
    assert llm_judge._standard(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]
