"""A language model is examined: drift, self-agreement, sensitivity to wording."""

from __future__ import annotations

import json
import math

import pytest
from systems.loopback import serving

from dialeval.doctor import judge
from dialeval.question import Chosen


class Shifting:
    """Rates with 3 plus a shift; `times` counts how often it was loaded."""

    def __init__(self, shift=0.0, per_call=0.0, per_wording=0.0):
        self.shift, self.per_call, self.per_wording, self.times = shift, per_call, per_wording, 0

    def __call__(self, time):
        self.times += 1
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            other = self.per_wording if question.wanted.startswith("How good") else 0.0
            rating = 2.0 + position / 10 + self.shift + self.per_call * self.times - other
            low = int(rating)
            shares = [0.0] * 5
            shares[low - 1], shares[low] = low + 1 - rating, rating - low
            yield position, Chosen(tuple(shares)).answer()


@pytest.fixture(autouse=True)
def _apart(tmp_path, monkeypatch):
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path))
    monkeypatch.setattr("dialeval.models.source.Models.fingerprint", lambda self, name: "f")


def findings(model, **options):
    return {one.what: one for one in judge.examine_judge("m", load_model=model, **options)}


def test_the_first_examination_writes_a_card_and_the_second_compares(tmp_path) -> None:
    assert findings(Shifting())["drift"].status == "absent"
    (card,) = (tmp_path / "judges").iterdir()
    written = json.loads(card.read_text())
    assert written["ratings"] == pytest.approx([2.0 + n / 10 for n in range(10)])
    assert findings(Shifting())["drift"].status == "ok"
    drifted = findings(Shifting(shift=0.3))["drift"]
    assert (drifted.status, "0.3000" in drifted.finding) == ("failed", True)
    assert json.loads(card.read_text()) == written


def test_another_rating_at_once_is_no_agreement_with_itself() -> None:
    assert findings(Shifting())["self-agreement"].status == "ok"
    loose = findings(Shifting(per_call=0.2))["self-agreement"]
    assert loose.status == "failed"
    assert "0.2000" in loose.finding


def test_replies_that_are_drawn_at_random_may_differ_as_much_as_when_asked_twice() -> None:
    first = findings(Shifting(per_call=0.2), samples=20)
    assert first["self-agreement"].status == "ok"
    assert "drawn at random" in first["self-agreement"].finding
    assert findings(Shifting(shift=0.2, per_call=0.2), samples=20)["drift"].status == "ok"
    assert findings(Shifting(shift=0.3, per_call=0.2), samples=20)["drift"].status == "failed"


def test_a_model_that_hardly_rates_is_not_well() -> None:
    class Mute(Shifting):
        def answer(self, questions):
            return ((place, Chosen((0.01,) * 5).answer()) for place, _ in enumerate(questions))

    assert findings(Shifting())["mass"].status == "ok"
    assert findings(Mute())["mass"].status == "failed"


def test_the_wording_is_measured_by_three_paraphrases() -> None:
    model = Shifting(per_wording=0.5)
    found = findings(model)["wording"].finding
    assert "mean difference 0.50, r = 1.00" in found
    assert model.times == 5  # once, again, and three other wordings
    assert len(set(judge.PARAPHRASES)) == 3


def test_a_server_is_asked_again_though_its_responses_are_usually_kept() -> None:
    with serving() as server:
        server.log_probs = {"4": math.log(0.9)}
        judge.examine_judge(server.address)
        judge.examine_judge(server.address)
        # Ten questions twice, and once in each of three wordings; all of it again.
        assert len(server.requests) == 2 * 50
        assert sorted(set(server.asked.values())) == [2, 4]
