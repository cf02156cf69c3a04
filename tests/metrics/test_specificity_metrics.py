"""`mme-specificity`, `usl-h` and `deep-am-fm`: formulas, scales and dialogues, made-up answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dialeval
from dialeval.metrics.deep_am_fm import DeepAmFm
from dialeval.metrics.mme import MmeSpecificity, measures
from dialeval.metrics.usl_h import UslH
from dialeval.question import Embed, Likelihood, MaskedLikelihood, TokenLogProbs
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn
from dialeval.scores import Calibration

SPECS = (
    "mme-specificity",
    "mme-specificity:kind=nce",
    "mme-specificity:kind=ppl,masks=0,tokens=0",
    *(f"usl-h:rule={rule}" for rule in ("HS", "H", "A")),
    "deep-am-fm",
    "deep-am-fm:mode=released",
    "deep-am-fm:referenced=true",
    "deep-am-fm:mode=released,referenced=true",
)


@pytest.mark.parametrize("spec", SPECS)
def test_it_is_a_metric(spec):
    dialeval.check_metric(make_metric(spec))


def pieces(probabilities, cut=0):
    rows = [(math.log(p), n, n + 1) for n, p in enumerate(probabilities)]
    return np.array([(cut, 0, 0), *rows], dtype=np.float64)


def turn(response, *context, references=()):
    return Sample("1", tuple(Turn(text) for text in context), response, references)


def conversation(*turns):
    speakers = ("user", "system")
    return Sample(
        id="1", context=tuple(Turn(text, speakers[n % 2]) for n, text in enumerate(turns))
    )


def test_the_three_measures_are_the_golden_ones(golden):
    wanted = golden["mlm"]
    tokens = TokenLogProbs.read(pieces(wanted["token_probs"]))
    found = measures(tokens)
    assert found == pytest.approx({kind: wanted[kind] for kind in ("nll", "nce", "ppl")}, abs=1e-9)
    for kind in ("nll", "nce", "ppl"):
        score = MmeSpecificity(kind=kind).score(turn("a b c d"), [pieces(wanted["token_probs"])])
        assert score.value == pytest.approx(wanted[kind], abs=1e-9)
        assert score.parts == pytest.approx(found)


def test_quartiles_are_the_golden_ones(golden):
    wanted = golden["mlm"]["minmax_by_quartiles"]
    metric = MmeSpecificity(scale="quartile")
    scale = Calibration.fit(metric.scales()["nll"], wanted["values"])
    assert (scale.low, scale.high) == (wanted["q25"], wanted["q75"])
    scaled = [metric.combine({"nll": scale.apply(value)}) for value in wanted["values"]]
    assert scaled == pytest.approx(wanted["normalised"], abs=1e-9)


def test_specificity_of_a_dialogue_is_the_mean_over_the_turns_of_its_system():
    sample = conversation("hello", "hi you", "how are you", "fine")
    metric = MmeSpecificity()
    assert [question.text for question in metric.ask(sample)] == ["hi you", "fine"]
    score = metric.score(sample, [pieces([0.5, 0.5]), pieces([0.1], cut=3)])
    assert score.value == pytest.approx((math.log(4) + math.log(10)) / 2)
    assert score.parts["ppl"] == pytest.approx((2 + 10) / 2)
    assert score.note == "response truncated"


def test_pieces_that_specificity_does_not_ask_for_are_not_lost():
    """Its definition reads the first 25 pieces; only a model that reads fewer cuts something."""
    whole, short = pieces([0.5] * 25, cut=10), pieces([0.5] * 20, cut=15)
    assert MmeSpecificity().score(turn("long"), [whole]).note == ""
    assert MmeSpecificity().score(turn("long"), [short]).note == "response truncated"
    assert MmeSpecificity(tokens=0).score(turn("long"), [whole]).note == "response truncated"


def test_a_response_that_a_model_reads_nothing_of_has_no_specificity():
    score = MmeSpecificity().score(turn("\u200b"), [pieces([])])
    assert (score.value, score.note) == (None, "no word-pieces")
    assert MmeSpecificity().score(turn("  "), []).note == "empty response"


class Scripted:
    """Every judge says `judged`, every piece has the probability in the text."""

    judged = 0.5

    def fingerprint(self, name):
        return "scripted"

    def load(self, name):
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            if isinstance(question, MaskedLikelihood):
                yield position, pieces([math.exp(-float(question.text))])
            else:
                yield position, np.array([self.judged])


def test_a_run_puts_specificity_on_the_scale_of_its_quartiles(tmp_path, golden):
    wanted = golden["mlm"]["minmax_by_quartiles"]
    samples = [
        Sample(id=str(n), context=(Turn("so"),), response=str(value))
        for n, value in enumerate(wanted["values"])
    ]
    quartiles = "mme-specificity:scale=quartile"
    run = dialeval.score(samples, [quartiles, "usl-h"], out=tmp_path / "run", models=Scripted())
    assert run.scores(quartiles) == pytest.approx(wanted["normalised"], abs=1e-8)
    expected = [0.33 * 0.5 + 0.33 * 0.5 + 0.34 * 0.5 * value for value in wanted["normalised"]]
    assert run.scores("usl-h") == pytest.approx(expected, abs=1e-8)


def test_specificity_is_no_switch(tmp_path):
    """Of 101 evenly spaced values quartiles make 52 either 0 or 1, the usual scale 4."""
    samples = [
        Sample(id=str(n), context=(Turn("so"),), response=str(1 + n / 10)) for n in range(101)
    ]
    labels = [f"mme-specificity:scale={scale}" for scale in ("quartile", "minmax")]
    run = dialeval.score(
        samples, ["mme-specificity", *labels], out=tmp_path / "run", models=Scripted()
    )
    ends = [sum(value in (0.0, 1.0) for value in run.scores(label)) for label in run.metrics]
    assert ends == [4, 52, 2]
    assert "calibration:percentile@" in str(run.signatures["mme-specificity"])


@pytest.mark.parametrize("rule", ["A", "H", "HS"])
def test_the_rules_of_usl_h_are_the_golden_ones(golden, rule):
    wanted = golden["usl_h"]
    scaled = {"understandable": wanted["u"], "sensible": wanted["s"], "nll": wanted["l"]}
    assert UslH(rule=rule).combine(scaled) == pytest.approx(wanted[rule], abs=1e-9)


def test_usl_h_asks_what_its_three_metrics_ask():
    sample = turn("fine thanks", "hello", "how are you ?")
    alone = [
        question
        for name in ("mme-fluency", "mme-relevance", "mme-specificity")
        for question in make_metric(name).ask(sample)
    ]
    assert list(UslH().ask(sample)) == alone


def test_usl_h_of_a_dialogue_takes_means_of_its_parts():
    sample = conversation("hello", "hi", "how are you", "fine")
    answers = [[0.2], [0.6], [0.4], [0.8], pieces([0.5]), pieces([0.125])]
    score = UslH().score(sample, [np.asarray(answer) for answer in answers])
    assert score.parts["understandable"] == pytest.approx(0.4)
    assert score.parts["sensible"] == pytest.approx(0.6)
    assert score.parts["nll"] == pytest.approx(2 * math.log(2))


def test_am_and_fm_are_scaled_and_averaged_as_in_the_golden_file(golden):
    wanted = golden["deep_am_fm"]
    metric = DeepAmFm()
    raw = {"am": wanted["am_cos"], "fm": wanted["fm_mean_logp"]}
    scales = {part: Calibration.fit(kind, raw[part]) for part, kind in metric.scales().items()}
    scaled = {p: [scales[p].apply(value) for value in values] for p, values in raw.items()}
    assert scaled["am"] == pytest.approx(wanted["am_norm"], abs=1e-9)
    assert scaled["fm"] == pytest.approx(wanted["fm_norm"], abs=1e-9)
    means = [metric.combine({"am": a, "fm": f}) for a, f in zip(*scaled.values(), strict=True)]
    assert means == pytest.approx(wanted["am_fm_mean(turn level, reference free)"], abs=1e-9)
    negated = DeepAmFm(mode="released").combine({"am": 0.4, "fm": 0.5, "am_sign": -1.0})
    assert negated == pytest.approx((-0.4 + 0.5) / 2)


def likelihood(log_probs, cut=0):
    return np.array([(cut, 0, 0), *((value, 0, 1) for value in log_probs)], dtype=np.float64)


def test_am_is_a_cosine_and_fm_a_mean_log_probability():
    sample = turn("fine", "hello", "how are you ?")
    asked = DeepAmFm().ask(sample)
    assert [type(question) for question in asked] == [Embed, Embed, Likelihood]
    assert [question.text for question in asked] == ["fine", "how are you ?", "fine"]
    assert [said.text for said in asked[2].turns] == ["how are you ?"]
    answers = [np.array([1.0, 0.0]), np.array([3.0, 4.0]), likelihood([-1.0, -3.0])]
    score = DeepAmFm().score(sample, answers)
    assert score.parts == pytest.approx({"am": 0.6, "fm": -2.0})


def test_the_released_fm_is_a_difference_over_two_texts_with_end_tokens():
    sample = turn("fine", "how are you ?")
    metric = DeepAmFm(mode="released")
    joint, before = metric.ask(sample)[2:]
    assert (joint.text, before.text) == ("how are you ? fine", "how are you ?")
    assert (joint.end, before.end, joint.start) == (True, True, False)
    unpredicted = math.nan
    answers = [
        np.array([1.0, 0.0]),
        np.array([1.0, 0.0]),
        likelihood([unpredicted, -1.0, -2.0, -4.0, -0.5]),
        likelihood([unpredicted, -1.0, -1.5]),
    ]
    score = metric.score(sample, answers)
    assert score.parts["fm"] == pytest.approx((-7.5 + 2.5) / (5 - 3))
    assert score.parts["am_sign"] == 1


@pytest.mark.parametrize(("mode", "sign"), [("paper", 1), ("released", -1)])
def test_a_dialogue_is_the_mean_over_turns_with_a_predecessor(mode, sign):
    sample = conversation("hello", "hi", "how are you", "fine")
    metric = DeepAmFm(mode=mode)
    one = [np.array([1.0, 0.0]), np.array([1.0, 0.0])]
    other = [np.array([1.0, 0.0]), np.array([0.6, 0.8])]
    if mode == "paper":
        first, second = [likelihood([-2.0])], [likelihood([-4.0])]
    else:
        first = [likelihood([-3.0, -2.0]), likelihood([-3.0])]
        second = [likelihood([-3.0, -4.0]), likelihood([-3.0])]
    score = metric.score(sample, [*one, *first, *other, *second])
    assert score.parts["am"] == pytest.approx(0.8)
    assert score.parts["fm"] == pytest.approx(-3.0)
    assert score.value == pytest.approx((sign * 0.8 - 3.0) / 2)


def test_the_best_reference_counts():
    sample = turn("fine", "how are you ?", references=("good", "bad"))
    metric = DeepAmFm(referenced=True)
    assert len(metric.ask(sample)) == 6
    vectors = [np.array([1.0, 0.0]), np.array([0.6, 0.8]), np.array([-1.0, 0.0])]
    texts = [likelihood([-2.0]), likelihood([-8.0]), likelihood([-1.0, -2.0])]
    score = metric.score(sample, [*vectors, *texts])
    assert score.parts == pytest.approx({"am": 0.6, "fm": 0.75})
    assert metric.obstacle(turn("fine", "how are you ?")) == "no references"


def test_the_first_turn_of_a_dialogue_has_no_predecessor():
    assert DeepAmFm().obstacle(turn("hello")) == "no context"
    assert [q.text for q in DeepAmFm().ask(conversation("hi", "you"))][:2] == ["you", "hi"]
