"""`grade`, `deb`, `maude`, `dyna-eval`, `predictive-engage`, `usr`: questions and formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dialeval
from dialeval.errors import UsageError
from dialeval.metrics.usr import Usr
from dialeval.question import Judge, MaskedLikelihood
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn
from dialeval.scores import Calibration

JUDGED = ("grade", "deb", "maude", "predictive-engage")


@pytest.mark.parametrize("spec", [*JUDGED, "dyna-eval", "usr", "usr:mode=released"])
def test_it_is_a_metric(spec):
    dialeval.check_metric(make_metric(spec))


@pytest.mark.parametrize("name", JUDGED)
def test_a_judge_hears_all_turns_and_a_dialogue_is_the_mean_over_the_systems_turns(name):
    metric = make_metric(f"{name}:model=m")
    context = (Turn("a", "user"), Turn("b", "system"), Turn("c", "user"), Turn("d", "system"))
    dialogue = Sample("s", context)
    asked = metric.ask(dialogue)
    assert asked == [Judge("m", ("a",), "b"), Judge("m", ("a", "b", "c"), "d")]
    assert metric.score(dialogue, [np.array([0.25]), np.array([0.75])]).value == 0.5


def test_dyna_eval_reads_a_dialogue_whole():
    metric = make_metric("dyna-eval:model=m")
    said = (Turn("a", "user"), Turn("b", "system"), Turn("c", "user"))
    assert metric.ask(Sample("s", said)) == [Judge("m", ("a", "b"), "c")]
    assert metric.ask(Sample("s", said, "d")) == [Judge("m", ("a", "b", "c"), "d")]
    assert metric.score(Sample("s", said), [np.array([0.25])]).value == 0.25
    for nothing in (Sample("s", said[:1]), Sample("s", said, " ")):
        assert metric.ask(nothing) == []
        assert metric.score(nothing, []).value is None


@pytest.mark.parametrize("use", [*JUDGED, "dyna-eval", "flow-score"])
def test_the_papers_preset_names_the_command_that_trains_it(use):
    with pytest.raises(UsageError, match=rf"Train one: dialeval train {use} --data .*:model=DIR"):
        make_metric(use, "paper")


def test_the_papers_usr_hides_word_pieces_one_by_one():
    named = "usr:context=DR-C,fact=DR-F"
    assert make_metric(named, "paper").masks == 0


def usr_answers(mlm, context, fact):
    tokens = np.array([[0, 0, 0], [mlm - 1, 0, 1], [mlm + 1, 1, 2]], dtype=float)
    return [tokens, np.array([context]), np.array([fact])]


def test_usr_asks_for_the_last_turn_and_takes_the_context_for_absent_facts():
    metric = Usr("lm", "dr-c", "dr-f")
    sample = Sample("s", (Turn("hello there"), Turn("how are you")), "fine")
    assert metric.ask(sample) == [
        MaskedLikelihood("lm", "how are you fine", 3),
        Judge("dr-c", ("hello there", "how are you"), "fine"),
        Judge("dr-f", ("hello there how are you",), "fine"),
    ]
    told = Sample("s", sample.context, "fine", facts=("i ski.", "i eat."))
    assert metric.ask(told)[2] == Judge("dr-f", ("i ski. i eat.",), "fine")


def test_usr_is_the_regression_of_the_released_file():
    # One standard deviation above each mean: the intercept and all five coefficients.
    means = (-1.012293440649907, 0.8604811806918587, 0.8472124995904354)
    deviations = (0.39053753419230813, 0.30259338627812254, 0.27987823011851076)
    sample = Sample("s", (Turn("hi"),), "fine")
    metric = make_metric("usr:mode=released")
    at_mean = metric.score(sample, usr_answers(*means))
    assert at_mean.value == pytest.approx(3.597475447630256, abs=1e-12)
    above = [mean + deviation for mean, deviation in zip(means, deviations, strict=True)]
    total = 3.597475447630256 + 0.66011001 + 0.40353486 + 0.51327857 + 0.96053361 + 0.35642554
    assert metric.score(sample, usr_answers(*above)).value == pytest.approx(total, abs=1e-9)


class Written:
    """Answers that stand in the response: mlm, context, fact."""

    def fingerprint(self, name):
        return name

    def load(self, name):
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            text = question.text if isinstance(question, MaskedLikelihood) else question.response
            values = usr_answers(*(float(word) for word in text.split()[-3:]))
            place = {"lm": 0, "dr-c": 1, "dr-f": 2}[question.model]
            yield position, values[place]


def test_usr_standardises_each_part_over_the_run(tmp_path):
    rows = [(-3.0, 0.2, 0.5), (-1.0, 0.4, 0.5), (-2.0, 0.9, 0.5)]
    samples = [
        Sample(f"s{n}", (Turn("hi"),), " ".join(map(str, row))) for n, row in enumerate(rows)
    ]
    metric = Usr("lm", "dr-c", "dr-f")
    run = dialeval.score(samples, [metric], models=Written(), cache=tmp_path / "a.sqlite")
    mlm = [(x + 2) / math.sqrt(2 / 3) for x, _, _ in rows]
    context = [(x - 0.5) / math.sqrt((0.09 + 0.01 + 0.16) / 3) for _, x, _ in rows]
    expected = [
        3.597475447630256 + (0.66011001 + 0.40353486) * a + (0.51327857 + 0.96053361) * b
        for a, b in zip(mlm, context, strict=True)
    ]  # the facts never differ: 0
    assert run.scores(metric.label) == pytest.approx(expected, abs=1e-9)


def test_a_standard_scale_counts_deviations_from_the_mean():
    scale = Calibration.fit("standard", [1.0, 2.0, 3.0, 6.0])
    assert scale.apply(3.0) == 0.0
    assert scale.apply(6.0) == pytest.approx(3 / math.sqrt((4 + 1 + 0 + 9) / 4))
    assert Calibration.from_record(scale.to_record()) == scale
