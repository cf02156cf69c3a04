"""`ruber`, `bert-ruber` and `pone`: halves, scales and blends, with made-up scorers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.errors import UsageError
from dialeval.metrics.ruber import NO_REFERENCES, BlendedMetric, ReferencedHalf
from dialeval.question import Embed, Judge, WordVectors
from dialeval.registry import make_metric
from dialeval.sample import Sample, Turn

BLENDS = ("min", "max", "arithmetic", "geometric")
SPECS = (
    "pone",
    "pone:mode=released",
    "bert-ruber",
    "bert-ruber:mode=released",
    "bert-ruber:blend=referenced",
    *(f"bert-ruber:blend={blend}" for blend in BLENDS),
    "ruber",
    "ruber:mode=released",
    "ruber:blend=unreferenced",
    "ruber:pooling=all,blend=geometric",
)


@pytest.mark.parametrize("spec", SPECS)
def test_it_is_a_metric(spec):
    dialeval.check_metric(make_metric(spec))


class Scripted:
    """A scorer whose judgements are written in the texts: the response is `fit`, a reference is
    the cosine with every response."""

    def fingerprint(self, name):
        return "scripted"

    def load(self, name):
        return self

    def answer(self, questions):
        for position, question in enumerate(questions):
            if isinstance(question, Judge):
                yield position, np.array([float(question.response)])
            else:
                yield position, _unit(question.text)


def _unit(text):
    kind, _, value = text.partition(" ")
    cosine = float(value) if kind == "reference" else 1.0
    return np.array([cosine, math.sqrt(1 - cosine**2)])


def scripted(halves, spec, tmp_path, **options):
    samples = [
        Sample(f"s{n}", (Turn("a query"),), str(fit), (f"reference {near}",))
        for n, (fit, near) in enumerate(halves)
    ]
    return dialeval.score(
        samples, [spec], models=Scripted(), cache=tmp_path / "answers.sqlite", **options
    )


@pytest.mark.parametrize("blend", BLENDS)
def test_blends_are_the_golden_ones(golden, tmp_path, blend):
    case = golden["ruber_blend"]
    halves = list(zip(case["unreferenced"], case["referenced"], strict=True))
    run = scripted(halves, f"bert-ruber:blend={blend}", tmp_path)
    assert run.scores(f"bert-ruber:blend={blend}") == pytest.approx(case[blend], abs=1e-9)


def test_the_released_unreferenced_score_is_scaled_over_the_run(golden, tmp_path):
    case = golden["ruber_blend"]
    halves = [(fit, 0.5) for fit in case["unreferenced"]]
    for name in ("bert-ruber", "pone"):
        run = scripted(halves, f"{name}:mode=released", tmp_path)
        assert run.scores(run.metrics[0]) == pytest.approx(case["minmax_unref"], abs=1e-9)
        assert scripted(halves, name, tmp_path).scores(name) == case["unreferenced"]


def test_a_half_that_never_changes_is_zero_on_its_scale(tmp_path):
    run = scripted([(0.2, 0.5), (0.9, 0.5)], "bert-ruber:blend=max", tmp_path)
    assert run.scores(run.metrics[0]) == [0.0, 1.0]


def test_the_scales_of_a_run_serve_the_next(tmp_path):
    spec = "bert-ruber:blend=arithmetic"
    first = scripted([(0.0, 0.2), (0.8, 0.6)], spec, tmp_path)
    assert first.manifest["metrics"][0]["calibration"]["parts"]["referenced"]["n"] == 2
    second = scripted([(0.4, 0.4)], spec, tmp_path, calibrations=first.calibrations)
    assert second.scores(spec) == pytest.approx([0.5])
    assert second.signatures == first.signatures
    assert "calibration:minmax@" in str(first.signatures[spec])
    alone = scripted([(0.4, 0.4)], spec, tmp_path)
    assert alone.scores(spec) == [0.0]
    assert alone.signatures != first.signatures


def test_scales_of_another_blend_are_refused(tmp_path):
    other = scripted([(0.0, 0.2), (0.8, 0.6)], "pone:mode=released", tmp_path)
    with pytest.raises(UsageError, match="no calibration of kind 'minmax'"):
        scripted([(0.4, 0.4)], "bert-ruber:blend=min", tmp_path, calibrations=other.calibrations)


def test_the_nearest_reference_counts(tmp_path):
    sample = Sample("s", (Turn("q"),), "0.7", tuple(f"reference {c}" for c in (0.1, 0.8, -0.4)))
    run = dialeval.score(
        [sample],
        ["bert-ruber:blend=referenced"],
        models=Scripted(),
        cache=tmp_path / "answers.sqlite",
    )
    assert run.scores(run.metrics[0]) == pytest.approx([0.8])


@given(
    st.floats(-1, 1),
    st.floats(0, 1),
    st.sampled_from(BLENDS),
)
def test_a_blend_lies_between_its_halves(referenced, unreferenced, blend):
    metric = make_metric("bert-ruber", blend=blend)
    assert isinstance(metric, BlendedMetric)
    blended = metric.combine({"referenced": referenced, "unreferenced": unreferenced})
    low, high = sorted((referenced, unreferenced))
    assert low - 1e-12 <= blended <= max(0.0, high) + 1e-12
    assert metric.combine({"referenced": unreferenced, "unreferenced": unreferenced}) == (
        pytest.approx(unreferenced)
    )


@pytest.mark.parametrize("name", ["ruber", "bert-ruber"])
def test_a_blend_needs_references_and_the_unreferenced_half_does_not(name):
    sample = Sample("s", (Turn("a query"),), "a response")
    assert make_metric(name, blend="min").obstacle(sample) == NO_REFERENCES
    assert make_metric(name, blend="unreferenced").obstacle(sample) == ""
    assert make_metric("pone").obstacle(sample) == ""
    assert make_metric("pone").obstacle(Sample("s", (), "a response")) == "no context"


@pytest.mark.parametrize("name", ["ruber:blend=unreferenced", "bert-ruber", "pone"])
def test_an_empty_response_has_no_score_and_is_unk_in_the_released_code(name):
    sample = Sample("s", (Turn("a query"),), " ")
    metric = make_metric(name)
    assert metric.ask(sample) == ()
    assert metric.score(sample, ()).note == "empty response"
    released = make_metric(name, mode="released")
    assert released.score(sample, [np.array([0.3])] * len(released.ask(sample))).value == 0.3


def test_a_blank_reference_is_none_or_zero_as_the_mode_says():
    sample = Sample("s", (Turn("a query"),), "fine", (" ",))
    answers = [np.array([0.3]), np.ones(2), np.ones(2)]
    paper = make_metric("bert-ruber", blend="min").score(sample, answers)
    released = make_metric("bert-ruber", blend="min", mode="released").score(sample, answers)
    assert (paper.value, paper.note) == (None, "empty reference")
    assert released.parts["referenced"] == 0.0


def test_the_referenced_half_of_ruber_is_the_golden_one(golden):
    case = golden["embedding_metrics"]
    sample = Sample("s", (Turn("q"),), case["hypothesis"], (case["reference"],))
    ruber = make_metric("ruber", blend="referenced")
    fit, *questions = ruber.ask(sample)
    assert isinstance(fit, Judge)
    unknown = [np.nan] * 3
    answers = [
        np.array([case["vectors"].get(word, unknown) for word in question.words])
        for question in questions
        if isinstance(question, WordVectors)
    ]
    score = ruber.score(sample, [np.array([0.9]), *answers])
    assert score.value == pytest.approx(case["ruber_referenced_max_min_pooling"], abs=1e-9)


def test_pooling_average_is_embedding_average(golden):
    case = golden["embedding_metrics"]
    sample = Sample("s", (), case["hypothesis"], (case["reference"],))
    metric = ReferencedHalf(pooling="average", tokenize="none")
    answers = [
        np.array([case["vectors"].get(w, case["vectors"]["<unk>"]) for w in text.split()])
        for text in (case["hypothesis"], case["reference"])
    ]
    assert metric.score(sample, answers).value == pytest.approx(case["embedding_average"])


def test_only_ruber_reads_nothing_but_the_last_turn():
    sample = Sample("s", (Turn("first"), Turn("last")), "fine")
    assert make_metric("ruber", blend="unreferenced").ask(sample)[0].turns == ("last",)
    for name in ("bert-ruber", "pone"):
        assert make_metric(name).ask(sample)[0].turns == ("first", "last")


def test_references_are_embedded_by_the_scorer_itself():
    sample = Sample("s", (Turn("q"),), "fine", ("good", "well"))
    assert make_metric("bert-ruber", model="mine").ask(sample) == [
        Judge("mine", ("q",), "fine"),
        Embed("mine", "fine"),
        Embed("mine", "good"),
        Embed("mine", "well"),
    ]


@pytest.mark.parametrize("name", ["pone", "bert-ruber"])
def test_the_paper_preset_says_how_to_train_the_scorer_that_it_lacks(name):
    with pytest.raises(UsageError) as found:
        make_metric(name, preset="paper")
    said = str(found.value)
    assert f"the preset 'paper' has no model for {name!r}" in said
    assert f"dialeval train {name} --data dailydialog --model bert-base-uncased -o DIR" in said
    assert f"-m {name}:model=DIR" in said


def test_the_paper_preset_sets_every_model_of_a_metric_or_none():
    """It used to change the first and leave the rest embedded."""
    assert make_metric("deep-am-fm", preset="paper").models() == {
        "model": "gpt2",
        "encoder": "bert-base-uncased",
    }
    with pytest.raises(UsageError, match=r"no model for 'usl-h' \(fluency, relevance\)") as found:
        make_metric("usl-h", preset="paper")
    assert "dialeval train mme-fluency" in str(found.value)
    assert "-m usl-h:relevance=DIR" in str(found.value)
    named = make_metric("usl-h:fluency=mine,relevance=yours", preset="paper")
    assert named.models()["model"] == "bert-base-uncased"


def test_the_paper_preset_sets_the_options_that_differ_from_the_papers_unless_they_are_given():
    assert make_metric("deep-am-fm", preset="paper").pooling == "pooler"
    assert make_metric("deep-am-fm:pooling=mean", preset="paper").pooling == "mean"
    assert make_metric("deep-am-fm").pooling == "cls"
    specific = make_metric("mme-specificity:kind=nce", preset="paper")
    assert (specific.masks, specific.scale, specific.kind) == (0, "quartile", "nce")
    assert make_metric("mme-specificity:masks=2", preset="paper").masks == 2
    assert make_metric("usl-h:fluency=mine,relevance=yours", preset="paper").masks == 0


def test_a_trained_scorer_is_named_on_the_command_line(tmp_path):
    pytest.importorskip("torch", reason="needs the extra 'models'")
    from models import tiny_encoders, tiny_scorers

    encoder = tiny_encoders.save_bert(tmp_path / "encoder")
    scorer = tiny_scorers.save_pair_scorer(tmp_path / "scorer", str(encoder))
    samples = [
        Sample(str(n), (Turn("the cat sat"),), text, ("a mat",))
        for n, text in enumerate(["on a mat", "do you like it", "so very"])
    ]
    run = dialeval.score(samples, [f"pone:model={scorer}", f"bert-ruber:model={scorer},blend=min"])
    first, blended = (run.scores(label) for label in run.metrics)
    assert all(0 < value < 1 for value in first)
    assert min(blended) == 0.0
    assert "scorer@" in json.dumps([str(s) for s in run.signatures.values()])
